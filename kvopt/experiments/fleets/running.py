"""Look at one number of machines after the other: schedulers, bounds, and a certificate of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kvopt.certificates import Certificate, certify
from kvopt.certificates.deadlines import deadline_of
from kvopt.certificates.judged import UNFINISHED
from kvopt.errors import InvalidInput
from kvopt.experiments.fleets import folder
from kvopt.experiments.fleets.measures import Measure, measure_of
from kvopt.experiments.fleets.sizes import FleetSizes, bands_of, machines_in_words
from kvopt.experiments.fleets.targets import Target
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.limits import limits_of
from kvopt.incumbent.params import SolveParams
from kvopt.incumbent.proofs import CheckedBound
from kvopt.kernels.compile_clock import Abandoned, left_when
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.problem.deadlines import Deadline
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import as_instance
from kvopt.problem.requests import checked_integer
from kvopt.problem.scopes import least_scope
from kvopt.search.fleet_bounding import bounds_by_workers
from kvopt.simulate.policies.registry import policy as policy_from
from kvopt.simulate.policies.servers import PausingPolicy
from kvopt.simulate.routers.labels import label_of
from kvopt.simulate.routers.registry import router as router_from
from kvopt.simulate.running import run
from kvopt.simulate.simulator import Stopped
from kvopt.timetable.runs import PolicyRun

POLICIES = ("svf",)
"""Schedulers that run beside the one to match, unless others are named."""
ROUTERS = ("least-volume", "central")
"""Routers that are tried beside the one of the run to match, unless others are named."""

TIME_LIMIT = 10.0
"""Seconds for bounds and schedules of each number of machines."""

MOST_COUNTS = 16
"""Numbers of machines that are looked at when none are named; of more, some between."""

_OF_DEADLINES = SolveParams.of(
    {"deadlines": {"share": 0.45, "most_seconds": 600.0}, "portfolio": {"bound_share": 0.0}}
)
"""A certificate of a deadline is about nothing else here."""

Observer = Callable[[str], None]
"""Told in a line what begins."""


def routers_of(policy: str, routers: Sequence[str] = ROUTERS) -> list[str]:
    """Return the routers that a scheduler goes with: a server has a line of its own."""
    has_line = isinstance(policy_from(policy), PausingPolicy)
    return [name for name in routers if not has_line or router_from(name).is_irrevocable]


@dataclass(frozen=True)
class FleetMatch:
    """A run that is the target: its total latency, or its misses of a deadline.

    Parameters
    ----------
    policy, router, workers
        Of the run.
    """

    policy: str
    router: str
    workers: int

    @property
    def label(self) -> str:
        """What the run is called."""
        return label_of(self.router, self.policy)


def fleet_sizes(
    instance: Instance | str | Path,
    target: str | FleetMatch,
    *,
    policies: Sequence[str] = (),
    routers: Sequence[str] = (),
    deadline: Deadline | str | int | None = None,
    counts: Iterable[int] | None = None,
    clock: Clock = ROUNDS,
    time_limit: float | None = TIME_LIMIT,
    threads: int | None = None,
    out: str | Path | None = None,
    observer: Observer = lambda _: None,
    command: str | None = None,
) -> FleetSizes:
    """Return how many machines a target takes: what is proved, and what is known to be enough.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    target
        ``mean=100`` in rounds, ``mean=5s``, ``misses=1%`` of a deadline, or a `FleetMatch`.
    policies, routers
        Every scheduler runs behind every router, on each number of machines.
    deadline
        By when requests should be done, as for `kvopt.certify`; misses are counted then.
    counts
        Numbers of machines; when left out, from the largest that simple bounds rule out to one
        on which a scheduler reaches the target.
    clock
        How long rounds last.
    time_limit
        Seconds for bounds and schedules of each number of machines, beside the runs of
        schedulers; None to go on until nothing more is found.
    threads
        For the solvers.
    out
        A folder for a certificate of each number of machines.  What is in there counts and is not
        done again.
    observer
        Told in a line what begins.
    command
        What certificates record as the command that made them.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> found = fleet_sizes(Instance(5, [Request(0, 2, 1)] * 4), "mean=1.5", time_limit=2)
    >>> found.machines
    (2, 2)

    Within one round each machine gets one of them done.  The bound lets three share two caches:

    >>> late = fleet_sizes(found.instance, "misses=0", deadline=1, time_limit=2)
    >>> [(band.workers, band.lower, band.upper) for band in late.bands]
    [(2, 1, 2), (3, 0, 1), (4, 0, 0)]
    """
    instance, aimed = as_instance(instance), deadline_of(deadline)
    limits_of({"time_limit": time_limit, "threads": threads})
    measure = measure_of(instance, clock, aimed)
    work = _Work(measure, aimed, policies, routers, target, time_limit, threads, observer, command)
    directory = None if out is None else Path(out)
    if directory is not None:
        work.known = folder.read(directory, instance, clock, work.scope, aimed)
    with signals_remembered(work.interrupt):
        try:
            work.begin(target)
            work.look_at(counts, directory)
        except (Stopped, Abandoned):
            if work.signal_number is None:
                raise
    if work.target is None:
        raise KeyboardInterrupt
    return FleetSizes(
        work.instance, work.target, bands_of(work.known, measure), measure, work.scope,
        tuple(work.left), work.signal_number,
    )  # fmt: skip


class _Work:
    """What is known so far, by number of workers."""

    def __init__(
        self,
        measure: Measure,
        deadline: Deadline | None,
        policies: Sequence[str],
        routers: Sequence[str],
        target: str | FleetMatch,
        time_limit: float | None,
        threads: int | None,
        observer: Observer,
        command: str | None,
    ) -> None:
        if not len(measure.instance):
            raise InvalidInput("has no requests", field="requests")
        self._measure, self._deadline = measure, deadline
        self.instance, self.clock = measure.instance, measure.clock
        self._match = target if isinstance(target, FleetMatch) else None
        chosen, ways = list(policies or POLICIES), list(routers or ROUTERS)
        if self._match is not None:
            chosen.insert(0, self._match.policy)
            ways.insert(0, self._match.router)
        asked = "" if self._match is None else self._match.label
        self._pairs = [
            (way, name)
            for name in dict.fromkeys(chosen)
            for way in dict.fromkeys(ways)
            if way in routers or way in routers_of(name, ways) or label_of(way, name) == asked
        ]
        for way in ways:
            router_from(way)
        self.scope = least_scope(
            policy_from(name).scope(rounds=self.clock.is_even) for name in chosen
        )
        self._limit, self._threads = time_limit, threads
        self._observer, self._command = observer, command
        self._runs: dict[int, list[PolicyRun]] = {}
        self.known: dict[int, Certificate] = {}
        self.left: list[int] = []
        self.target: Target | None = None
        self.signal_number: int | None = None

    def interrupt(self, number: int) -> None:
        """Remember that a signal came."""
        self.signal_number = number

    def _is_over(self) -> bool:
        return self.signal_number is not None

    def begin(self, target: str | FleetMatch) -> None:
        """Find out what the target is, and refuse one that cannot be met."""
        if isinstance(target, str):
            self.target = self._measure.target(target)
        else:
            self.instance = replace(self.instance, workers=target.workers)
            value = self._values(target.workers)[target.label]
            if value is None:
                reason = "did not complete every request, so there is nothing to match"
                raise InvalidInput(f"{target.label} {reason}", field="--match")
            where = machines_in_words(target.workers)
            said = f"what {target.label} does on {where}{self._measure.within}"
            self.target = Target(value, said, (target.workers, target.label))
        least, reason = self._measure.least()
        if least > self.target.most:
            raise InvalidInput(
                f"cannot be met by any number of machines: {reason}", field="--target"
            )

    def look_at(self, counts: Iterable[int] | None, directory: Path | None) -> None:
        """Certify each number of workers, and keep what is known of others."""
        if counts is None:
            chosen = self._range()
        else:
            chosen = [checked_integer(count, "--counts", 1) for count in counts]
        if self._match is not None:
            chosen.append(self._match.workers)  # where the target is from
        self.left = [count for count in sorted(set(chosen)) if not self._is_done(count)]
        bounds = self._bounds(self.left)
        for count in list(self.left):
            if self._is_over():
                return
            fleet, runs = self._fleet(count), self._run(count)
            self._observer(f"{machines_in_words(count)}: schedules and bounds")
            aimed = self._deadline is not None
            found = certify(
                fleet, runs, clock=self.clock, scope=self.scope, router=self._pairs[0][0],
                deadline=self._deadline, only_deadline=aimed,
                time_limit=self._of_a_certificate, threads=self._threads, command=self._command,
                params=_OF_DEADLINES if aimed else None,
            )  # fmt: skip
            self.signal_number = self.signal_number or found.signal_number
            found = folder.better(found, self.known.get(count), bounds.get(count))
            if directory is not None:
                folder.keep(directory, found)
            self.known[count] = found
            self.left.remove(count)

    @property
    def _of_a_certificate(self) -> float | None:
        """Seconds for a certificate: what is bounded before for many numbers has the other half."""
        if self._limit is None or self._deadline is not None:
            return self._limit
        return self._limit / 2

    def _bounds(self, counts: Sequence[int]) -> Mapping[int, CheckedBound]:
        """Return bounds for many numbers of workers at once; they share what they find."""
        if not counts or self._deadline is not None:
            return {}
        self._observer(f"bounds for {', '.join(map(str, counts))} machines")
        each = self._of_a_certificate
        limit = None if each is None else each * len(counts)
        with left_when(self._is_over):
            return bounds_by_workers(
                self.instance, counts, self.clock, scope=self.scope, time_limit=limit,
                threads=self._threads, stop=lambda _: self._is_over(),
            )  # fmt: skip

    def _fleet(self, workers: int) -> Instance:
        return replace(self.instance, workers=workers)

    def _labels(self) -> list[str]:
        return [label_of(*pair) for pair in self._pairs]

    def _is_done(self, workers: int) -> bool:
        """Whether a certificate is there that no signal cut short, with all schedulers."""
        found = self.known.get(workers)
        if found is None or found.provenance.get("stop_reason") == "interrupted":
            return False
        ended = {run.policy for run in found.runs if run.outcome != UNFINISHED}
        return ended >= {*self._labels()}

    def _values(self, workers: int) -> dict[str, int | None]:
        """Return what schedulers do with so many workers, from a certificate if there is one."""
        if self._is_done(workers):
            return self._measure.runs(self.known[workers])
        return {run.policy: self._measure.of_run(run) for run in self._run(workers)}

    def _run(self, workers: int) -> list[PolicyRun]:
        """Run every scheduler behind every router; a single machine needs none."""
        if workers in self._runs:
            return self._runs[workers]
        fleet, found = self._fleet(workers), list[PolicyRun]()
        alone: dict[str, PolicyRun] = {}
        for way, name in self._pairs:
            label = label_of(way, name)
            self._observer(f"{machines_in_words(workers)}: {label}")
            if name in alone:
                found.append(replace(alone[name], policy=label))
                continue
            with left_when(self._is_over):
                made = run(
                    fleet, name, router=way, clock=self.clock, label=label,
                    should_stop=self._is_over,
                )  # fmt: skip
            if workers == 1:
                alone[name] = made
            found.append(made)
        self._runs[workers] = found
        return found

    def _range(self) -> list[int]:
        """Return numbers of workers between one that is too few and one that is enough."""
        assert self.target is not None
        most, bound = self.target.most, self._measure.quick_bound
        below = _last(lambda count: bound(count, self.scope) > most, len(self.instance))
        enough = self._match.workers if self._match is not None else self._enough(below + 1)
        first = max(below, 1)
        if enough - first < MOST_COUNTS:
            return [*range(first, enough + 1)]
        step = (enough - first) / (MOST_COUNTS - 1)
        between = {first + round(k * step) for k in range(MOST_COUNTS)}
        return sorted(between | {below + 1, enough, *(c for c in self._runs if c <= enough)})

    def _enough(self, first: int) -> int:
        """Return a number of workers on which a scheduler reaches the target.

        Where each request has a machine of its own every scheduler that waits for none does.
        """
        if known := [
            count for count in self.known if self._is_done(count) and self._reaches(count)
        ]:
            return min(known)
        low, step, most = first - 1, 1, max(1, len(self.instance))
        while not self._reaches(high := min(low + step, most)):
            if high == most:
                return high
            low, step = high, 2 * step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._reaches(middle) else (middle, high)
        return high

    def _reaches(self, workers: int) -> bool:
        assert self.target is not None
        known = (value for value in self._values(workers).values() if value is not None)
        return min(known, default=math.inf) <= self.target.most


def _last(holds: Callable[[int], bool], most: int) -> int:
    """Return the last number up to ``most`` at which something holds from 1 on, else 0."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

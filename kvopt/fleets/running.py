"""Evaluate each number of machines: schedulers, bounds, and a certificate of each."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict, Unpack

from kvopt import (
    Certificate,
    InvalidInput,
    Outcome,
    PolicyRun,
    SolveParams,
    bounds_by_workers,
    certify,
    run,
)
from kvopt import policy as policy_from
from kvopt.errors import Stopped
from kvopt.fleets.measures import Latency, Measure, Misses, Target
from kvopt.fleets.sizes import FleetSizes, bands_of, better, keep, read_folder
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.limits import Limits, limits_of
from kvopt.incumbent.proofs import CheckedBound
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiler import wait_until
from kvopt.problem.clocks import Clock
from kvopt.problem.hardware.roofline import gpus_of
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.requests import checked_integer
from kvopt.problem.scopes import Scope, least_scope
from kvopt.problem.slo import Slo
from kvopt.show.summary import counted
from kvopt.simulate.policies.server_policies import PausingPolicy
from kvopt.simulate.routers import label_of
from kvopt.simulate.routers import router as router_from

POLICIES = ("svf",)
"""Schedulers that run in addition to the one to match, unless others are named."""
ROUTERS = ("least-volume", "central")
"""Routers that run in addition to that of the run to match, unless others are named."""

TIME_LIMIT = 10.0
"""Seconds for bounds and schedules of each number of machines."""

_SEVERAL = 2
"""Machines on which schedulers are tried if their number is open."""

MOST_COUNTS = 16
"""Limit of the numbers of machines if none are named; of a larger range some are chosen."""

_OF_SLO = SolveParams(portfolio_bound_share=0.0)
"""Options of certificates of a service level: here they have no latency."""

Observer = Callable[[str], None]
"""Receives a line about the work that begins."""


def routers_of(policy: str, routers: Sequence[str] = ROUTERS) -> list[str]:
    """Return the routers that work with a scheduler: a server has a line of its own."""
    has_line = isinstance(policy_from(policy), PausingPolicy)
    return [name for name in routers if not has_line or router_from(name).is_irrevocable]


@dataclass(frozen=True)
class FleetMatch:
    """A run that is the target: its total latency, or its misses of a service level.

    Parameters
    ----------
    policy, router, workers
        Those of the run.
    """

    policy: str
    router: str
    workers: int

    @property
    def label(self) -> str:
        """Label of the run."""
        return label_of(self.router, self.policy)


class Effort(TypedDict, total=False):
    """How to evaluate each number of machines.

    Parameters
    ----------
    time_limit
        Seconds for bounds and schedules of each number of machines, without the runs of
        schedulers; None to continue until nothing more is found.
    threads
        Threads of the solvers.
    observer
        Receives a line about the work that begins.
    command
        Command that certificates record.
    budget
        Time for all numbers of machines, schedulers included; without a limit by default.
    """

    time_limit: float | None
    threads: int | None
    observer: Observer
    command: str | None
    budget: Budget


def fleet_sizes(
    instance: Problem | Instance | str | Path,
    target: str | FleetMatch | None = None,
    *,
    attain: str | int | None = None,
    policies: Sequence[str] = (),
    routers: Sequence[str] = (),
    slo: Slo | str | None = None,
    counts: Iterable[int] | None = None,
    clock: Clock | str | None = None,
    scope: Scope | str | None = None,
    out: str | Path | None = None,
    gpus: int | None = None,
    **effort: Unpack[Effort],
) -> FleetSizes:
    """Return the number of machines for a target: the proved minimum, and a sufficient number.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    target
        ``mean=100`` in rounds, ``mean=5s``, or a `FleetMatch`.
    attain
        In its place: the share of requests that shall attain ``slo``, ``"99%"`` say, or a number.
    policies, routers
        Every scheduler runs behind every router, on each number of machines.
    slo
        Service level of requests, as for `kvopt.certify`; the measure is then the misses.
    counts
        Numbers of machines; when left out, from the largest that simple bounds rule out to one
        on which a scheduler reaches the target.
    clock
        ``rounds``, ``seconds`` of the usual model, or a clock.
    scope
        ``runs`` ignores prefixes; by default the scope of the schedulers, and ``sharing``.
    out
        A folder for a certificate of each number of machines.  Finished work in it is not
        done again.
    gpus
        GPUs of a machine, by default those in the name of the batch-time model.
    effort
        See `Effort`; ``time_limit`` is 10 seconds by default.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> found = fleet_sizes(Instance(5, [Request(0, 2, 1)] * 4), "mean=1.5", time_limit=2)
    >>> found.machines
    (2, 2)

    Within one round each machine completes one of them.  The bound lets three share two caches:

    >>> late = fleet_sizes(found.instance, attain="100%", slo="e2e=1", time_limit=2)
    >>> [(band.workers, band.lower, band.upper) for band in late.bands]
    [(2, 1, 2), (3, 0, 1), (4, 0, 0)]
    """
    problem = as_problem(instance, clock=clock, slo=slo, scope=scope)
    instance, clock = problem.instance, problem.clock
    if not len(instance):
        raise InvalidInput("has no requests", field="requests")
    _refuse_mixed_aims(target, attain, problem.slo)
    wanted, field = (target, "--target") if attain is None else (attain, "--attain")
    time_limit = effort.get("time_limit", TIME_LIMIT)
    limits = limits_of({"time_limit": time_limit, "threads": effort.get("threads")})
    match = target if isinstance(target, FleetMatch) else None
    pairs = _pairs(match, policies, routers)
    needed = (policy_from(name).scope(rounds=clock.is_even) for _, name in pairs.values())
    chosen = [checked_integer(count, "--counts", 1) for count in counts or ()]
    fleets = [*chosen, *([match.workers] if match else [])] or [_SEVERAL]
    _try(pairs, replace(problem, instance=replace(instance, workers=max(fleets))))
    measure: Measure = Latency(instance, clock)
    if problem.slo is not None:
        measure = Misses(instance, clock, problem.slo)
    scope = least_scope([*needed, problem.scope])
    directory = None if out is None else Path(out)
    certificates = read_folder(directory, measure, scope) if directory else {}
    reports = effort.get("observer", lambda _: None), effort.get("command")
    budget = effort.get("budget", Budget())
    work = _Work(measure, scope, pairs, limits, *reports, certificates, budget)
    goal = None
    with signals_remembered(work.interrupt):
        try:
            goal = work.matched(match) if match else measure.target(str(wanted))
            least, reason = measure.least()
            if least > goal.most:
                reason = f"cannot be met by any number of machines: {reason}"
                raise InvalidInput(reason, field=field)
            if counts is None:
                chosen = work.numbers(goal.most, match.workers if match else None)
            work.look_at({*chosen, *([match.workers] if match else [])}, directory)
        except Stopped:
            if not work.is_over():
                raise
    if goal is None:
        raise KeyboardInterrupt
    answered = replace(instance, workers=match.workers) if match else instance
    bands = bands_of(certificates, measure)
    if gpus is None and clock.model is not None:
        gpus = gpus_of(clock.model)
    left = tuple(work.left)
    formula = measure.planned() if isinstance(measure, Misses) else None
    ended = left, work.signal_number
    return FleetSizes(answered, goal, bands, measure, scope, *ended, gpus, formula)


def _refuse_mixed_aims(
    target: str | FleetMatch | None, attain: str | int | None, slo: Slo | None
) -> None:
    """Raise an error unless there is one aim, and a service level to attain."""
    if (target is None) == (attain is None):
        raise InvalidInput("give --match, --target or --attain, one of them", field="options")
    if (attain is not None) > (slo is not None):
        raise InvalidInput("needs a service level: --slo ttft=2s,tpot=50ms", field="--attain")
    if isinstance(target, str) and slo is not None:
        raise InvalidInput("a mean has no --slo: --attain 99% has", field="--target")


def _pairs(
    match: FleetMatch | None, policies: Sequence[str], routers: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return pairs of a router and a scheduler that fit, by label; those to match come first."""
    chosen, ways = list(policies or POLICIES), list(routers or ROUTERS)
    if match is not None:
        chosen.insert(0, match.policy)
        ways.insert(0, match.router)
    for way in ways:
        router_from(way)
    by_label = {}
    for name in chosen:
        fitting = {*routers, *routers_of(name, ways)}
        for way in ways:
            label = label_of(way, name)
            if way in fitting or (match is not None and label == match.label):
                by_label[label] = way, name
    return by_label


def _try(pairs: Mapping[str, tuple[str, str]], problem: Problem) -> None:
    """Run schedulers on two requests of a fleet, so that what it refuses is refused at once."""
    fleet = problem.instance
    last = max(fleet, key=lambda request: (request.arrival, request.arrival_seconds or 0))
    few = {request.id: request for request in (last, max(fleet, key=lambda r: len(r.prefix)))}
    for label, (way, name) in pairs.items():
        tried = replace(fleet, requests=tuple(few.values()))
        run(replace(problem, instance=tried), name, router=way, label=label)


@dataclass
class _Work:
    """Results so far, by number of workers."""

    measure: Measure
    scope: Scope
    pairs: dict[str, tuple[str, str]]
    limits: Limits
    tell: Observer
    command: str | None
    known: dict[int, Certificate]
    budget: Budget
    runs: dict[int, list[PolicyRun]] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)
    signal_number: int | None = None

    def interrupt(self, number: int) -> None:
        """Record that a signal arrived."""
        self.signal_number = number

    def is_over(self) -> bool:
        """Whether a signal arrived, or the time is over."""
        return self.signal_number is not None or self.budget.over()

    def matched(self, match: FleetMatch) -> Target:
        """Return the value of a run as a target."""
        value = self.values(match.workers)[match.label]
        if value is None:
            reason = f"{match.label} did not complete every request, so there is nothing to match"
            raise InvalidInput(reason, field="--match")
        where = f"{counted(match.workers, 'machine')}{self.measure.within}"
        return Target(value, f"what {match.label} does on {where}", (match.workers, match.label))

    def look_at(self, counts: set[int], directory: Path | None) -> None:
        """Certify each number of workers, and keep the results for others."""
        measure, limits = self.measure, self.limits
        self.left = [count for count in sorted(counts) if not self.is_done(count)]
        aimed = measure.slo
        bounds: Mapping[int, CheckedBound] = {}
        if aimed is not None:
            limits = replace(limits, params=_OF_SLO)
        elif self.left:  # half of the time is for all numbers at once
            limits = replace(limits, time_limit=limits.time_limit / 2)
            bounds = self.bounds(limits)
        for count in list(self.left):
            if self.is_over():
                return
            runs = self.run(count)
            self.tell(f"{counted(count, 'machine')}: schedules and bounds")
            certificate = certify(
                self.fleet(count),
                runs,
                clock=measure.clock,
                scope=self.scope,
                router=next(iter(self.pairs.values()))[0],
                slo=aimed,
                only_slo=aimed is not None,
                command=self.command,
                limits=self.within(limits),
            )
            self.signal_number = self.signal_number or certificate.signal_number
            certificate = better(certificate, self.known.get(count), bounds.get(count))
            if directory is not None:
                keep(directory, certificate)
            self.known[count] = certificate
            self.left.remove(count)

    def within(self, limits: Limits) -> Limits:
        """Return limits of one number of machines, within the time for all that are left."""
        share = self.budget.left / max(len(self.left), 1)
        return replace(limits, time_limit=min(limits.time_limit, share))

    def bounds(self, of_one: Limits) -> Mapping[int, CheckedBound]:
        """Return bounds for all numbers of workers at once; they share results."""
        self.tell(f"bounds for {', '.join(map(str, self.left))} machines")
        limits = replace(of_one, time_limit=of_one.time_limit * len(self.left))
        with wait_until(self.is_over):
            return bounds_by_workers(
                self.measure.instance,
                self.left,
                self.measure.clock,
                scope=self.scope,
                limits=limits,
                stop=lambda _: self.is_over(),
            )

    def fleet(self, workers: int) -> Instance:
        """Return the problem for so many workers."""
        return replace(self.measure.instance, workers=workers)

    def is_done(self, workers: int) -> bool:
        """Whether a complete certificate with all schedulers exists, not cut short by a signal."""
        certificate = self.known.get(workers)
        if certificate is None or certificate.provenance.get("stop_reason") == "interrupted":
            return False
        ended = {run.policy for run in certificate.runs if run.outcome is not Outcome.UNFINISHED}
        return ended >= {*self.pairs}

    def values(self, workers: int) -> dict[str, int | None]:
        """Return the runs of schedulers on so many workers, from a certificate if one exists."""
        if self.is_done(workers):
            return self.measure.known(self.known[workers]).runs
        return {run.policy: self.measure.of_run(run) for run in self.run(workers)}

    def run(self, workers: int) -> list[PolicyRun]:
        """Run every scheduler behind every router; a single machine needs none."""
        if workers not in self.runs:
            by_label: dict[str, PolicyRun] = {}
            for label, (way, name) in self.pairs.items():
                key = name if workers == 1 else label
                self.tell(f"{counted(workers, 'machine')}: {label}")
                if key not in by_label:
                    with wait_until(self.is_over):
                        by_label[key] = run(
                            self.fleet(workers),
                            name,
                            router=way,
                            clock=self.measure.clock,
                            slo=self.measure.slo,
                            label=label,
                            should_stop=self.is_over,
                        )
                by_label[label] = replace(by_label[key], policy=label)
            self.runs[workers] = [by_label[label] for label in self.pairs]
        return self.runs[workers]

    def numbers(self, most: int, enough: int | None) -> list[int]:
        """Return the numbers of workers between too few and enough."""
        bound, requests = self.measure.quick_bound, len(self.measure.instance)
        below = _last(lambda count: bound(count, self.scope) > most, 0, requests)
        done = [c for c in self.known if self.is_done(c) and self.reaches(c, most)]
        enough = enough or min(done, default=None)
        if enough is None:  # one machine for each request is enough
            enough = _last(lambda count: not self.reaches(count, most), below, requests - 1) + 1
        first = max(below, 1)
        if enough - first < MOST_COUNTS:
            return [*range(first, enough + 1)]
        step = (enough - first) / (MOST_COUNTS - 1)
        between = {first + round(k * step) for k in range(MOST_COUNTS)}
        return sorted(between | {below + 1, enough, *(c for c in self.runs if c <= enough)})

    def reaches(self, workers: int, most: int) -> bool:
        """Whether a scheduler reaches the target."""
        reached = (value for value in self.values(workers).values() if value is not None)
        return min(reached, default=math.inf) <= most


def _last(holds: Callable[[int], bool], low: int, most: int) -> int:
    """Return the last number up to ``most`` at which a condition is true, as up to ``low``."""
    step = 1
    while low + step <= most and holds(low + step):
        low, step = low + step, 2 * step
    untried = range(low + 1, min(low + step, most + 1))
    return low + bisect_left(untried, True, key=lambda count: not holds(count))

"""Find both sides of the numbers of machines over time: proofs by window, and a simulation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import gt
from pathlib import Path
from typing import Unpack

from kvopt import Certificate, InvalidInput, read_certificate, write_certificate
from kvopt import policy as policy_from
from kvopt.bounds.machine_time_bound import machine_time_bound
from kvopt.errors import Stopped, TooLarge
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import parse_json, read_text
from kvopt.fleets.over_time import FleetOverTime, WindowSizes
from kvopt.fleets.running import TIME_LIMIT, Effort, Observer
from kvopt.fleets.windows import Trial, Windows, length_of
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.limits import limits_of
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiler import wait_until
from kvopt.problem.clocks import Clock
from kvopt.problem.hardware.roofline import gpus_of
from kvopt.problem.instance import MAX_WORKERS, Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.scopes import Scope, least_scope
from kvopt.problem.slo import Slo
from kvopt.search.attaining import bound_in_time
from kvopt.simulate.routers import ArrivalRouter, label_of
from kvopt.simulate.routers import router as router_from

SCHEDULERS = ("slo",)
"""Schedulers that are tried, unless others are named."""
ROUTERS = ("least-requests",)
"""Routers that are tried, unless others are named."""
RESULTS = "every.json"
"""Name of the file with the numbers of all windows."""

_RAISES = 10
"""Limit of the times that a window gets more machines, each time twice as many more."""


def fleet_over_time(
    instance: Problem | Instance | str | Path,
    every: str | int,
    *,
    attain: str = "99%",
    slo: Slo | str | None = None,
    policies: Sequence[str] = (),
    routers: Sequence[str] = (),
    start_up: str | int | None = None,
    clock: Clock | str | None = None,
    scope: Scope | str | None = None,
    out: str | Path | None = None,
    gpus: int | None = None,
    **effort: Unpack[Effort],
) -> FleetOverTime:
    """Return the machines that a service level takes over time: proved, and known to suffice.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from.
    every
        Length of a window: ``"10m"``, ``"1h"``, or a number of rounds.  Numbers of machines change
        at its borders only.
    attain
        Share of the requests of each window that shall attain ``slo``, without those that cannot
        even with a machine of their own.
    slo
        Service level of requests, as for `kvopt.certify`.
    policies, routers
        Every scheduler is simulated behind every router; routers send requests when they arrive.
    start_up
        Time that a machine takes until it serves, ``"90s"`` say; the lower side takes none.
    clock, scope, gpus
        As of `fleet_sizes`.
    out
        A folder for a certificate of each proved number above 1, and the results.  Finished work in
        it is not done again.
    effort
        See `Effort`; ``time_limit`` is for the proof of each number of machines of a window.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> burst = Instance(5, [Request(t, 2, 1) for t in (0, 0, 0, 0, 4)])
    >>> day = fleet_over_time(burst, 4, attain="100%", slo="e2e=2", time_limit=2)
    >>> [(window.proved, window.formula, window.sufficient) for window in day.windows]
    [(2, 1, 2), (1, 1, 1)]
    """
    problem = as_problem(instance, clock=clock, slo=slo, scope=scope)
    if not len(problem.instance):
        raise InvalidInput("has no requests", field="requests")
    if problem.slo is None:
        raise InvalidInput("needs a service level: --slo ttft=2s,tpot=50ms", field="--every")
    if not str(attain).endswith("%"):
        reason = f"must be a share of each window, 99% say, got {attain}"
        raise InvalidInput(reason, field="--attain")
    pairs = _pairs(policies or SCHEDULERS, routers or ROUTERS)
    needed = (policy_from(name).scope(rounds=problem.clock.is_even) for _, name in pairs)
    problem = replace(problem, scope=least_scope([*needed, problem.scope]))
    units = problem.instance, problem.clock
    length = length_of(every, *units, "--every")
    start = 0 if start_up is None else length_of(start_up, *units, "--start-up")
    windows = Windows(problem, length, attain, start)
    if gpus is None and problem.clock.model is not None:
        gpus = gpus_of(problem.clock.model)
    directory = None if out is None else Path(out)
    work = _Work(windows, str(every), directory, gpus, effort)
    return work.results(pairs)


def _pairs(policies: Sequence[str], routers: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of a router and a scheduler."""
    for name in routers:
        if not isinstance(router_from(name), ArrivalRouter):
            reason = "goes with routers that send requests on arrival, such as least-requests"
            raise InvalidInput(f"{reason}, not with {name}", field="--every")
    return [(way, name) for name in policies for way in routers]


@dataclass
class _Work:
    """Results so far."""

    windows: Windows
    every: str
    directory: Path | None
    gpus: int | None
    effort: Effort
    proved: dict[int, int] = field(default_factory=dict)
    best: Trial | None = None
    scheduler: str | None = None
    formula_misses: int | None = None

    def __post_init__(self) -> None:
        self.budget = Budget()
        self.tell: Observer = self.effort.get("observer", lambda _: None)
        self.formula = self.windows.formula()
        self.machine_time = self.windows.machine_time()

    def results(self, pairs: Sequence[tuple[str, str]]) -> FleetOverTime:
        """Do all work that is left, and return the results."""
        stored: Sequence[int] | None = None
        if self.directory is not None:
            stored = self._read(self.directory)
            self._keep_machine_time(self.directory)
        with signals_remembered(self.budget.interrupt):
            try:
                for k in range(len(self.windows)):
                    if k not in self.proved:
                        self.tell(f"window {k + 1} of {len(self.windows)}: proof")
                        self._prove(k)
                for way, name in pairs:
                    with wait_until(self.budget.over):
                        self._simulate(way, name, stored)
            except Stopped:
                if not self.budget.is_interrupted:
                    raise
        return self.result()

    def result(self) -> FleetOverTime:
        """Return the results so far."""
        sizes = []
        for k, members in enumerate(self.windows.members):
            upper = [column[k] for column in self.best or ()]
            size = self.windows.begin(k), len(members), self.windows.allowed[k], self.formula[k]
            sizes.append(WindowSizes(*size, self.proved.get(k), *upper))
        return FleetOverTime(
            self.windows,
            self.every,
            tuple(sizes),
            self.machine_time.value,
            self.scheduler,
            self.formula_misses,
            self.budget.signal_number,
            self.gpus,
        )

    # ---- files --------------------------------------------------------------------------

    def _certificate(self, k: int) -> Path:
        assert self.directory is not None
        return self.directory / f"window-{k + 1}.cert.json"

    def _read(self, directory: Path) -> list[int] | None:
        """Take over the proofs of a folder, each checked again; return its numbers of machines."""
        path = directory / RESULTS
        if not path.exists():
            return None
        stored, here = parse_json(read_text(path)), self.result().to_json()
        for name in ("instance", "clock", "slo", "attain", "every", "start_up", "scope"):
            if stored.get(name) != here[name]:
                reason = f"is about another {name}: name another folder"
                raise InvalidInput(reason, field="--out", file=str(path))
        rows = stored["windows"]
        for k, proved in enumerate(row["proved"] for row in rows):
            if proved is not None and self._is_certified(k, proved):
                self.proved[k] = proved
        counts = [row["sufficient"] for row in rows]
        return None if None in counts else counts

    def _is_certified(self, k: int, proved: int) -> bool:
        """Whether the folder has a certificate that fewer machines are too few."""
        needed = self._needed(k)
        if proved <= (needed > 0):
            return True
        part, path = self.windows.due_inside(k), self._certificate(k)
        if part is None or not path.exists():
            return False
        certificate = read_certificate(path)
        fleet = replace(part.instance, workers=proved - 1)
        return (
            certificate.in_time is not None
            and certificate.in_time.ceiling < needed
            and (
                certificate.instance.hash,
                certificate.clock,
                certificate.scope,
                certificate.in_time.slo,
            )
            == (fleet.hash, part.clock, part.scope, part.slo)
        )

    def _keep(self, k: int | None = None, certificate: Certificate | None = None) -> None:
        """Write a certificate of a window, and the results so far."""
        if self.directory is None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        if k is not None and certificate is not None:
            self._write(certificate, self._certificate(k))
        results = json.dumps(self.result().to_json(), indent=1)
        write_atomically(self.directory / RESULTS, results + "\n")

    def _keep_machine_time(self, directory: Path) -> None:
        """Write a certificate of the machine time."""
        problem = self.windows.problem
        directory.mkdir(parents=True, exist_ok=True)
        whole = Certificate(
            replace(problem.instance, workers=1), None, None,
            clock=problem.clock, scope=problem.scope, machine_time=self.machine_time,
        )  # fmt: skip
        self._write(whole, directory / "machine-time.cert.json")

    def _write(self, certificate: Certificate, path: Path) -> None:
        """Write a certificate, unless it has so many requests that it could not be read."""
        try:
            write_certificate(certificate, path)
        except TooLarge as error:
            self.tell(f"kvopt: {error}")

    # ---- the lower side -----------------------------------------------------------------

    def _needed(self, k: int) -> int:
        """Return how many of the requests due inside a window attain at least."""
        part = self.windows.due_inside(k)
        return 0 if part is None else len(part.instance) - self.windows.allowed[k]

    def _prove(self, k: int) -> None:
        """Find the largest number of machines that a ceiling shows to be too few.

        It begins at the number that the machine time of these requests suggests.
        """
        part, needed = self.windows.due_inside(k), self._needed(k)
        if part is None or needed < 1:
            self.proved[k] = 0
            return self._keep()
        best: Certificate | None = None
        excluded, allowed = 0, MAX_WORKERS
        length = self.windows.length
        time = machine_time_bound(part, length, [self.windows.allowed[k]])
        count = max(time.value // length, 1)
        while excluded + 1 < allowed:
            certificate = self._ceiling(part, count)
            if self.budget.over():
                raise Stopped
            assert certificate.in_time is not None
            if certificate.in_time.ceiling < needed:
                best, excluded = certificate, count
            else:
                allowed = count
            count = count + 1 if allowed == MAX_WORKERS else (excluded + allowed) // 2
        self.proved[k] = excluded + 1
        self._keep(k, best)
        return None

    def _ceiling(self, part: Problem, count: int) -> Certificate:
        """Return a certificate with a ceiling for so many machines."""
        time_limit = self.effort.get("time_limit", TIME_LIMIT)
        limits = limits_of({"time_limit": time_limit, "threads": self.effort.get("threads")})
        fleet = replace(part, instance=replace(part.instance, workers=count))
        budget = self.budget.part(most=limits.time_limit)
        search = Search(fleet, limits, budget=budget, checkable=True)
        bound_in_time(search, search.budget)
        certificate = search.result("fleet").certificate()
        command = {"command": self.effort.get("command")}
        return replace(certificate, provenance=certificate.provenance | command)

    # ---- the upper side -----------------------------------------------------------------

    def _simulate(self, way: str, name: str, stored: Sequence[int] | None) -> None:
        """Search for numbers of machines on which a scheduler attains, and keep better ones."""
        label = label_of(way, name)

        @cache
        def simulated(counts: tuple[int, ...]) -> Trial | None:
            self.tell(f"{label}: up to {max(counts)} machines, {sum(counts):,} in all windows")
            trial, _ = self.windows.simulated(name, way, counts, self.budget.over)
            if trial is not None and not _failing(trial, self.windows):
                self._offer(trial, label)
            return trial

        floors = self.windows.floors
        if self.formula_misses is None:
            trial = simulated((*map(max, self.formula, floors),))
            failing = range(len(floors)) if trial is None else _failing(trial, self.windows)
            self.formula_misses = len(failing)
        start = [*map(max, stored or (self.best.counts if self.best else self.formula), floors)]
        lowest = [max(self.proved.get(k, 0), floor) for k, floor in enumerate(floors)]
        lower_counts(self.windows, simulated, start, lowest)

    def _offer(self, trial: Trial, label: str) -> None:
        """Keep numbers of machines that suffice, if they take less machine time."""
        if self.best is None or self._cost(trial) < self._cost(self.best):
            self.best, self.scheduler = trial, label
            self._keep()

    def _cost(self, trial: Trial) -> tuple[int, int]:
        """Return the machine time of a trial, and the sum of its numbers."""
        machines = sum(trial.counts)
        return self.windows.length * machines + sum(trial.drained), machines


def _failing(trial: Trial, windows: Windows) -> list[int]:
    """Return the windows in which too many requests miss."""
    return [k for k, is_above in enumerate(map(gt, trial.misses, windows.allowed)) if is_above]


def lower_counts(
    windows: Windows,
    simulated: Callable[[tuple[int, ...]], Trial | None],
    start: Sequence[int],
    lowest: Sequence[int],
) -> Trial | None:
    """Return the trial with the least numbers of machines that a search finds to suffice.

    Parameters
    ----------
    windows
        The windows.
    simulated
        Simulates numbers of machines.
    start, lowest
        Numbers to begin with, and such that fewer are known to be too few.
    """
    # Windows that fail get more machines, and from the second time on the windows before as well.
    counts, below = [*map(max, start, lowest)], [count - 1 for count in lowest]
    for attempt in range(_RAISES):
        trial = simulated(tuple(counts))
        failing = range(len(counts)) if trial is None else _failing(trial, windows)
        if not failing:
            break
        for k in failing:
            below[k] = counts[k]
        for k in failing:
            counts[k] = min(counts[k] + 2**attempt, MAX_WORKERS)
            if attempt and k:
                counts[k - 1] = max(counts[k - 1], counts[k])
    else:
        return None
    assert trial is not None
    # Every other window gets fewer; where too many miss, in it or beside it, it gets them back.
    best, parity = trial, 0
    while any(high - low > 1 for high, low in zip(best.counts, below, strict=True)):
        tried = {
            k: (best.counts[k] + below[k]) // 2
            for k in range(parity, len(counts), 2)
            if best.counts[k] - below[k] > 1
        }
        parity = 1 - parity
        while tried:
            trial = simulated(tuple(tried.get(k, count) for k, count in enumerate(best.counts)))
            failing = range(len(counts)) if trial is None else _failing(trial, windows)
            if trial is not None and not failing:
                best = trial
                break
            near = {j for k in failing for j in (k - 1, k, k + 1)}
            for k in near & tried.keys() or {*tried}:
                below[k] = tried.pop(k)
    return best

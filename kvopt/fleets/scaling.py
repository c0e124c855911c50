"""Find both sides of the numbers of machines over time: proofs by window, and a simulation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Unpack

from kvopt import Certificate, InvalidInput, read_certificate, write_certificate
from kvopt.bounds.machine_time_bound import machine_time_bound
from kvopt.errors import Stopped, TooLarge, refuse
from kvopt.files.atomic import write_atomically
from kvopt.files.reading import parse_json, read_text
from kvopt.fleets.evaluating import TIME_LIMIT, Effort, Observer, covering, gpus_on
from kvopt.fleets.over_time import FleetOverTime, WindowSizes
from kvopt.fleets.sizes import difference
from kvopt.fleets.trace_windows import Trial, Windows, length_of
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.limits import limits_of
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiler import wait_until
from kvopt.problem.clocks import Clock
from kvopt.problem.instance import MAX_WORKERS, Instance
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo
from kvopt.search.attaining import bound_in_time, router_in_time, servers_in_time
from kvopt.simulate.routers import ArrivalRouter, label_of
from kvopt.simulate.routers import router as router_from

SCHEDULERS = ("slo",)
"""Schedulers that are tried, unless others are named."""
RESULTS = "every.json"
"""Name of the file with the numbers of all windows."""

_ATTEMPTS = 10
"""Limit of simulations until all windows attain; each time a window gets twice as many more."""


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
        By default ``slo``, and in a scope with pauses and pieces servers that keep the pace.
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
    refuse("requests", "has no requests", not len(problem.instance))
    no_level = "needs a service level: --slo ttft=2s,tpot=50ms"
    refuse("--every", no_level, problem.slo is None)
    no_share = f"must be a share of each window, 99% say, got {attain}"
    refuse("--attain", no_share, not str(attain).endswith("%"))
    for name in routers:
        reason = "goes with routers that send requests on arrival, such as soonest-token, not with"
        refuse("--every", f"{reason} {name}", not isinstance(router_from(name), ArrivalRouter))
    problem = covering(problem, policies or SCHEDULERS)
    servers = [] if policies else servers_in_time(as_problem(problem, workers=2))
    usual = (router_in_time(problem.clock),)
    pairs = [(way, name) for name, router in servers for way in routers or (router,)]
    pairs += [(way, name) for name in policies or SCHEDULERS for way in routers or usual]
    length = length_of(every, problem, "--every")
    start = 0 if start_up is None else length_of(start_up, problem, "--start-up")
    gpus = gpus_on(problem.clock) if gpus is None else gpus
    directory = None if out is None else Path(out)
    windows = Windows(problem, length, attain, start)
    return _Search(windows, str(every), directory, gpus, effort).results(pairs)


@dataclass
class _Search:
    """Both sides of all windows so far."""

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
        problem, length = self.windows.problem, self.windows.length
        self.machine_time = machine_time_bound(problem, length, self.windows.allowed)

    def results(self, pairs: Sequence[tuple[str, str]]) -> FleetOverTime:
        """Do all work that is left, and return the results."""
        stored: Sequence[int] | None = None
        if self.directory is not None:
            stored = self._read(self.directory)
            problem = self.windows.problem
            whole = Certificate(
                replace(problem.instance, workers=1), None, None,
                clock=problem.clock, scope=problem.scope, machine_time=self.machine_time,
            )  # fmt: skip
            self._write(self.directory, "machine-time", whole)
        with signals_remembered(self.budget.interrupt):
            try:
                for k in range(len(self.windows)):
                    if k not in self.proved:
                        self.tell(f"window {k + 1} of {len(self.windows)}: proof")
                        self.proved[k], certificate = self._proof(k)
                        self._keep(k, certificate)
                for way, name in pairs:
                    with wait_until(self.budget.over):
                        self._simulate(way, name, stored)
            except Stopped:
                if not self.budget.is_interrupted:
                    raise
        return self.result()

    def result(self) -> FleetOverTime:
        """Return the results so far."""
        windows, sizes = self.windows, []
        for k, members in enumerate(windows.members):
            upper = [column[k] for column in self.best or ()]
            size = windows.begin(k), len(members), windows.allowed[k], windows.formula[k]
            sizes.append(WindowSizes(*size, self.proved.get(k), *upper))
        return FleetOverTime(
            windows,
            self.every,
            tuple(sizes),
            self.machine_time.value,
            self.scheduler,
            self.formula_misses,
            self.budget.signal_number,
            self.gpus,
        )

    # ---- files --------------------------------------------------------------------------

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
            if proved is not None and self._is_certified(k, proved, directory):
                self.proved[k] = proved
        counts = [row["sufficient"] for row in rows]
        return None if None in counts else counts

    def _is_certified(self, k: int, proved: int, directory: Path) -> bool:
        """Whether the folder has a certificate that fewer machines are too few."""
        part, needed = self._needed(k)
        if proved <= (needed > 0):
            return True
        path = directory / f"window-{k + 1}.cert.json"
        if part is None or not path.exists():
            return False
        certificate = read_certificate(path)
        is_other = difference(certificate, as_problem(part, workers=proved - 1))
        in_time = certificate.in_time
        return in_time is not None and in_time.ceiling < needed and not is_other

    def _keep(self, k: int = 0, certificate: Certificate | None = None) -> None:
        """Write a certificate of a window, and the results so far."""
        if self.directory is None:
            return
        if certificate is not None:
            self._write(self.directory, f"window-{k + 1}", certificate)
        results = json.dumps(self.result().to_json(), indent=1)
        write_atomically(self.directory / RESULTS, results + "\n")

    def _write(self, directory: Path, name: str, certificate: Certificate) -> None:
        """Write a certificate, unless it has so many requests that it could not be read."""
        directory.mkdir(parents=True, exist_ok=True)
        try:
            write_certificate(certificate, directory / f"{name}.cert.json")
        except TooLarge as error:
            self.tell(f"kvopt: {error}")

    # ---- the lower side -----------------------------------------------------------------

    def _needed(self, k: int) -> tuple[Problem | None, int]:
        """Return the requests due inside a window, and how many of them attain at least."""
        part = self.windows.due_inside(k)
        return part, 0 if part is None else len(part.instance) - self.windows.allowed[k]

    def _proof(self, k: int) -> tuple[int, Certificate | None]:
        """Return the fewest machines that no ceiling shows to be too few, and the proof.

        The search begins at the number that the machine time of these requests suggests.
        """
        part, needed = self._needed(k)
        if part is None or needed < 1:
            return 0, None
        best: Certificate | None = None
        excluded, allowed = 0, MAX_WORKERS
        length = self.windows.length
        time = machine_time_bound(part, length, [self.windows.allowed[k]])
        count = max(time.value // length, 1)
        # One by one until a number is not excluded, then by halves.
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
        return excluded + 1, best

    def _ceiling(self, part: Problem, count: int) -> Certificate:
        """Return a certificate with a ceiling for so many machines."""
        time_limit = self.effort.get("time_limit", TIME_LIMIT)
        limits = limits_of({"time_limit": time_limit, "threads": self.effort.get("threads")})
        budget = self.budget.part(most=limits.time_limit)
        search = Search(as_problem(part, workers=count), limits, budget=budget, checkable=True)
        bound_in_time(search, search.budget)
        certificate = search.result("fleet").certificate()
        command = {"command": self.effort.get("command")}
        return replace(certificate, provenance=certificate.provenance | command)

    # ---- the upper side -----------------------------------------------------------------

    def _simulate(self, way: str, name: str, stored: Sequence[int] | None) -> None:
        """Search for numbers of machines on which a scheduler attains, and keep better ones."""
        windows, label = self.windows, label_of(way, name)

        @cache
        def simulated(counts: tuple[int, ...]) -> Trial | None:
            self.tell(f"{label}: up to {max(counts)} machines, {sum(counts):,} in all windows")
            schedule = windows.simulated(name, way, counts, self.budget.over)
            trial = windows.trial(counts, schedule)
            if trial is not None and not windows.failing(trial):
                self._offer(trial, label)
            return trial

        if self.formula_misses is None:
            trial = simulated((*map(max, windows.formula, windows.floors),))
            self.formula_misses = len(windows.failing(trial))
        counts = stored or (self.best.counts if self.best else windows.formula)
        start = [*map(max, counts, windows.floors)]
        lowest = [max(self.proved.get(k, 0), floor) for k, floor in enumerate(windows.floors)]
        # After the first scheduler only those count that attain on the best numbers so far.
        attempts = _ATTEMPTS if self.best is None else 1
        lower_counts(windows, simulated, start, lowest, attempts)

    def _offer(self, trial: Trial, label: str) -> None:
        """Keep numbers of machines that suffice, if they take less machine time."""

        def cost(trial: Trial) -> tuple[int, int]:
            machines = sum(trial.counts)
            return self.windows.length * machines + sum(trial.drained), machines

        if self.best is None or cost(trial) < cost(self.best):
            self.best, self.scheduler = trial, label
            self._keep()


def lower_counts(
    windows: Windows,
    simulated: Callable[[tuple[int, ...]], Trial | None],
    start: Sequence[int],
    lowest: Sequence[int],
    attempts: int = _ATTEMPTS,
) -> Trial | None:
    """Return the trial with the lowest numbers of machines that a search finds to suffice.

    It begins with ``start``, and with more machines where that fails, if there are more attempts.
    Fewer machines than ``lowest`` are known to be too few.
    """
    # Windows that fail get more machines, and from the second time on the windows before as well.
    counts, below = [*map(max, start, lowest)], [count - 1 for count in lowest]
    for attempt in range(attempts):
        trial = simulated(tuple(counts))
        failing = windows.failing(trial)
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
            failing = windows.failing(trial)
            if trial is not None and not failing:
                best = trial
                break
            near = {j for k in failing for j in (k - 1, k, k + 1)}
            for k in near & tried.keys() or {*tried}:
                below[k] = tried.pop(k)
    return best

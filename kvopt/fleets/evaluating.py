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
from kvopt.errors import Stopped, refuse
from kvopt.fleets.sizes import FleetSizes, bands_of, better, keep, read_folder
from kvopt.fleets.targets import Latency, Measure, Misses, Target
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

MAX_COUNTS = 16
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
    refuse("requests", "has no requests", not len(problem.instance))
    _refuse_mixed_aims(target, attain, problem.slo)
    aim, field = (target, "--target") if attain is None else (attain, "--attain")
    time_limit = effort.get("time_limit", TIME_LIMIT)
    limits = limits_of({"time_limit": time_limit, "threads": effort.get("threads")})
    match = target if isinstance(target, FleetMatch) else None
    pairs = _pairs(match, policies, routers)
    chosen = {checked_integer(count, "--counts", 1) for count in counts or ()}
    matched = set() if match is None else {match.workers}
    _try(pairs, as_problem(problem, workers=max(chosen | matched, default=_SEVERAL)))
    problem = covering(problem, (name for _, name in pairs.values()))
    if match is not None:
        problem = as_problem(problem, workers=match.workers)
    measure = Latency(problem) if problem.slo is None else Misses(problem)
    directory = None if out is None else Path(out)
    certificates = read_folder(directory, problem) if directory else {}
    tell, budget = effort.get("observer", lambda _: None), effort.get("budget", Budget()).part()
    work = _Evaluation(measure, pairs, limits, tell, effort.get("command"), certificates, budget)
    goal = None
    with signals_remembered(budget.interrupt):
        try:
            goal = work.matched(match) if match else measure.target(str(aim))
            minimum, reason = measure.minimum()
            reason = f"cannot be met by any number of machines: {reason}"
            refuse(field, reason, minimum > goal.limit)
            if counts is None:
                chosen = work.numbers(goal.limit, match.workers if match else None)
            work.certify(chosen | matched, directory)
        except Stopped:
            if not budget.over():
                raise
    if goal is None:
        raise KeyboardInterrupt
    return FleetSizes(
        goal,
        bands_of(certificates, measure),
        measure,
        tuple(work.left),
        budget.signal_number,
        gpus_on(problem.clock) if gpus is None else gpus,
        measure.planned() if isinstance(measure, Misses) else None,
    )


def gpus_on(clock: Clock) -> int | None:
    """Return the GPUs of a machine that the name of a batch-time model has, None without one."""
    return None if clock.model is None else gpus_of(clock.model)


def covering(problem: Problem, policies: Iterable[str]) -> Problem:
    """Return the problem with a scope that covers its own and what policies may do."""
    rounds = problem.clock.is_even
    needed = [policy_from(name).scope(rounds=rounds) for name in policies]
    return replace(problem, scope=least_scope([*needed, problem.scope]))


def _refuse_mixed_aims(
    target: str | FleetMatch | None, attain: str | int | None, slo: Slo | None
) -> None:
    """Raise an error unless there is one aim, and a service level to attain."""
    exclusive = "give --match, --target or --attain, one of them"
    refuse("options", exclusive, (target is None) == (attain is None))
    no_level = "needs a service level: --slo ttft=2s,tpot=50ms"
    refuse("--attain", no_level, attain is not None and slo is None)
    no_share = "a mean has no --slo: --attain 99% has"
    refuse("--target", no_share, isinstance(target, str) and slo is not None)


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
class _Evaluation:
    """Results so far, by number of workers."""

    measure: Measure
    pairs: dict[str, tuple[str, str]]
    limits: Limits
    tell: Observer
    command: str | None
    certificates: dict[int, Certificate]
    budget: Budget
    runs: dict[int, list[PolicyRun]] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)

    def matched(self, match: FleetMatch) -> Target:
        """Return the value of a run as a target."""
        value = self.values(match.workers)[match.label]
        if value is None:
            reason = f"{match.label} did not complete every request, so there is nothing to match"
            raise InvalidInput(reason, field="--match")
        where = f"{counted(match.workers, 'machine')}{self.measure.within}"
        return Target(value, f"what {match.label} does on {where}", (match.workers, match.label))

    def certify(self, counts: set[int], directory: Path | None) -> None:
        """Certify each number of workers, and keep the results for others."""
        limits, slo = self.limits, self.measure.problem.slo
        self.left = [count for count in sorted(counts) if not self.is_done(count)]
        bounds: Mapping[int, CheckedBound] = {}
        if slo is not None:
            limits = replace(limits, params=_OF_SLO)
        elif self.left:  # half of the time is for all numbers at once
            limits = replace(limits, time_limit=limits.time_limit / 2)
            bounds = self.bounds(limits)
        for count in list(self.left):
            if self.budget.over():
                return
            runs = self.run(count)
            self.tell(f"{counted(count, 'machine')}: schedules and bounds")
            share = self.budget.left / len(self.left)
            certificate = certify(
                self.fleet(count),
                runs,
                scope=self.measure.problem.scope,
                router=next(iter(self.pairs.values()))[0],
                only_slo=slo is not None,
                command=self.command,
                limits=replace(limits, time_limit=min(limits.time_limit, share)),
            )
            if certificate.signal_number is not None:
                self.budget.interrupt(certificate.signal_number)
            certificate = better(certificate, self.certificates.get(count), bounds.get(count))
            if directory is not None:
                keep(directory, certificate)
            self.certificates[count] = certificate
            self.left.remove(count)

    def bounds(self, of_one: Limits) -> Mapping[int, CheckedBound]:
        """Return bounds for all numbers of workers at once; they share results."""
        self.tell(f"bounds for {', '.join(map(str, self.left))} machines")
        problem = self.measure.problem
        with wait_until(self.budget.over):
            return bounds_by_workers(
                problem.instance,
                self.left,
                problem.clock,
                scope=problem.scope,
                limits=replace(of_one, time_limit=of_one.time_limit * len(self.left)),
                stop=lambda _: self.budget.over(),
            )

    def fleet(self, workers: int) -> Problem:
        """Return the problem for so many workers."""
        return as_problem(self.measure.problem, workers=workers)

    def is_done(self, workers: int) -> bool:
        """Whether a complete certificate with all schedulers exists, not cut short by a signal."""
        certificate = self.certificates.get(workers)
        if certificate is None or certificate.provenance.get("stop_reason") == "interrupted":
            return False
        ended = {run.policy for run in certificate.runs if run.outcome is not Outcome.UNFINISHED}
        return ended >= {*self.pairs}

    def values(self, workers: int) -> dict[str, int | None]:
        """Return the runs of schedulers on so many workers, from a certificate if one exists."""
        if self.is_done(workers):
            return self.measure.band(self.certificates[workers]).runs
        return {run.policy: self.measure.of_run(run) for run in self.run(workers)}

    def run(self, workers: int) -> list[PolicyRun]:
        """Run every scheduler behind every router; a single machine needs none."""
        if workers not in self.runs:
            by_label: dict[str, PolicyRun] = {}
            for label, (way, name) in self.pairs.items():
                key = name if workers == 1 else label
                self.tell(f"{counted(workers, 'machine')}: {label}")
                if key not in by_label:
                    with wait_until(self.budget.over):
                        by_label[key] = run(
                            self.fleet(workers),
                            name,
                            router=way,
                            label=label,
                            should_stop=self.budget.over,
                        )
                by_label[label] = replace(by_label[key], policy=label)
            self.runs[workers] = [by_label[label] for label in self.pairs]
        return self.runs[workers]

    def numbers(self, limit: int, enough: int | None) -> set[int]:
        """Return the numbers of workers between too few and enough."""
        bound, requests = self.measure.quick_bound, len(self.measure.instance)
        below = _last(lambda count: bound(count) > limit, 0, requests)
        done = [c for c in self.certificates if self.is_done(c) and self.reaches(c, limit)]
        enough = enough or min(done, default=None)
        if enough is None:  # one machine for each request is enough
            enough = _last(lambda count: not self.reaches(count, limit), below, requests - 1) + 1
        first = max(below, 1)
        if enough - first < MAX_COUNTS:
            return {*range(first, enough + 1)}
        step = (enough - first) / (MAX_COUNTS - 1)
        between = {first + round(k * step) for k in range(MAX_COUNTS)}
        return between | {below + 1, enough, *(c for c in self.runs if c <= enough)}

    def reaches(self, workers: int, limit: int) -> bool:
        """Whether a scheduler reaches the target."""
        reached = (value for value in self.values(workers).values() if value is not None)
        return min(reached, default=math.inf) <= limit


def _last(holds: Callable[[int], bool], low: int, limit: int) -> int:
    """Return the last number up to a limit at which a condition is true, as up to ``low``."""
    step = 1
    while low + step <= limit and holds(low + step):
        low, step = low + step, 2 * step
    untried = range(low + 1, min(low + step, limit + 1))
    return low + bisect_left(untried, True, key=lambda count: not holds(count))

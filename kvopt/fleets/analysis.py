"""Steps of ``headroom``: run the scheduler of today, simulate, certify, and count machines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from kvopt import Instance, PolicyRun, Progress, certify, run, write_certificate
from kvopt import policy as policy_from
from kvopt.certificates.building import limit_note
from kvopt.errors import Stopped, refuse
from kvopt.fleets.evaluating import Observer, fleet_sizes
from kvopt.fleets.gains import ATTAIN, Headroom
from kvopt.fleets.loads import Loads
from kvopt.fleets.sizes import read_folder
from kvopt.fleets.targets import Misses
from kvopt.fleets.variants import NAMES, variants
from kvopt.incumbent.interrupts import signals_remembered, waiting_within
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.problem.scopes import Scope, least_scope
from kvopt.problem.slo import Slo
from kvopt.simulate.policies.server_policies import PausingPolicy, ServerPolicy

TIME_LIMIT = 120.0
"""Seconds for all of it."""
_SHORTEST = 2.0
"""Seconds below which a further search is not begun."""


_TODAY = 0.4
"""Share of the time: the run of the scheduler of today, which all else is compared with."""
_SETTINGS = 0.4
"""Share of the time: servers with other settings, of what that run left; they often end before."""
_MACHINES = 0.4
"""Share of the time: numbers of machines, of what is left then, if there is a service level."""
_NARROWER = 0.2
"""Share of the time: a narrower scope, of the rest, unless the wide interval decides."""


class HeadroomOptions(TypedDict, total=False):
    """Options of `headroom` besides the problem.

    Parameters
    ----------
    time_limit
        Seconds for all of it, 120 by default.
    threads, seed
        As of `kvopt.solve`.
    out
        A folder for certificates.
    tell
        Receives a line about the work that begins.
    observer
        Receives both sides of the search as they move.
    command
        Command that certificates record.
    notes
        Remarks for readers.
    """

    time_limit: float
    threads: int | None
    seed: int
    out: str | Path | None
    tell: Observer
    observer: Callable[[Progress], None]
    command: str | None
    notes: Sequence[str]


def headroom(
    instance: Problem | Instance | str | Path,
    scheduler: str = "vllm-fcfs",
    *,
    recorded: PolicyRun | None = None,
    router: str = "least-requests",
    clock: Clock | str | None = "seconds",
    slo: Slo | str | None = None,
    attain: str = ATTAIN,
    scope: Scope | str | None = None,
    **options: Unpack[HeadroomOptions],
) -> Headroom:
    """Return how much less requests could wait: at best, by settings, and by predicted lengths.

    Parameters
    ----------
    instance
        The problem, or the file that it is read from, with the machines of today.
    scheduler
        The scheduler of today, whose rules all simulations have.
    recorded
        Its run as a server recorded it, in place of a simulated one.
    router
        How requests come to several machines.
    clock
        ``seconds`` of the usual model, or a clock in seconds.
    slo, attain
        Service level of requests, and the share of them that shall attain it: how many machines
        does that take?
    scope
        Schedules that bounds cover, by default all that the scheduler may do.
    options
        See `HeadroomOptions`.

    Examples
    --------
    >>> from kvopt import Instance, Request, headroom
    >>> requests = [Request(0, 10, o, arrival_seconds=0) for o in (9, 1)]
    >>> answer = headroom(Instance(20, requests), "fcfs", time_limit=4)
    >>> answer.loads.limit, answer.seconds(answer.today.objective)
    ('memory', '0.407 s')
    """
    problem = as_problem(instance, clock=clock, slo=slo)
    refuse("clock", "must be seconds, or a clock of them", not problem.in_seconds)
    refuse("requests", "has no requests", not len(problem.instance))
    needed = policy_from(scheduler).scope(rounds=False)
    if recorded is not None:
        needed = needed.joined(recorded.scope)
    if problem.scope.covers(Scope.SHARING):
        needed = needed.joined(Scope.SHARING)
    covered = least_scope([needed, problem.scope]) if scope is None else scope
    problem = as_problem(problem, scope=covered)
    result = Headroom(
        problem,
        scheduler,
        is_recorded=recorded is not None,
        attain=attain,
        command=options.get("command"),
        notes=tuple(options.get("notes", ())),
    )
    steps = _Steps(result, recorded, router if problem.is_fleet else "central", options)
    steps.refuse_misfits()
    budget = steps.budget
    with signals_remembered(budget.interrupt):
        for step in (
            steps.run_today, steps.simulate, steps.certify, steps.narrow, steps.count_machines,
        ):  # fmt: skip
            if not budget.over():
                with suppress(Stopped), waiting_within(budget):
                    step()
    return replace(steps.result, signal_number=budget.signal_number)


@dataclass
class _Steps:
    """The result so far, and the steps to it, with the arguments of `headroom`."""

    result: Headroom
    recorded: PolicyRun | None
    router: str
    options: HeadroomOptions

    def __post_init__(self) -> None:
        self.problem = self.result.problem
        out = self.options.get("out")
        self.folder = None if out is None else Path(out)
        self.fleet_folder = None if self.folder is None else self.folder / "machines"
        self.tell: Observer = self.options.get("tell", lambda _: None)
        self.budget = Budget(self.options.get("time_limit", TIME_LIMIT))

    def refuse_misfits(self) -> None:
        """Refuse what no time would help: an impossible service level, another folder."""
        if self.problem.slo is None:
            return
        misses = Misses(self.problem)
        minimum, reason = misses.minimum()
        reason = f"cannot be met by any number of machines: {reason}"
        refuse("--attain", reason, minimum > misses.target(self.result.attain).limit)
        if self.fleet_folder is not None:
            read_folder(self.fleet_folder, self.problem)

    def _set(self, **values: Any) -> None:
        self.result = replace(self.result, **values)

    def _run(
        self, scheduler: str, budget: Budget, instance: Instance | None = None
    ) -> PolicyRun | None:
        """Return the run of a scheduler, None if it does not complete in a time."""
        problem = self.problem if instance is None else replace(self.problem, instance=instance)
        try:
            simulated = run(problem, scheduler, router=self.router, should_stop=budget.over)
        except Stopped:
            return None
        return simulated if simulated.is_complete else None

    def run_today(self) -> None:
        """Run the scheduler of today, or take its recorded run, and measure what limits it."""
        budget, scheduler = self.budget.part(_TODAY), self.result.scheduler
        today = self.recorded
        if today is None:
            self.tell(f"today: {scheduler}")
            today = self._run(scheduler, budget)
        if today is None:
            return
        self._set(today=today)
        policy, instance = policy_from(scheduler), self.problem.instance
        if isinstance(policy, PausingPolicy) and (note := limit_note(today, policy.active_limit)):
            self._set(notes=(*self.result.notes, note))
        block = policy.block if isinstance(policy, ServerPolicy) else instance.block_size
        for_all = sum(request.peak + block for request in instance)
        wide = replace(instance, memory=max(instance.memory, min(for_all, LARGEST_INTEGER)))
        roomy = self._run(scheduler, budget, wide)
        self._set(loads=Loads.of(today, block, roomy))

    def simulate(self) -> None:
        """Simulate servers with other settings."""
        self.tell("simulations of other settings")
        budget = self.budget.part(_SETTINGS)
        with waiting_within(budget):
            for variant in variants(
                self.problem, self.result.scheduler, lambda name: self._run(name, budget), budget
            ):
                best = {earlier.name: earlier for earlier in self.result.variants}
                before = best.get(variant.name)
                if before is None or variant.run.objective < before.run.objective:
                    best[variant.name] = variant
                    self._set(variants=tuple(best[name] for name in NAMES if name in best))

    def certify(self) -> None:
        """Certify both sides of the optimum, with the runs of today and of the best variants."""
        result = self.result
        best = min(result.variants, key=lambda variant: variant.run.objective, default=None)
        chosen = [variant.run for variant in (result.best_blind, best) if variant is not None]
        runs = {run.policy: run for run in (result.today, *chosen) if run is not None}
        # Numbers of machines, and a narrower scope, have the rest of the time.
        share = 1.0 - _MACHINES * (self.problem.slo is not None)
        share *= 1.0 - _NARROWER * (self.problem.scope != Scope.RUNS)
        self._keep(self.problem, [*runs.values()], share)

    def narrow(self) -> None:
        """Certify a narrower scope where the interval of the wide one does not decide."""
        scopes = {side.scope for side in self.result.optima}
        if self.result.undecided is None or Scope.RUNS in scopes:
            return
        plain = as_problem(self.problem, scope=Scope.RUNS)
        share = _NARROWER / (_NARROWER + _MACHINES)
        self._keep(plain, [], share if self.problem.slo is not None else 1.0)

    def _keep(self, problem: Problem, runs: list[PolicyRun], share: float) -> None:
        """Certify a problem and keep the certificate, also in the folder."""
        budget, options = self.budget.part(share), self.options
        if budget.left < _SHORTEST and self.result.certificates:
            return
        self.tell(f"bounds and schedules, scope {problem.scope}")
        certificate = certify(
            replace(problem, slo=None),
            runs,
            scope=problem.scope,
            router=self.router,
            time_limit=budget.left,
            threads=options.get("threads"),
            seed=options.get("seed", 0),
            observer=options.get("observer", lambda _: None),
            command=options.get("command"),
        )
        if certificate.signal_number is not None:
            self.budget.interrupt(certificate.signal_number)
        notes = dict.fromkeys((*self.result.notes, *certificate.notes))
        certificates = {**self.result.certificates, problem.scope: certificate}
        self._set(certificates=certificates, notes=tuple(notes))
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{problem.scope}.cert.json"
            write_certificate(certificate, path)
            self._hash(path, path.name)

    def _hash(self, path: Path, name: str) -> None:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self._set(hashes={**self.result.hashes, name: f"sha256:{digest}"})

    def count_machines(self) -> None:
        """Find out how many machines the service level takes."""
        if self.problem.slo is None:
            return
        settings = [v.run.policy for v in self.result.variants if v.name == "settings"]
        sizes = fleet_sizes(
            as_problem(self.problem, workers=1),
            attain=self.result.attain,
            policies=list(dict.fromkeys([self.result.scheduler, *settings])),
            out=self.fleet_folder,
            time_limit=None,
            threads=self.options.get("threads"),
            observer=self.tell,
            command=self.options.get("command"),
            budget=self.budget,
        )
        if sizes.signal_number is not None:
            self.budget.interrupt(sizes.signal_number)
        self._set(machines=sizes)
        for path in sorted(self.fleet_folder.glob("*.cert.json")) if self.fleet_folder else ():
            self._hash(path, f"machines/{path.name}")

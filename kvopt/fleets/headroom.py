"""``headroom``: what a server could gain on a log, by settings, by knowledge, and at best."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypedDict, Unpack

from kvopt import (
    Certificate,
    Instance,
    InvalidInput,
    PolicyRun,
    Progress,
    certify,
    run,
    write_certificate,
)
from kvopt import policy as policy_from
from kvopt.bounds.relaxations import RELAXATIONS
from kvopt.certificates.building import limit_note
from kvopt.errors import Stopped
from kvopt.fleets.loads import Loads
from kvopt.fleets.measures import Latency, Misses
from kvopt.fleets.running import Observer, fleet_sizes
from kvopt.fleets.sizes import FleetSizes, read_folder
from kvopt.fleets.variants import NAMES, Variant, variants
from kvopt.incumbent.certificate import Optimum
from kvopt.incumbent.in_time import attained_in
from kvopt.incumbent.interrupts import signals_remembered, waiting_within
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import Problem, as_problem
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.problem.scopes import Scope, least_scope
from kvopt.problem.slo import Slo
from kvopt.search.stages import FINAL_BOUND
from kvopt.show.summary import (
    Facts,
    Summarised,
    far_apart,
    percent,
    relative_gap,
    rounded,
)
from kvopt.simulate.policies.server_policies import PausingPolicy, ServerPolicy

_HEADROOM_TODAY = 0.4
"""Share of the time: the run of the scheduler of today, which all else is compared with."""
_HEADROOM_SETTINGS = 0.4
"""Share of the time: servers with other settings, of what that run left; they often end before."""
_HEADROOM_MACHINES = 0.4
"""Share of the time: numbers of machines, of what is left then, if there is a service level."""
_HEADROOM_NARROWER = 0.2
"""Share of the rest for a narrower scope; not used if the interval of the wide one decides."""
TIME_LIMIT = 120.0
"""Seconds for all of it."""
ATTAIN = "99%"
"""Share of the requests that shall attain a service level."""
_LEAST = 2.0
"""Seconds below which a further search is not begun."""


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


@dataclass(frozen=True, repr=False)
class Headroom(Summarised):
    """What a server could gain: proved intervals, and simulations without proof.

    Parameters
    ----------
    problem
        The requests, the clock, the scope of the bounds, and a service level if there is one.
    scheduler
        The scheduler of today, whose rules simulations have.
    today
        Its run, None if it did not end in its time.
    is_recorded
        Whether the run was recorded, not simulated.
    certificates
        Certificates of mean latency by scope, the wide one first.
    variants
        Servers with other settings: simulations.
    machines
        Numbers of machines for the service level, None without one.
    attain
        Share of the requests that shall attain the service level.
    loads
        What limits the run of today.
    notes
        Remarks for readers.
    hashes
        Hashes of the certificates in the folder, by name.
    command
        Command that made it.
    signal_number
        The signal that ended the work, if any.
    """

    problem: Problem
    scheduler: str
    today: PolicyRun | None = None
    is_recorded: bool = False
    certificates: Mapping[Scope, Certificate] = field(default_factory=dict)
    variants: tuple[Variant, ...] = ()
    machines: FleetSizes | None = None
    attain: str = ATTAIN
    loads: Loads | None = None
    notes: tuple[str, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    command: str | None = None
    signal_number: int | None = None

    @property
    def measure(self) -> Latency:
        """Mean latency, in seconds."""
        return Latency(self.problem.instance, self.problem.clock)

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the scope that covers the scheduler."""
        return self.certificates.get(self.problem.scope)

    @property
    def optima(self) -> list[Optimum]:
        """Both sides of the optimum by scope, the scope of the scheduler first."""
        certificates = self.certificates.values()
        return [side for one in certificates for side in (one.whole, *one.narrower)]

    @property
    def optimum(self) -> Optimum | None:
        """Both sides of the optimum of that scope."""
        return None if self.certificate is None else self.certificate.whole

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """The total latency of the best schedule known, and the proved bound."""
        return (None, None) if self.optimum is None else self.optimum.ends

    @property
    def gains(self) -> tuple[Fraction | None, Fraction | None]:
        """How much less than today is known to be possible, and the limit of it, in seconds."""
        upper, lower = self.ends
        return self._gain(upper), self._gain(lower)

    def _gain(self, total: int | None) -> Fraction | None:
        """Return how much less than today a total latency is on average, at least 0."""
        if self.today is None or total is None:
            return None
        return self.measure.mean(max(self.today.objective - total, 0))

    def share(self, seconds: Fraction | None) -> str:
        """Return seconds as a share of the mean latency of today."""
        if self.today is None or seconds is None:
            return "-"
        return percent(seconds / (self.measure.mean(self.today.objective) or 1))

    def seconds(self, total: int | None, *, up: bool | None = None) -> str:
        """Return the mean of a total latency, rounded to the nearest or in a direction."""
        if up is None and total is not None:
            return f"{float(self.measure.mean(total)):,.3f} s"
        return f"{self.measure.worded(total, up=bool(up))} s"

    @property
    def undecided(self) -> str | None:
        """What the interval leaves open and what would decide it, None if it decides."""
        apart = far_apart(relative_gap(*self.ends))
        if apart is None and None not in self.ends:
            return None
        blind = self.best_blind
        gain = None if blind is None else self._gain(blind.run.objective)
        is_final = self.certificate is not None and FINAL_BOUND in self.certificate.notes
        longer = "a longer run (-t)" + " for a better schedule" * is_final
        ways = [longer, *self._narrower_ends]
        if blind is not None and gain:
            ways.append(f"a trial of {blind.words}, {float(gain):.3f} s less in a simulation")
        return f"Not decided: {apart or 'a side is unknown'}. What would: {'; '.join(ways)}."

    @property
    def _narrower_ends(self) -> list[str]:
        """Narrower scopes whose interval decides, else a hint at one."""
        narrower = [side for side in self.optima if side.scope != self.problem.scope]
        deciding = [
            side
            for side in narrower
            if None not in side.ends and far_apart(relative_gap(*side.ends)) is None
        ]
        if not deciding:
            return ["a narrower scope (--scope runs)"] * (self.problem.scope != Scope.RUNS)
        return [
            "the scope {}, {} to {}".format(side.scope, *self.interval(side)) for side in deciding
        ]

    def interval(self, optimum: Optimum | None) -> tuple[str, str]:
        """Return the bound and the best schedule known of a scope, rounded outward."""
        upper, lower = (None, None) if optimum is None else optimum.ends
        return self.seconds(lower, up=False), self.seconds(upper, up=True)

    @property
    def best_blind(self) -> Variant | None:
        """The best simulated server that knows no output."""
        blind = [variant for variant in self.variants if variant.is_blind]
        return min(blind, key=lambda variant: variant.run.objective, default=None)

    @property
    def headline(self) -> str:
        """The answer, in seconds."""
        if self.today is None:
            return "How long requests wait today is not known: its run did not end in its time."
        today = f"Requests take {self.seconds(self.today.objective)} on average"
        if self._less is None:
            return f"{today}; how much less is possible is not known."
        return f"{today}; at best {self._less} is possible."

    @property
    def _less(self) -> str | None:
        """How much less is possible at best, None if unknown."""
        gain, ceiling = self.gains
        if gain is None or ceiling is None:
            return None
        low, high = rounded(gain, up=False, places=3), rounded(ceiling, up=True, places=3)
        return f"{low} to {high} s less ({self.share(gain)} to {self.share(ceiling)})"

    def lines(self) -> Iterator[str]:
        """Yield the answers in their order, what is undecided first."""
        if self.undecided is not None:
            yield self.undecided
        yield f"today: {self._today}"
        yield f"at best: {self._possible}"
        yield f"{self.covered}"
        yield from (f"simulated, {name}: {text}" for name, text in self._simulated())
        yield f"machines: {self._machines}"
        limit = "not known" if self.loads is None else self.loads.sentence
        yield f"what limits: {limit}"

    @property
    def _today(self) -> str:
        if self.today is None:
            return f"{self.scheduler} did not end in its time; --limit N takes the first N requests"
        measures = self.today.measures()
        text = (
            f"{self.seconds(self.today.objective)} on average, 99% within "
            f"{measures['latency']['p99']:.3f} s, first token after "
            f"{measures['time_to_first_token']['mean']:.3f} s"
        )
        if self.problem.slo is not None:
            attained = attained_in(self.today, self.problem.slo) or 0
            share = percent(Fraction(attained, len(self.problem.instance)))
            text += f", {share} attain {self.problem.slo}"
        source = "recorded" if self.is_recorded else "simulated"
        return f"{text} ({source}: {self.today.policy})"

    @property
    def _possible(self) -> str:
        if self.optimum is None:
            return "not known, the time was over"
        low, high = self.interval(self.optimum)
        text = f"between {low}, which is proved, and {high}, by a schedule that knows all requests"
        return text if self._less is None else f"{text}: {self._less}"

    @property
    def covered(self) -> str:
        """The sentence on the schedules that the interval covers, and on the bound."""
        certificate = self.certificate
        if certificate is None or certificate.lower is None:
            return self.problem.scope.sentence
        steps = [RELAXATIONS[name].sentence for name in certificate.lower.relaxations]
        bound = f"bound: {certificate.lower.bounded_by}"
        return "; ".join([certificate.scope.sentence, bound, *steps])

    def _simulated(self) -> Iterator[tuple[str, str]]:
        """Yield what was simulated: settings, orders without lengths, predicted lengths."""
        for variant in self.variants:
            gain = self._gain(variant.run.objective)
            less = f", {float(gain):.3f} s less" if gain else ", no gain" if gain == 0 else ""
            text = f"{self.seconds(variant.run.objective)}{less}"
            if "off by" not in variant.words:
                text += f": vllm serve {variant.flags}"
                text += f", {variant.priority} as priority" if variant.priority else ""
            yield variant.words, text
        left = {*NAMES} - {variant.name for variant in self.variants}
        if left:
            yield "not in this time", "; ".join(NAMES[name] for name in NAMES if name in left)

    @property
    def _machines(self) -> str:
        if self.problem.slo is None:
            return "name a service level: --slo ttft=2s,tpot=50ms"
        sizes = self.machines
        is_known = sizes is not None and sizes.bands
        return sizes.answer if sizes and is_known else "not known yet: a longer run (-t)"

    def markdown(self) -> str:
        """Return a box to paste into an issue or a pull request."""
        text = "\n".join(f"> - {line}" for line in self.lines())
        hashes = "\n".join(f"> - `{name}` {value}" for name, value in self.hashes.items())
        return (
            f"> **Headroom: {self.headline}**\n>\n{text}\n>\n"
            f"> Proved: what `kvopt verify` checks. Simulated: settings and predictions.\n>\n"
            f"> `{self.command or 'kvopt.headroom'}`\n>\n{hashes}\n"
        )

    def facts(self) -> Facts:
        """Return the facts of a summary."""
        instance = self.problem.instance
        lines = (line.partition(": ") for line in self.lines() if ": " in line)
        return {"instance": instance.name, **{name: text for name, _, text in lines}}

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``kvopt headroom --json`` prints."""
        upper, lower = self.ends
        gain, ceiling = self.gains
        today = self.today
        return {
            "headline": self.headline,
            "undecided": self.undecided,
            "instance": self.problem.instance.hash,
            "requests": len(self.problem.instance),
            "machines_today": self.problem.instance.workers,
            "memory": self.problem.instance.memory,
            "today": None
            if today is None
            else {
                "policy": today.policy,
                "is_recorded": self.is_recorded,
                "value_ns": today.objective,
                **today.measures(),
            },
            "upper_ns": upper,
            "lower_ns": lower,
            "less_seconds": [None if end is None else float(end) for end in (gain, ceiling)],
            "scope": str(self.problem.scope),
            "covered": self.covered,
            "simulated": [variant.to_json() for variant in self.variants],
            "machines": None if self.machines is None else self.machines.to_json(),
            "loads": None if self.loads is None else self.loads.to_json(),
            "certificates": dict(self.hashes),
            "notes": list(self.notes),
            "markdown": self.markdown(),
        }


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
    >>> found = headroom(Instance(20, requests), "fcfs", time_limit=4)
    >>> found.loads.limit, found.seconds(found.today.objective)
    ('memory', '0.407 s')
    """
    problem = as_problem(instance, clock=clock, slo=slo)
    if not problem.in_seconds:
        raise InvalidInput("must be seconds, or a clock of them", field="clock")
    if not len(problem.instance):
        raise InvalidInput("has no requests", field="requests")
    needed = policy_from(scheduler).scope(rounds=False)
    if recorded is not None:
        needed = needed.joined(recorded.scope)
    if problem.scope.covers(Scope.SHARING):
        needed = needed.joined(Scope.SHARING)
    covered = least_scope([needed, problem.scope]) if scope is None else scope
    problem = as_problem(problem, scope=covered)
    work = _Work(problem, scheduler, recorded, router, attain, options)
    work.refuse_misfits()
    with signals_remembered(work.budget.interrupt):
        for step in (work.run_today, work.simulate, work.certify, work.narrow, work.count_machines):
            if not work.budget.over():
                with suppress(Stopped), waiting_within(work.budget):
                    step()
    return replace(work.result, signal_number=work.budget.signal_number)


class _Work:
    """The result so far, and the steps to it.

    Parameters
    ----------
    problem
        The problem.
    scheduler, recorded, router
        The scheduler of today, its run if it was recorded, and the router of several machines.
    attain
        Share of the requests that shall attain the service level.
    options
        Those of `headroom`.

    Attributes
    ----------
    result
        The result so far.
    budget
        The time.
    """

    def __init__(
        self,
        problem: Problem,
        scheduler: str,
        recorded: PolicyRun | None,
        router: str,
        attain: str,
        options: HeadroomOptions,
    ) -> None:
        self.problem, self._recorded = problem, recorded
        self._router = router if problem.is_fleet else "central"
        self._out = None if (out := options.get("out")) is None else Path(out)
        self._tell: Observer = options.get("tell", lambda _: None)
        self._options = options
        self.budget = Budget(options.get("time_limit", TIME_LIMIT))
        self.result = Headroom(
            problem,
            scheduler,
            is_recorded=recorded is not None,
            attain=attain,
            command=options.get("command"),
            notes=tuple(options.get("notes", ())),
        )

    @property
    def _fleet_folder(self) -> Path | None:
        return None if self._out is None else self._out / "machines"

    def refuse_misfits(self) -> None:
        """Refuse what no time would help: an impossible service level, another folder."""
        if (slo := self.problem.slo) is None:
            return
        misses = Misses(self.problem.instance, self.problem.clock, slo)
        sure, reason = misses.least()
        if sure > misses.target(self.result.attain).most:
            reason = f"cannot be met by any number of machines: {reason}"
            raise InvalidInput(reason, field="--attain")
        if self._fleet_folder is not None:
            read_folder(self._fleet_folder, misses, self.problem.scope)

    def _set(self, **values: Any) -> None:
        self.result = replace(self.result, **values)

    def _run(
        self, scheduler: str, budget: Budget, instance: Instance | None = None
    ) -> PolicyRun | None:
        """Return the run of a scheduler, None if it does not complete in a time."""
        problem = self.problem if instance is None else replace(self.problem, instance=instance)
        try:
            simulated = run(problem, scheduler, router=self._router, should_stop=budget.over)
        except Stopped:
            return None
        return simulated if simulated.is_complete else None

    def run_today(self) -> None:
        """Run the scheduler of today, or take its recorded run, and measure what limits it."""
        budget, scheduler = self.budget.part(_HEADROOM_TODAY), self.result.scheduler
        today = self._recorded
        if today is None:
            self._tell(f"today: {scheduler}")
            today = self._run(scheduler, budget)
        if today is None:
            return
        self._set(today=today)
        policy, instance = policy_from(scheduler), self.problem.instance
        if isinstance(policy, PausingPolicy):
            note = limit_note(today, policy.active_limit)
            self._set(notes=(*self.result.notes, *([note] if note else [])))
        block = policy.block if isinstance(policy, ServerPolicy) else instance.block_size
        for_all = sum(request.peak + block for request in instance)
        wide = replace(instance, memory=max(instance.memory, min(for_all, LARGEST_INTEGER)))
        roomy = self._run(scheduler, budget, wide)
        self._set(loads=Loads.of(today, block, roomy))

    def simulate(self) -> None:
        """Simulate servers with other settings."""
        self._tell("simulations of other settings")
        budget = self.budget.part(_HEADROOM_SETTINGS)
        with waiting_within(budget):
            for variant in variants(
                self.problem, self.result.scheduler, lambda name: self._run(name, budget), budget
            ):
                best = {one.name: one for one in self.result.variants}
                before = best.get(variant.name)
                if before is None or variant.run.objective < before.run.objective:
                    best[variant.name] = variant
                    ordered = (best[name] for name in NAMES if name in best)
                    self._set(variants=tuple(ordered))

    def certify(self) -> None:
        """Certify both sides of the optimum, with the runs of today and of the best variants."""
        result = self.result
        best = min(result.variants, key=lambda one: one.run.objective, default=None)
        chosen = [one.run for one in (result.best_blind, best) if one is not None]
        runs = {one.policy: one for one in (result.today, *chosen) if one is not None}
        share = self._share * (1.0 - _HEADROOM_NARROWER * (self.problem.scope != Scope.RUNS))
        self._keep(self.problem, [*runs.values()], share)

    @property
    def _share(self) -> float:
        """Share of the remaining time for mean latency; numbers of machines have the rest."""
        return 1.0 - _HEADROOM_MACHINES * (self.problem.slo is not None)

    def narrow(self) -> None:
        """Certify a narrower scope where the interval of the wide one does not decide."""
        scopes = {side.scope for side in self.result.optima}
        if self.result.undecided is None or Scope.RUNS in scopes:
            return
        plain = as_problem(self.problem, scope=Scope.RUNS)
        share = _HEADROOM_NARROWER / (_HEADROOM_NARROWER + _HEADROOM_MACHINES)
        self._keep(plain, [], share if self.problem.slo is not None else 1.0)

    def _keep(self, problem: Problem, runs: list[PolicyRun], share: float) -> None:
        """Certify a problem and keep the certificate, also in the folder."""
        budget = self.budget.part(share)
        if budget.left < _LEAST and self.result.certificates:
            return
        self._tell(f"bounds and schedules, scope {problem.scope}")
        certificate = certify(
            replace(problem, slo=None),
            runs,
            scope=problem.scope,
            router=self._router,
            time_limit=budget.left,
            threads=self._options.get("threads"),
            seed=self._options.get("seed", 0),
            observer=self._options.get("observer", lambda _: None),
            command=self._options.get("command"),
        )
        if certificate.signal_number is not None:
            self.budget.interrupt(certificate.signal_number)
        certificates = {**self.result.certificates, problem.scope: certificate}
        notes = dict.fromkeys((*self.result.notes, *certificate.notes))
        self._set(certificates=certificates, notes=tuple(notes))
        if self._out is not None:
            self._out.mkdir(parents=True, exist_ok=True)
            name = f"{problem.scope}.cert.json"
            write_certificate(certificate, self._out / name)
            self._hash(self._out / name)

    def _hash(self, path: Path) -> None:
        assert self._out is not None
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        name = path.relative_to(self._out).as_posix()
        self._set(hashes={**self.result.hashes, name: f"sha256:{digest}"})

    def count_machines(self) -> None:
        """Find out how many machines the service level takes."""
        if self.problem.slo is None:
            return
        settings = [one.run.policy for one in self.result.variants if one.name == "settings"]
        one = replace(self.problem.instance, workers=1)
        sizes = fleet_sizes(
            replace(self.problem, instance=one),
            attain=self.result.attain,
            policies=list(dict.fromkeys([self.result.scheduler, *settings])),
            out=self._fleet_folder,
            time_limit=None,
            threads=self._options.get("threads"),
            observer=self._tell,
            command=self._options.get("command"),
            budget=self.budget,
        )
        if sizes.signal_number is not None:
            self.budget.interrupt(sizes.signal_number)
        self._set(machines=sizes)
        for path in sorted(self._fleet_folder.glob("*.cert.json")) if self._fleet_folder else ():
            self._hash(path)

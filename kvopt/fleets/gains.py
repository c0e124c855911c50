"""What a server could gain on a log: by settings, by knowledge, and at best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from kvopt import Certificate, PolicyRun
from kvopt.bounds.relaxations import RELAXATIONS
from kvopt.fleets.loads import Loads
from kvopt.fleets.sizes import FleetSizes
from kvopt.fleets.targets import Latency
from kvopt.fleets.variants import NAMES, Variant
from kvopt.incumbent.certificate import Optimum
from kvopt.incumbent.in_time import attained_in
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search.stages import FINAL_BOUND
from kvopt.show.summary import Facts, Summarised, far_apart, percent, relative_gap, rounded

ATTAIN = "99%"
"""Share of the requests that shall attain a service level."""


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
        return Latency(self.problem)

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the scope that covers the scheduler."""
        return self.certificates.get(self.problem.scope)

    @property
    def optima(self) -> list[Optimum]:
        """Both sides of the optimum by scope, the scope of the scheduler first."""
        certificates = self.certificates.values()
        return [side for proved in certificates for side in (proved.whole, *proved.narrower)]

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
        for name, text in self.answers.items():
            yield f"{name}: {text}"
            if name == "at best":
                yield self.covered

    @property
    def answers(self) -> dict[str, str]:
        """Answers by their questions, in the order of these."""
        possible = "not known, the time was over"
        if self.optimum is not None:
            low, high = self.interval(self.optimum)
            possible = f"between {low}, which is proved, and {high}, by a schedule that knows all "
            possible += "requests" if self._less is None else f"requests: {self._less}"
        sizes, machines = self.machines, "name a service level: --slo ttft=2s,tpot=50ms"
        if self.problem.slo is not None:
            machines = sizes.answer if sizes and sizes.bands else "not known yet: a longer run (-t)"
        return {
            "today": self._today,
            "at best": possible,
            **{f"simulated, {name}": text for name, text in self._simulated()},
            "machines": machines,
            "what limits": "not known" if self.loads is None else self.loads.sentence,
        }

    @property
    def source(self) -> str:
        """Source of the run of today."""
        return "recorded" if self.is_recorded else "simulated"

    @property
    def _today(self) -> str:
        """Return how long requests wait today, and how many attain the service level."""
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
        return f"{text} ({self.source}: {self.today.policy})"

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
        done = {variant.name for variant in self.variants}
        if left := [words for name, words in NAMES.items() if name not in done]:
            yield "not in this time", "; ".join(left)

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
        today = None
        if self.today is not None:
            today = {
                "policy": self.today.policy,
                "is_recorded": self.is_recorded,
                "value_ns": self.today.objective,
                **self.today.measures(),
            }
        return {
            "headline": self.headline,
            "undecided": self.undecided,
            "instance": self.problem.instance.hash,
            "requests": len(self.problem.instance),
            "machines_today": self.problem.instance.workers,
            "memory": self.problem.instance.memory,
            "today": today,
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

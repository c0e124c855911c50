"""Measures of fleets, less is better: total latency, or misses of a service level."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import ClassVar, NamedTuple

from kvopt import Certificate, Instance, PolicyRun, Scope
from kvopt.bounds.relaxations import chain, relaxed_by
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.slo_ceiling import least_times, slo_ceiling, spans_of
from kvopt.bounds.volume import volume_bound
from kvopt.errors import InvalidInput, shown
from kvopt.fleets.planners import arrival_span, planned_machines, service_rate
from kvopt.incumbent.in_time import attained_in
from kvopt.kernels.budget import Budget
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.clocks import Clock
from kvopt.problem.problem import Problem
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.problem.slo import Levels, Slo, allowed_misses
from kvopt.show.summary import rounded

_FIELD = "--target"
_UNBOUNDED = re.compile(r"p[0-9.]+|median|max|worst")
_LENGTHS = {"h": 3600 * NANOSECONDS, "m": 60 * NANOSECONDS, "s": NANOSECONDS, "ms": MILLISECOND}
"""Nanoseconds of the units."""


@dataclass(frozen=True)
class Target:
    """A target for a fleet.

    Parameters
    ----------
    most
        A total latency in units of the clock, or a number of misses.
    said
        Description for a sentence.
    run
        The run that has this value, if any: number of machines, and name.
    """

    most: int
    said: str
    run: tuple[int, str] | None = None


class Known(NamedTuple):
    """Results of a certificate for a number of machines: both sides, and schedulers.

    No schedule is below ``lower``, which ``bounded_by`` proves; ``found_by`` found one with
    ``upper``.
    """

    lower: int | None
    upper: int | None
    found_by: str | None
    runs: dict[str, int | None]
    bounded_by: str | None = None


@dataclass(frozen=True)
class Latency:
    """Total latency, in units of the clock; tables have means.

    Parameters
    ----------
    instance
        The problem; its number of workers is ignored.
    clock
        How long rounds last.
    """

    instance: Instance
    clock: Clock

    slo: ClassVar[None] = None
    name = "mean"
    scale = "log"
    within = ""

    @property
    def axis(self) -> str:
        """Label of the axis of a picture."""
        return f"mean latency, {self._words}"

    @property
    def unit(self) -> str:
        """Unit of values in JSON."""
        return "rounds" if self.clock.is_even else "ns"

    @property
    def _words(self) -> str:
        return "rounds" if self.clock.is_even else "seconds"

    def target(self, text: str) -> Target:
        """Return the target of ``mean=5s``, or of ``mean=100`` in rounds.

        Examples
        --------
        >>> from kvopt import Instance, Request
        >>> from kvopt.problem.clocks import ROUNDS
        >>> Latency(Instance(9, [Request(0, 1, 2)] * 3), ROUNDS).target("mean=2.5").most
        7
        """
        number, unit = _parsed(text)
        mean = number * unit_length(unit, self.instance, self.clock, _FIELD, "mean=5s, mean=800ms")
        total = int(mean * self._count)
        if mean <= 0 or total > LARGEST_INTEGER:
            reason = f"must be more than 0, and less than 2^53 in all, got {text}"
            raise InvalidInput(reason, field=_FIELD)
        number_text = text.partition("=")[2].removesuffix(unit)
        return Target(total, f"a mean latency of {number_text} {unit or 'rounds'}")

    def of_run(self, run: PolicyRun) -> int | None:
        """Return the total latency of a run, None if it did not complete."""
        return run.objective

    def quick_bound(self, workers: int, scope: Scope) -> int:
        """Return the volume bound, in seconds that of the first shares."""
        fleet = replace(self.instance, workers=workers)
        if (model := self.clock.model) is not None:
            tokens = fleet.in_tokens()
            return seconds_bound(tokens, model, scope=scope, budget=Budget(0.0)).value_ns
        problem = Problem(fleet, scope=scope)
        wider, more = relaxed_by(problem, chain(problem, "volume"))
        return volume_bound(wider.instance) + more

    @property
    def _count(self) -> int:
        """How many latencies are in the total: each as often as its weight."""
        return sum(request.weight for request in self.instance)

    def least(self) -> tuple[int, str]:
        """Return the total with a machine for each request, and its text.

        No number of machines has less, and one machine for each request reaches it.
        """
        _, alone = least_times(self.instance, self.clock.model)
        total = sum(map(mul, (request.weight for request in self.instance), alone))
        unit = "rounds" if self.clock.is_even else "s"
        mean = self.worded(total, up=False)
        cached = ", its prefix cached," * ("prefix" in self.instance.extras)
        return total, f"a request with a machine of its own{cached} takes {mean} {unit} on average"

    def known(self, certificate: Certificate) -> Known:
        """Return the total latencies of a certificate."""
        runs = {run.policy: run.objective for run in certificate.runs}
        bounded_by = None if certificate.lower is None else certificate.lower.bounded_by
        found_by = certificate.provenance.get("found_by")
        return Known(certificate.lower_bound, certificate.objective, found_by, runs, bounded_by)

    def mean(self, total: int) -> Fraction:
        """Return the mean of a total, in rounds or seconds, for a picture."""
        return Fraction(total, max(self._count, 1) * self.clock.scale)

    def worded(self, value: int | None, *, up: bool) -> str:
        """Return the mean of a total for a table, rounded outward."""
        return rounded(None if value is None else self.mean(value), up=up, places=3)

    def said(self, target: Target) -> str:
        """Return the target as a mean."""
        return f"{self.worded(target.most, up=False)} {self._words} on average"


@dataclass(frozen=True)
class Misses:
    """Requests that do not attain a service level; tables have shares.

    Parameters
    ----------
    instance, clock
        As of `Latency`.
    slo
        The service level.
    """

    instance: Instance
    clock: Clock
    slo: Slo

    name = "misses"
    scale = "linear"
    axis = "misses, % of requests"
    unit = "misses"

    @property
    def within(self) -> str:
        """Return the service level in words."""
        return f" with {self.slo}"

    @cached_property
    def _levels(self) -> Levels:
        return self.slo.levels(self.instance, rounds=self.clock.is_even)

    def target(self, text: str) -> Target:
        """Return the target of ``99%`` or of a number that attain.

        Examples
        --------
        >>> from kvopt import Instance, Request
        >>> from kvopt.problem.clocks import ROUNDS
        >>> ninety = Instance(9, [Request(0, 1, 2)] * 90)
        >>> Misses(ninety, ROUNDS, Slo(e2e=40)).target("97.5%").most
        2
        """
        most = allowed_misses(text, len(self.instance))
        share = text if text.endswith("%") else f"{int(text):,}"
        return Target(most, f"{share} with {self.slo}")

    def _late(self, attained: int | None) -> int | None:
        return None if attained is None else len(self.instance) - attained

    def of_run(self, run: PolicyRun) -> int | None:
        """Return how many miss in a run, None if it did not complete."""
        return self._late(attained_in(run, self.slo))

    def quick_bound(self, workers: int, scope: Scope) -> int:
        """Return how many miss by a ceiling of equal prices."""
        fleet, model = replace(self.instance, workers=workers), self.clock.model
        ceiling = slo_ceiling(fleet, self._levels, model, scope=scope, budget=Budget(0.0))
        return len(fleet) - ceiling.value

    def planned(self) -> int:
        """Return the number of machines of planners' formula, which proves nothing."""
        rate = service_rate(self.instance, self.clock, self._levels)
        span = arrival_span(self.clock.arrivals(self.instance), self.clock)
        return planned_machines(len(self.instance), span, rate)

    def least(self) -> tuple[int, str]:
        """Return how many miss even with a machine of their own, and the text."""
        alone = least_times(self.instance, self.clock.model)
        late = len(self.instance) - len(spans_of(self._levels, *alone))
        return late, (
            f"{late:,} of {len(self.instance):,} requests ({self.worded(late, up=False)}) miss "
            "even with a machine of their own"
        )

    def known(self, certificate: Certificate) -> Known:
        """Return the misses of a certificate."""
        known = certificate.in_time
        if known is None:
            return Known(None, None, None, {})
        pairs = zip(certificate.runs, known.attained, strict=True)
        runs = {run.policy: self._late(count) for run, count in pairs}
        sides = self._late(known.ceiling), self._late(known.best_attained)
        prices = f"prices of {'tokens' if self.clock.is_even else 'machine time'}"
        return Known(*sides, certificate.provenance.get("attained_by"), runs, prices)

    def mean(self, misses: int) -> Fraction:
        """Return the share of all requests, in percent, for a picture."""
        return Fraction(100 * misses, max(len(self.instance), 1))

    def worded(self, value: int | None, *, up: bool) -> str:
        """Return the share for a table, rounded outward."""
        return "-" if value is None else f"{rounded(self.mean(value), up=up, places=2)}%"

    def said(self, target: Target) -> str:
        """Return how many may miss."""
        return f"at most {target.most:,} of {len(self.instance):,} requests miss"


Measure = Latency | Misses


def unit_length(
    unit: str, instance: Instance, clock: Clock, field: str, example: str
) -> Fraction | int:
    """Return how many units of the clock make one of the given units; none is a round."""
    if clock.is_even and not unit:
        return 1
    if not unit:
        raise InvalidInput(f"needs a unit with --seconds: {example}", field=field)
    if not clock.is_even:
        return _LENGTHS[unit]
    if instance.round_ms is None:
        reason = f"{unit} needs --seconds, or an instance with round_ms"
        raise InvalidInput(reason, field=field)
    return _LENGTHS[unit] / (Fraction(str(instance.round_ms)) * MILLISECOND)


def _parsed(text: str) -> tuple[Fraction, str]:
    """Return the number and the unit of a mean latency."""
    key, _, value = text.partition("=")
    match = re.fullmatch(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)(ms|s|)", value)
    if _UNBOUNDED.fullmatch(key):
        reason = (
            f"{key} cannot be bounded: bounds are of the sum of all latencies, and a schedule may "
            "let a few requests wait for the sake of the others; give a mean, or --slo and "
            "--attain 99%"
        )
    elif key == "misses":
        reason = "misses are given as --attain 99%, with --slo"
    elif key == "mean" and match:
        return Fraction(match[1]), match[2]
    else:
        reason = f"must be mean=100 or mean=5s, got {shown(text)}"
    raise InvalidInput(reason, field=_FIELD)

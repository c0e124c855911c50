"""Targets of fleets, and their measures, less is better: total latency, or misses of a level."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import ClassVar

from kvopt import Certificate, Instance, PolicyRun
from kvopt.bounds.relaxations import chain, relaxed_by
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.slo_ceiling import least_times, slo_ceiling, spans_of
from kvopt.bounds.volume import volume_bound
from kvopt.errors import InvalidInput, refuse, shown
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
    """A target for a fleet, in words for a sentence.

    ``limit`` is a total latency in units of the clock, or a number of misses.  ``run`` has this
    value, if any does: its number of machines, and its name.
    """

    limit: int
    words: str
    run: tuple[int, str] | None = None


@dataclass(frozen=True)
class Band:
    """Result for one number of machines.

    Parameters
    ----------
    workers
        Number of machines.
    lower, upper
        No schedule has a smaller total latency, or fewer misses, and one is known that has this
        many; None while unknown.
    lower_from, upper_from
        Number of machines of the certificate that proves it: a bound for more machines holds for
        fewer, and a schedule may leave machines unused.
    found_by
        Source of the schedule.
    runs
        The value of each scheduler, by its name after that of its router; None if it did not
        complete.
    bounded_by
        The kind of the proof.
    """

    workers: int
    lower: int | None = None
    upper: int | None = None
    lower_from: int | None = None
    upper_from: int | None = None
    found_by: str | None = None
    runs: dict[str, int | None] = field(default_factory=dict)
    bounded_by: str | None = None


@dataclass(frozen=True)
class _OfProblem:
    """A measure of the schedules of a problem, whose number of workers is ignored."""

    problem: Problem

    places: ClassVar[int]
    """Decimal places of a value in a table."""
    sign: ClassVar[str] = ""
    """Sign after it."""

    @property
    def instance(self) -> Instance:
        """The instance of the problem."""
        return self.problem.instance

    @property
    def clock(self) -> Clock:
        """The clock of the problem."""
        return self.problem.clock

    def mean(self, value: int) -> Fraction:
        """Return a value for a picture."""
        raise NotImplementedError

    def worded(self, value: int | None, *, up: bool) -> str:
        """Return a value for a table, rounded outward, a dash if it is unknown."""
        if value is None:
            return "-"
        return rounded(self.mean(value), up=up, places=self.places) + self.sign


@dataclass(frozen=True)
class Latency(_OfProblem):
    """Total latency, in units of the clock; tables have means."""

    name = "mean"
    scale = "log"
    within = ""
    places = 3

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
        >>> Latency(Problem(Instance(9, [Request(0, 1, 2)] * 3))).target("mean=2.5").limit
        7
        """
        number, unit = _parsed(text)
        mean = number * unit_length(unit, self.problem, _FIELD, "mean=5s, mean=800ms")
        total = int(mean * self.instance.total_weight)
        reason = f"must be more than 0, and less than 2^53 in all, got {text}"
        refuse(_FIELD, reason, mean <= 0 or total > LARGEST_INTEGER)
        number_text = text.partition("=")[2].removesuffix(unit)
        return Target(total, f"a mean latency of {number_text} {unit or 'rounds'}")

    def of_run(self, run: PolicyRun) -> int | None:
        """Return the total latency of a run, None if it did not complete."""
        return run.objective

    def quick_bound(self, workers: int) -> int:
        """Return the volume bound, in seconds that of the first shares."""
        fleet = replace(self.instance, workers=workers)
        scope = self.problem.scope
        if (model := self.clock.model) is not None:
            tokens = fleet.in_tokens()
            return seconds_bound(tokens, model, scope=scope, budget=Budget(0.0)).value_ns
        problem = Problem(fleet, scope=scope)
        wider, more = relaxed_by(problem, chain(problem, "volume"))
        return volume_bound(wider.instance) + more

    def minimum(self) -> tuple[int, str]:
        """Return the total with a machine for each request, and its text.

        No number of machines has less, and one machine for each request reaches it.
        """
        _, alone = least_times(self.instance, self.clock.model)
        total = sum(map(mul, (request.weight for request in self.instance), alone))
        unit = "rounds" if self.clock.is_even else "s"
        mean = self.worded(total, up=False)
        cached = ", its prefix cached," * ("prefix" in self.instance.extras)
        return total, f"a request with a machine of its own{cached} takes {mean} {unit} on average"

    def band(self, certificate: Certificate) -> Band:
        """Return the total latencies of a certificate."""
        count = certificate.instance.workers
        sides = certificate.lower_bound, certificate.objective
        runs = {run.policy: run.objective for run in certificate.runs}
        bounded_by = None if certificate.lower is None else certificate.lower.bounded_by
        found_by = certificate.provenance.get("found_by")
        return Band(count, *sides, count, count, found_by, runs, bounded_by)

    def mean(self, value: int) -> Fraction:
        """Return the mean of a total, in rounds or seconds."""
        return Fraction(value, max(self.instance.total_weight, 1) * self.clock.scale)

    def sentence(self, target: Target) -> str:
        """Return the target as a mean."""
        return f"{self.worded(target.limit, up=False)} {self._words} on average"


@dataclass(frozen=True)
class Misses(_OfProblem):
    """Requests that do not attain the service level of the problem; tables have shares."""

    name = "misses"
    scale = "linear"
    axis = "misses, % of requests"
    unit = "misses"
    places, sign = 2, "%"

    @property
    def slo(self) -> Slo:
        """The service level."""
        assert self.problem.slo is not None
        return self.problem.slo

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
        >>> ninety = Problem(Instance(9, [Request(0, 1, 2)] * 90), slo=Slo(e2e=40))
        >>> Misses(ninety).target("97.5%").limit
        2
        """
        limit = allowed_misses(text, len(self.instance))
        share = text if text.endswith("%") else f"{int(text):,}"
        return Target(limit, f"{share} with {self.slo}")

    def _late(self, attained: int | None) -> int | None:
        return None if attained is None else len(self.instance) - attained

    def of_run(self, run: PolicyRun) -> int | None:
        """Return how many miss in a run, None if it did not complete."""
        return self._late(attained_in(run, self.slo))

    def quick_bound(self, workers: int) -> int:
        """Return how many miss by a ceiling of equal prices."""
        fleet, scope = replace(self.instance, workers=workers), self.problem.scope
        model, budget = self.clock.model, Budget(0.0)
        ceiling = slo_ceiling(fleet, self._levels, model, scope=scope, budget=budget)
        return len(fleet) - ceiling.value

    def planned(self) -> int:
        """Return the number of machines of planners' formula, which proves nothing."""
        arrivals = self.clock.arrivals(self.instance)
        span = max(max(arrivals) - min(arrivals), self.clock.scale)
        return planned_machines(
            len(arrivals), span, service_rate(self.instance, self.clock, self._levels)
        )

    def minimum(self) -> tuple[int, str]:
        """Return how many miss even with a machine of their own, and the text."""
        alone = least_times(self.instance, self.clock.model)
        late = len(self.instance) - len(spans_of(self._levels, *alone))
        return late, (
            f"{late:,} of {len(self.instance):,} requests ({self.worded(late, up=False)}) miss "
            "even with a machine of their own"
        )

    def band(self, certificate: Certificate) -> Band:
        """Return the misses of a certificate."""
        count, in_time = certificate.instance.workers, certificate.in_time
        if in_time is None:
            return Band(count)
        pairs = zip(certificate.runs, in_time.attained, strict=True)
        runs = {run.policy: self._late(attained) for run, attained in pairs}
        sides = self._late(in_time.ceiling), self._late(in_time.best_attained)
        prices = f"prices of {'tokens' if self.clock.is_even else 'machine time'}"
        found_by = certificate.provenance.get("attained_by")
        return Band(count, *sides, count, count, found_by, runs, prices)

    def mean(self, value: int) -> Fraction:
        """Return the share of all requests, in percent."""
        return Fraction(100 * value, max(len(self.instance), 1))

    def sentence(self, target: Target) -> str:
        """Return how many may miss."""
        return f"at most {target.limit:,} of {len(self.instance):,} requests miss"


Measure = Latency | Misses


def unit_length(unit: str, problem: Problem, field: str, example: str) -> Fraction | int:
    """Return how many units of the clock make one of the given units; none is a round."""
    clock, round_ms = problem.clock, problem.instance.round_ms
    if clock.is_even and not unit:
        return 1
    refuse(field, f"needs a unit with --seconds: {example}", not unit)
    if not clock.is_even:
        return _LENGTHS[unit]
    if round_ms is None:
        reason = f"{unit} needs --seconds, or an instance with round_ms"
        raise InvalidInput(reason, field=field)
    return _LENGTHS[unit] / (Fraction(str(round_ms)) * MILLISECOND)


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


def planned_machines(arrivals: int, length: int, rate: Fraction) -> int:
    """Return the number of machines in use by planners: arrival rate over service rate.

    It is no lower bound: of ten requests at once, each served in a second and due after ten, it
    makes ten machines, and one is enough.  Nor need so many be enough, as requests do not arrive
    evenly.

    Examples
    --------
    >>> planned_machines(10, 1, Fraction(1))
    10
    """
    return math.ceil(Fraction(arrivals, length) / rate)


def service_rate(instance: Instance, clock: Clock, levels: Levels) -> Fraction:
    """Return how many mean requests one machine completes in a unit of the clock.

    As many are active as fit into the memory on average, and as keep the mean limits of pace and
    of latency; each round processes as many prompt tokens as arrive in it.  Prefixes are ignored.
    """
    count, outputs = len(instance), instance.total_output
    output = Fraction(outputs, count)
    prompt = Fraction(sum(request.prompt for request in instance), count)
    held = prompt + (output + 1) / 2
    limit = min(int(instance.memory / held), instance.max_active or instance.memory)
    # A mean of limits is a limit only if every request has one.
    finite = [limit for limit in levels.rest if limit < math.inf]
    further = max(outputs - count, 1)
    pace = Fraction(int(sum(finite)), further) if len(finite) == count > 0 else math.inf
    ends = [limit for limit in levels.total if limit < math.inf]
    latency = Fraction(int(sum(ends)), count) / output if len(ends) == count else math.inf
    slowest = min(pace if outputs > count else math.inf, latency)

    def duration(active: int) -> int:
        prompts = math.ceil(active * prompt / output)
        return clock.batch_time.round_ns(active, prompts, int(active * held))

    sizes = range(1, max(limit, 1) + 1)
    active = max(bisect_left(sizes, True, key=lambda size: duration(size) > slowest), 1)
    return Fraction(active) / (output * duration(active))

"""Targets of a fleet: what it should stay within, and how that is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from kvopt.errors import InvalidInput, shown
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.clocks import Clock
from kvopt.problem.deadlines import Deadline
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER

_FIELD = "--target"
_MEAN = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)(ms|s|)")
_MISSES = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)(%|)")
_UNBOUNDED = re.compile(r"p[0-9.]+|median|max|worst")
_LENGTHS = {"s": NANOSECONDS, "ms": MILLISECOND}
"""Nanoseconds of the units."""


@dataclass(frozen=True)
class Target:
    """What a fleet should stay within.

    Parameters
    ----------
    most
        A total latency in units of the clock, or a number of misses.
    said
        What it is, for a sentence.
    run
        The run that has it, where it is that of one: on how many machines, and what it is called.
    """

    most: int
    said: str
    run: tuple[int, str] | None = None


def latency_target(text: str, instance: Instance, clock: Clock) -> Target:
    """Return the target that ``mean=5s`` says, or ``mean=100`` in rounds.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt.problem.clocks import ROUNDS
    >>> latency_target("mean=2.5", Instance(9, [Request(0, 1, 2)] * 3), ROUNDS).most
    7
    """
    key, value = _parts(text)
    if key == "misses":
        raise InvalidInput("misses need a --deadline: 40 rounds, 30s, own", field=_FIELD)
    found = _MEAN.fullmatch(value)
    if key != "mean" or found is None:
        raise InvalidInput(f"must be mean=100 or mean=5s, got {shown(text)}", field=_FIELD)
    mean = Fraction(found[1]) * _unit(found[2], instance, clock)
    total = int(mean * len(instance))
    if mean <= 0 or total > LARGEST_INTEGER:
        raise InvalidInput(
            f"must be more than 0, and less than 2^53 in all, got {text}", field=_FIELD
        )
    unit = f" {found[2]}" if found[2] else " rounds"
    return Target(total, f"a mean latency of {found[1]}{unit}")


def misses_target(text: str, count: int, deadline: Deadline) -> Target:
    """Return the target that ``misses=1%`` says of so many requests, or ``misses=20``.

    Examples
    --------
    >>> misses_target("misses=2.5%", 90, Deadline.parse(40)).most
    2
    """
    key, value = _parts(text)
    if key == "mean":
        raise InvalidInput("a mean has no --deadline: misses=1% has", field=_FIELD)
    found = _MISSES.fullmatch(value)
    if key != "misses" or found is None:
        raise InvalidInput(f"must be misses=1% or misses=20, got {shown(text)}", field=_FIELD)
    most = Fraction(found[1]) * (Fraction(count, 100) if found[2] else 1)
    if most > count or (not found[2] and most.denominator > 1):
        reason = f"must be a share up to 100%, or a number of the {count:,} requests, got {text}"
        raise InvalidInput(reason, field=_FIELD)
    misses = f"{found[1]}%" if found[2] else f"{int(most):,}"
    return Target(int(most), f"at most {misses} misses {deadline.worded}")


def _parts(text: str) -> tuple[str, str]:
    """Return the name and the value of a target."""
    key, _, value = text.partition("=")
    if _UNBOUNDED.fullmatch(key):
        reason = (
            f"{key} cannot be bounded: bounds are of the sum of all latencies, and a schedule may "
            "let a few requests wait for the sake of the others; give a mean, or misses=1% and "
            "a --deadline"
        )
        raise InvalidInput(reason, field=_FIELD)
    return key, value


def _unit(name: str, instance: Instance, clock: Clock) -> Fraction | int:
    """Return how many units of the clock are one of those that were given."""
    if not name:
        if not clock.is_even:
            raise InvalidInput("needs a unit with --seconds: mean=5s, mean=800ms", field=_FIELD)
        return 1
    if not clock.is_even:
        return _LENGTHS[name]
    if instance.round_ms is None:
        reason = f"{name} needs --seconds, or an instance with round_ms"
        raise InvalidInput(reason, field=_FIELD)
    return _LENGTHS[name] / (Fraction(str(instance.round_ms)) * MILLISECOND)


def least_total(instance: Instance, clock: Clock) -> int:
    """Return the total latency where each request has a machine of its own.

    No number of machines does better, and one for each request does as well.
    """
    if clock.is_even:
        return sum(request.output for request in instance)
    model = clock.batch_time
    return sum(
        model.round_ns(1, r.prompt, r.prompt + 1) + model.stretch_ns(1, r.prompt + 2, r.output - 1)
        for r in instance
    )

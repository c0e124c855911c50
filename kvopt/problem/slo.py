"""Service levels of requests, and the number of requests that attain theirs.

A request *attains* a service level if its first token is there ``ttft`` after its arrival at the
latest, its further tokens take ``tpot`` each at most, on average, and its last one is there ``e2e``
after its arrival.  So with tokens ``F .. C`` and o of them

    F - a <= ttft,   C - F <= tpot (o - 1),   C - a <= e2e,

each if it is part of the level.  As everywhere in kvopt a first token that an eviction loses does
not count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from kvopt.errors import InvalidInput, shown
from kvopt.files.reading import without_nulls
from kvopt.problem.batch_time import MILLISECOND, NANOSECONDS
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER

OWN = "own"
"""Word for the limits that each request has of its own."""
LIMITS = ("ttft", "tpot", "e2e")
"""Limits of a service level, and fields of requests."""

_UNITS = {"s": NANOSECONDS, "ms": MILLISECOND, "us": 1000, "ns": 1}
"""Nanoseconds of the units, the longest first."""
_LENGTH = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)(s|ms|us|ns)|([0-9]{1,16})")
_EXAMPLES = "ttft=2s,tpot=50ms, e2e=40 in rounds, or own"
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%")


@dataclass(frozen=True, slots=True)
class Slo:
    """A service level of all requests; each limit may be that of the request.

    Parameters
    ----------
    ttft, tpot, e2e
        Limits of the time to the first token, of the mean time of a further token, and of the time
        to the last one: rounds, seconds such as ``2s`` or ``50ms``, or ``own``.

    Examples
    --------
    >>> str(Slo(ttft="2s", tpot="0.05s"))
    'ttft=2s,tpot=50ms'
    >>> Slo.parse("e2e=40") == Slo(e2e=40)
    True
    """

    ttft: int | str | None = None
    tpot: int | str | None = None
    e2e: int | str | None = None

    def __post_init__(self) -> None:
        for name in LIMITS:
            if (limit := getattr(self, name)) is not None:
                object.__setattr__(self, name, _length(limit, name))
        if not self.limits:
            raise InvalidInput(f"needs a limit: {_EXAMPLES}", field="slo")

    @classmethod
    def parse(cls, text: object) -> Slo:
        """Return the service level of ``ttft=2s,tpot=50ms``, or of ``own``."""
        if isinstance(text, Slo):
            return text
        if text == OWN:
            return cls(OWN, OWN, OWN)
        pairs = [part.partition("=") for part in text.split(",")] if isinstance(text, str) else []
        limits = {name.strip(): length.strip() for name, _, length in pairs}
        if not limits or len(limits) < len(pairs) or not limits.keys() <= {*LIMITS}:
            raise InvalidInput(f"must be {_EXAMPLES}, got {shown(text)}", field="slo")
        return cls(**limits)

    @property
    def limits(self) -> dict[str, int | str]:
        """Its limits: rounds, a text in seconds, or ``own``."""
        return without_nulls({name: getattr(self, name) for name in LIMITS})

    def __str__(self) -> str:
        limits = self.limits
        if list(limits.values()) == [OWN] * len(LIMITS):
            return OWN
        return ",".join(f"{name}={limit}" for name, limit in limits.items())

    def levels(self, instance: Instance, *, rounds: bool) -> Levels:
        """Return the limits of each request, on a clock of rounds or of nanoseconds.

        Raises
        ------
        InvalidInput
            If a request has no limit, or seconds and rounds are mixed without ``round_ms``.
        """
        first, pace, total = (self._lengths(name, instance, rounds=rounds) for name in LIMITS)
        for i, limits in enumerate(zip(first, pace, total, strict=True)):
            if min(limits) == math.inf:
                names, request = ", ".join(self.limits), repr(instance.requests[i].id)
                raise InvalidInput("is missing", field=names, request=request)
        further = (request.output - 1 for request in instance)
        rest = [more and limit * more for limit, more in zip(pace, further, strict=True)]
        return Levels(*([_floor(limit) for limit in limits] for limits in (first, rest, total)))

    def _lengths(
        self, name: str, instance: Instance, *, rounds: bool
    ) -> Sequence[Fraction | float]:
        limit = getattr(self, name)
        if limit is None:
            return [math.inf] * len(instance)
        if limit != OWN:
            return [_on_clock(limit, instance, rounds=rounds)] * len(instance)
        lengths = [getattr(request, name) for request in instance]
        return [
            math.inf if length is None else _on_clock(length, instance, rounds=rounds)
            for length in lengths
        ]


class Due(NamedTuple):
    """Times at which the first and the last token of a request are due.

    ``rest`` limits the time between the two.
    """

    first: float = math.inf
    rest: float = math.inf
    end: float = math.inf


class Levels(NamedTuple):
    """The limits of each request on a clock, infinite where it has none.

    Parameters
    ----------
    first, total
        From arrival to the first and to the last token.
    rest
        From the first to the last token.
    """

    first: Sequence[float]
    rest: Sequence[float]
    total: Sequence[float]

    def due(self, i: int, arrival: int) -> Due:
        """Return the times at which the tokens of a request are due."""
        return Due(arrival + self.first[i], self.rest[i], arrival + self.total[i])

    def attained(
        self, arrivals: Sequence[int], firsts: Sequence[int | None], ends: Sequence[int | None]
    ) -> int:
        """Return how many attain, with these times of first and last tokens; None is never."""
        return sum(
            first is not None
            and end is not None
            and (first - a <= limit and end - first <= rest and end - a <= total)
            for a, first, end, limit, rest, total in zip(arrivals, firsts, ends, *self, strict=True)
        )


def allowed_misses(attain: object, requests: int) -> int:
    """Return how many requests may miss if at least a share, ``99%`` say, or a number attain.

    Examples
    --------
    >>> allowed_misses("99%", 250), allowed_misses("240", 250)
    (2, 10)
    """
    share = _SHARE.fullmatch(str(attain))
    if share is not None and (part := Fraction(share[1]) / 100) <= 1:
        return int(requests * (1 - part))
    if isinstance(attain, int | str) and str(attain).isdecimal() and int(attain) <= requests:
        return requests - int(attain)
    reason = f"must be a share such as 99%, or a number of the {requests:,} requests"
    raise InvalidInput(f"{reason}, got {shown(attain)}", field="--attain")


def _length(limit: object, name: str) -> int | str:
    """Return rounds as an integer, and seconds in the longest unit of which they are whole ones."""
    match = _LENGTH.fullmatch(limit if isinstance(limit, str) else str(limit))
    if limit == OWN:
        return OWN
    if match is None or isinstance(limit, bool) or not isinstance(limit, int | str):
        raise InvalidInput(
            f"must be rounds, seconds such as 2s, or own, got {shown(limit)}", field=name
        )
    number, unit, rounds = match.groups()
    length = int(rounds or Fraction(number) * _UNITS[unit])
    if not 1 <= length <= LARGEST_INTEGER:
        reason = f"must be at least 1 round or nanosecond, at most 2^53 - 1, got {limit}"
        raise InvalidInput(reason, field=name)
    if unit is None:
        return length
    unit = next(unit for unit, size in _UNITS.items() if length % size == 0)
    return f"{length // _UNITS[unit]}{unit}"


def _on_clock(limit: int | str, instance: Instance, *, rounds: bool) -> Fraction:
    """Return a limit in rounds or in nanoseconds."""
    if isinstance(limit, int):
        return Fraction(limit) if rounds else limit * _round_ns(instance)
    match = _LENGTH.fullmatch(limit)
    assert match is not None, "limits are checked when they are made"
    length = Fraction(int(match[1]) * _UNITS[match[2]])
    return length / _round_ns(instance) if rounds else length


def _round_ns(instance: Instance) -> Fraction:
    if instance.round_ms is None:
        reason = "is missing, so that rounds have no length: limits cannot be converted"
        raise InvalidInput(reason, field="round_ms")
    return Fraction(instance.round_ms) * MILLISECOND


def _floor(limit: Fraction | float) -> float:
    """Return the whole units of a limit: events are at whole ones."""
    return math.inf if limit == math.inf else math.floor(limit)

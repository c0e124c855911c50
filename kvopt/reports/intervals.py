"""Ratios as intervals: what follows exactly when only both ends of each are known.

Mean, median, quantiles and the largest of numbers do not fall when a number rises.  So those of
the lower ends and those of the upper ends enclose those of the numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

_PLACES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """Where a number lies for certain; None is an end that is not known."""

    least: Fraction | None
    most: Fraction | None

    @property
    def is_exact(self) -> bool:
        """Whether the number itself is known."""
        return self.least is not None and self.least == self.most

    @property
    def width(self) -> Fraction | None:
        """``most / least - 1``, None while an end is unknown."""
        if self.least is None or self.most is None or not self.least:
            return None
        return self.most / self.least - 1

    def __str__(self) -> str:
        if self.is_exact and self.least is not None:
            return decimal(round(self.least * _PLACES))
        least = "?" if self.least is None else decimal(math.floor(self.least * _PLACES))
        most = "?" if self.most is None else decimal(math.ceil(self.most * _PLACES))
        return f"{least}–{most}"  # noqa: RUF001 a dash between numbers


def ratio(value: int, upper: int | None, lower: int | None) -> Interval:
    """Return where ``value / optimum`` lies when the optimum lies in ``lower .. upper``."""
    return Interval(
        Fraction(value, upper) if upper else None, Fraction(value, lower) if lower else None
    )


def mean(found: Sequence[Interval]) -> Interval:
    """Return where the mean lies; an unknown end of one leaves that end open."""
    lows = [each.least for each in found if each.least is not None]
    highs = [each.most for each in found if each.most is not None]
    return Interval(_average(lows, len(found)), _average(highs, len(found)))


def quantile(found: Sequence[Interval], share: Fraction) -> Interval:
    """Return where the least number lies that so many of them do not exceed (nearest rank)."""
    if not found:
        return Interval(None, None)
    rank = max(1, math.ceil(share * len(found))) - 1
    lows = sorted((each.least for each in found), key=lambda end: (end is not None, end or 0))
    highs = sorted((each.most for each in found), key=lambda end: (end is None, end or 0))
    return Interval(lows[rank], highs[rank])


def decimal(places: int) -> str:
    """Return ten-thousandths as a number with four places."""
    return f"{places // _PLACES:,}.{places % _PLACES:04}"


def percent(share: Fraction | None) -> str:
    """Return a share that is not negative as a percentage; only 0 itself looks like 0."""
    if share is None:
        return "?"
    return "0%" if not share else f"{float(max(share * 100, Fraction(1, 100))):.2f}%"


def _average(ends: list[Fraction], count: int) -> Fraction | None:
    return _total(ends) / count if count and len(ends) == count else None


def _total(numbers: Sequence[Fraction]) -> Fraction:
    """Add by halves: one after another, the denominators would grow with every step."""
    if len(numbers) <= 2:
        return sum(numbers, Fraction(0))
    middle = len(numbers) // 2
    return _total(numbers[:middle]) + _total(numbers[middle:])

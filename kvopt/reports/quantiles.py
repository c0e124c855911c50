"""Quantiles and widths of numbers of which only intervals are known.

A quantile does not fall when one of the numbers rises.  So the quantile of the lower ends and that
of the upper ends enclose the quantile of the numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from kvopt.experiments.studies.intervals import Interval, mean_of


def quantile_of(found: Sequence[Interval], share: Fraction) -> Interval:
    """Return where the least number lies that so many of them do not exceed (nearest rank)."""
    if not found:
        return Interval(None, None)
    rank = max(1, math.ceil(share * len(found))) - 1
    least = sorted((each.least for each in found), key=lambda end: (end is not None, end or 0))
    most = sorted((each.most for each in found), key=lambda end: (end is None, end or 0))
    return Interval(least[rank], most[rank])


def mean_width(found: Iterable[Interval]) -> Fraction | None:
    """Return the mean width of intervals, None if there are none or one of them is open."""
    return mean_of(Interval(each.width, each.width) for each in found).least


def is_exact(found: Interval) -> bool:
    """Whether the number itself is known."""
    return found.least is not None and found.least == found.most


def percent(share: Fraction | None) -> str:
    """Return a share that is not negative as a percentage; only 0 itself looks like 0."""
    if share is None:
        return "-"
    return "0%" if not share else f"{float(max(share * 100, Fraction(1, 100))):.2f}%"

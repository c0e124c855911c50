"""Certain intervals, from integers that certificates prove, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from kvopt.problem.batch_time import NANOSECONDS
from kvopt.show.summary import exact_ratio, rounded
from kvopt.studies.record_lines import Record, grouped

Ends = Sequence[Fraction | None]


@dataclass(frozen=True, slots=True)
class Interval:
    """Two ends that certainly enclose a number; an end is None if unknown."""

    lower: Fraction | None
    upper: Fraction | None

    def __str__(self) -> str:
        """Return both ends to four digits, rounded outward; or the number, if both are equal."""
        places = places_of(max(abs(end or Fraction()) for end in (self.lower, self.upper)))
        if self.lower is not None and self.lower == self.upper:
            return f"{float(self.lower):,.{places}f}"
        return self.to_places(places)

    def to_places(self, places: int) -> str:
        """Return both ends to some places, rounded outward."""
        low = rounded(self.lower, up=False, places=places)
        return f"[{low}, {rounded(self.upper, up=True, places=places)}]"

    def is_within(self, low: Fraction, high: Fraction) -> bool:
        """Whether the number is between two others for certain."""
        if self.lower is None or self.upper is None:
            return False
        return low <= self.lower and self.upper <= high

    @property
    def width(self) -> Fraction | None:
        """Distance of the ends, as a share of the upper one."""
        if self.lower is None or not self.upper:
            return None
        return (self.upper - self.lower) / self.upper


def ratio_of(record: Record) -> Interval:
    """Return ``[value / upper, value / lower]``, which holds value / optimum."""
    value = record.value
    return Interval(exact_ratio(value, record.upper), exact_ratio(value, record.lower))


def mean_of(intervals: Iterable[Interval]) -> Interval:
    """Return the interval that holds the mean: the mean of each end."""
    return Interval(*map(_mean, _ends(intervals)))


def largest_of(intervals: Iterable[Interval]) -> Interval:
    """Return the interval that holds the largest number."""
    lower, upper = _ends(intervals)
    largest = max((end for end in lower if end is not None), default=None)
    ends = [end for end in upper if end is not None]
    return Interval(largest, max(ends, default=None) if len(ends) == len(upper) else None)


def in_percent(share: Fraction | None, *, up: bool = False) -> str:
    """Return a share for a table, rounded outward."""
    return "-" if share is None else f"{rounded(100 * share, up=up, places=2)}%"


def places_of(value: Fraction | float | None) -> int:
    """Return the decimal places that give a number four digits; 0 for a large one."""
    size = abs(float(value or 1))
    return max(3 - math.floor(math.log10(size)), 0)


def four_digits(value: float) -> str:
    """Return a number to four digits, with every digit before the point."""
    return f"{value:,.{places_of(value)}f}"


def _ends(intervals: Iterable[Interval]) -> tuple[Ends, Ends]:
    both = [(interval.lower, interval.upper) for interval in intervals]
    return [low for low, _ in both], [high for _, high in both]


def _mean(numbers: Ends) -> Fraction | None:
    """Return the mean of numbers, None if there are none or one is unknown."""
    terms = [number for number in numbers if number is not None]
    return sum(terms, Fraction()) / len(terms) if 0 < len(terms) == len(numbers) else None


def quantile_of(ratios: Sequence[Interval], share: Fraction) -> Interval:
    """Return the position of the smallest number that so many of them do not exceed (nearest rank).

    A quantile does not fall when one of the numbers rises.  So the quantile of the lower ends and
    that of the upper ends enclose the quantile of the numbers themselves.
    """
    if not ratios:
        return Interval(None, None)
    rank = max(1, math.ceil(share * len(ratios))) - 1
    lower = sorted((x.lower for x in ratios), key=lambda end: (end is not None, end or 0))
    upper = sorted((x.upper for x in ratios), key=lambda end: (end is None, end or 0))
    return Interval(lower[rank], upper[rank])


def mean_width(intervals: Iterable[Interval]) -> Fraction | None:
    """Return the mean width of intervals, None if there are none or one is open."""
    return mean_of(Interval(i.width, i.width) for i in intervals).lower


@dataclass(frozen=True)
class Runs:
    """The runs of a policy, completed or not, and the heading of its group if there are groups."""

    policy: str
    records: tuple[Record, ...]
    family: str = ""

    @cached_property
    def done(self) -> list[Record]:
        """Records with a total latency."""
        return [record for record in self.records if record.value is not None]

    @property
    def proved(self) -> int:
        """Number of known optima among these."""
        return sum(record.proved for record in self.done)

    @cached_property
    def ratios(self) -> list[Interval]:
        """Ratios of the runs that have one."""
        return [ratio for ratio in map(ratio_of, self.records) if ratio.lower]

    @cached_property
    def mean(self) -> Interval:
        """Mean of value / optimum."""
        return mean_of(self.ratios)

    @cached_property
    def worst(self) -> Interval:
        """Largest value / optimum."""
        return largest_of(self.ratios)

    @property
    def latency(self) -> float | None:
        """Mean seconds of a request; None if a run did not complete."""
        served = sum(record.instance.requests for record in self.done)
        if not served or len(self.done) < len(self.records):
            return None
        return sum(r.value or 0 for r in self.done) / served / NANOSECONDS

    def attaining(self, side: str) -> Fraction | None:
        """Return the mean share that attain: ``attained``, at most ``ceiling``."""
        counts = [(getattr(r, side), r.instance.requests) for r in self.records]
        return _mean([None if n is None or not of else Fraction(n, of) for n, of in counts])

    def judged(self, verdict: str) -> int:
        """Return of how many runs this is the verdict on a share that shall attain."""
        return sum(record.verdict == verdict for record in self.records)

    @property
    def evictions(self) -> int:
        """Evictions in all runs."""
        return sum(record.evictions for record in self.records)

    def ended(self, outcome: str) -> int:
        """Return how many runs had this outcome."""
        return sum(record.outcome == outcome for record in self.records)

    @property
    def completed(self) -> bool:
        """Whether every run completed."""
        return self.ended("completed") == len(self.records)

    def sized(self, size: int) -> Runs:
        """Return the runs on instances of a size."""
        records = (r for r in self.records if r.instance.requests == size)
        return replace(self, records=tuple(records))


def by_policy(records: Iterable[Record]) -> list[Runs]:
    """Return a row for each policy, in the order of the records."""
    groups = grouped(records, lambda record: record.policy)
    return [Runs(policy, tuple(runs)) for policy, runs in groups.items() if policy is not None]

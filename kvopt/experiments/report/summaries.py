"""What the runs of one policy on one family come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import fmean

from kvopt.experiments.report.study import Run, Study, differing
from kvopt.experiments.report.words import natural
from kvopt.experiments.studies.intervals import (
    Interval,
    asks_for_machines,
    largest_of,
    machine_of,
    mean_of,
)
from kvopt.experiments.studies.records import Record
from kvopt.problem.batch_time import NANOSECONDS

Curve = dict[float, float]
"""Mean latency of a request by number of requests, cache or rate, in rounds or in seconds."""

_MANY = 5
"""Ratios from which on pictures of single runs tell more than the table."""


@dataclass(frozen=True)
class Group:
    """The runs of one policy on one family within the same limits, completed or not.

    The label is the policy, with its limits where the study has several.
    """

    family: str
    label: str
    runs: tuple[Run, ...]

    @cached_property
    def ratios(self) -> list[Interval]:
        """Ratios of the runs that have one."""
        return [run.ratio for run in self.runs if run.ratio is not None]

    @property
    def are_many(self) -> bool:
        """Whether pictures of single runs tell more than the table."""
        return len(self.ratios) >= _MANY

    @cached_property
    def mean(self) -> Interval:
        """Mean ratio."""
        return mean_of(self.ratios)

    @cached_property
    def worst(self) -> Interval:
        """Largest ratio."""
        return largest_of(self.ratios)

    @cached_property
    def machine(self) -> Interval | None:
        """Mean of how much slower a machine may be, None where the study does not ask."""
        records = [run.record for run in self.runs if run.record.value is not None]
        return mean_of(map(machine_of, records)) if asks_for_machines(records) else None

    def ended(self, outcome: str) -> int:
        """Return how many runs ended like this."""
        return sum(run.record.outcome == outcome for run in self.runs)

    @property
    def completed(self) -> bool:
        """Whether every run completed."""
        return self.ended("completed") == len(self.runs)

    def sized(self, size: int) -> Group:
        """Return the group with its runs on instances of one size alone."""
        return replace(
            self, runs=tuple(run for run in self.runs if run.record.instance.requests == size)
        )

    @property
    def evictions(self) -> int:
        """Evictions in all runs."""
        return sum(run.record.evictions for run in self.runs)


@dataclass(frozen=True)
class Family:
    """What stands under one heading: its groups, the least mean ratio first, and its instances."""

    name: str
    groups: tuple[Group, ...]
    instances: tuple[Record, ...]


def families(study: Study) -> list[Family]:
    """Return the families of a study."""
    unequal = differing(_told(run.record) for run in study.runs)
    found: dict[tuple[str, str], list[Run]] = {}
    for run in study.runs:
        record = run.record
        limits = (f"{name} {_told(record).get(name)}" for name in unequal)
        label = ", ".join([record.policy or "", *limits])
        found.setdefault((record.instance.family or "", label), []).append(run)
    groups = [Group(*key, tuple(runs)) for key, runs in found.items()]
    groups.sort(key=lambda g: (natural(g.family), g.mean.least is None, g.mean.least or 0, g.label))
    return [
        Family(
            name,
            tuple(group for group in groups if group.family == name),
            tuple(record for record in study.instances if record.instance.family == name),
        )
        for name in dict.fromkeys(group.family for group in groups)
    ]


def _told(record: Record) -> dict[str, object]:
    """Return the limits of a record with the scope, which older records leave out."""
    return {**record.limits, "scope": str(record.scope)}


def mean_latencies(
    found: Iterable[tuple[Record, int | None]],
    at: Callable[[Record], float] = lambda record: record.instance.requests,
) -> Curve:
    """Return the mean latency of a request at each place, which is the number of requests.

    Where one is unknown there is none.
    """
    places: dict[float, list[float]] = {}
    for record, total in found:
        count = record.instance.requests
        unit = NANOSECONDS if record.in_seconds else 1
        each = math.nan if total is None or not count else total / count / unit
        places.setdefault(at(record), []).append(each)
    means = {place: fmean(values) for place, values in places.items()}
    return {place: mean for place, mean in means.items() if not math.isnan(mean)}


def quantile_of(found: Sequence[Interval], share: Fraction) -> Interval:
    """Return where the least number lies that so many of them do not exceed (nearest rank).

    A quantile does not fall when one of the numbers rises.  So the quantile of the lower ends and
    that of the upper ends enclose the quantile of the numbers themselves.
    """
    if not found:
        return Interval(None, None)
    rank = max(1, math.ceil(share * len(found))) - 1
    least = sorted((each.least for each in found), key=lambda end: (end is not None, end or 0))
    most = sorted((each.most for each in found), key=lambda end: (end is None, end or 0))
    return Interval(least[rank], most[rank])


def mean_width(found: Iterable[Interval]) -> Fraction | None:
    """Return the mean width of intervals, None if there are none or one of them is open."""
    return mean_of(Interval(each.width, each.width) for each in found).least

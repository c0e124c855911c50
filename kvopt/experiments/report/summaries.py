"""Results of one policy on one family."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import Any

from kvopt.experiments.report.study import Study
from kvopt.experiments.report.words import differing, in_words, natural
from kvopt.experiments.studies.intervals import Interval, Runs, mean_of
from kvopt.experiments.studies.records import Record, grouped
from kvopt.problem.batch_time import NANOSECONDS

Curve = dict[float, float]
"""Mean latency of a request by number of requests, cache or rate, in rounds or in seconds."""


@dataclass(frozen=True)
class Family:
    """One heading: its groups, the least mean ratio first, and its instances."""

    name: str
    groups: Sequence[Runs]
    instances: Sequence[Record]

    @property
    def runs(self) -> list[Record]:
        """The runs of all groups."""
        return [run for group in self.groups for run in group.records]


def families(study: Study) -> list[Family]:
    """Return the families of a study."""
    unequal = differing(map(_limits, study.runs))

    def place(run: Record) -> tuple[str, str]:
        limits = in_words(_limits(run), unequal)
        return run.instance.family or "", ", ".join(filter(None, (run.policy, limits)))

    groups = [
        Runs(label, runs[0].scope, tuple(runs), family)
        for (family, label), runs in grouped(study.runs, place).items()
    ]
    groups.sort(
        key=lambda g: (natural(g.family), g.mean.least is None, g.mean.least or 0, g.policy)
    )
    instances = grouped(study.instances, lambda record: record.instance.family)
    by_name = grouped(groups, lambda group: group.family)
    return [Family(name, mine, instances.get(name, [])) for name, mine in by_name.items()]


def _limits(record: Record) -> Mapping[str, object]:
    """Return the limits of a record with the scope, which older records omit."""
    return {**record.limits, "scope": str(record.scope)}


def times_of(record: Record) -> dict[str, Any]:
    """Return the percentiles of a run in seconds, by the columns of ``report.csv``."""
    times = record.times
    if times is None:
        return {}
    latency = {f"{name}_s": value for name, value in times.latency.items()}
    first = {f"first_token_{name}_s": value for name, value in times.first_token.items()}
    ends = {"requests_completed": times.completed, "ended_s": times.ended}
    return {**vars(times), **latency, **first, **ends}


def mean_latencies(
    found: Iterable[tuple[Record, int | None]],
    at: Callable[[Record], float] = lambda record: record.instance.requests,
) -> Curve:
    """Return the mean latency of a request at each place, which is the number of requests.

    Omit places with an unknown latency.
    """
    curve: Curve = {}
    for place, mine in grouped(found, lambda pair: at(pair[0])).items():
        means = [
            total / record.instance.requests / (NANOSECONDS if record.in_seconds else 1)
            for record, total in mine
            if total is not None and record.instance.requests
        ]
        if len(means) == len(mine):
            curve[place] = fmean(means)
    return curve


def quantile_of(found: Sequence[Interval], share: Fraction) -> Interval:
    """Return the position of the least number that so many of them do not exceed (nearest rank).

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
    """Return the mean width of intervals, None if none is given or one is open."""
    return mean_of(Interval(each.width, each.width) for each in found).least

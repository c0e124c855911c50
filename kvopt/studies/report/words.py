"""Means and quantiles, and numbers and names in words.

Latencies in rounds are summed, those in seconds are means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import fmean
from typing import Any

from kvopt.problem.batch_time import NANOSECONDS
from kvopt.show.summary import counted, rounded
from kvopt.studies.intervals import Interval, mean_of, places_of
from kvopt.studies.records import COUNTS, Record, grouped

Curve = dict[float, float]
"""Mean latency of a request by number of requests, cache or rate, in rounds or in seconds."""


def size_of(record: Record) -> str:
    """Return the size of an instance, and its rate of arrival if that was changed."""
    instance = record.instance
    rate = instance.parameters.get("rate", 1)
    at = "" if rate == 1 else f", rate {rate:g}"
    return f"{counted(instance.requests, 'request')}, M = {instance.memory:,}{at}"


def latency_of(record: Record) -> str:
    """Return the latency of a run."""
    if not record.in_seconds:
        return f"total latency {record.value:,}"
    return f"mean latency {_total(record, record.value, up=True)} s"


def optimum_of(record: Record) -> str:
    """Return the known values of the optimum."""
    if record.proved and not record.in_seconds:
        return f"optimum {record.upper:,}"
    ends = f"[{_total(record, record.lower)}, {_total(record, record.upper, up=True)}]"
    return f"mean latency of the optimum in {ends} s" if record.in_seconds else f"optimum in {ends}"


def _total(record: Record, total: int | None, *, up: bool = False) -> str:
    """Return a total, for nanoseconds its mean in seconds, rounded outward; a dash for unknown."""
    if total is None or not record.in_seconds:
        return "-" if total is None else f"{total:,}"
    mean = Fraction(total, max(record.instance.requests, 1) * NANOSECONDS)
    return rounded(mean, up=up, places=places_of(mean))


def limits_of(record: Record) -> str:
    """Return the limits of a record on one line; a batch-time model by its name."""
    said = {
        name: value.get("name") or "without a name" if isinstance(value, dict) else value
        for name, value in record.limits.items()
    }
    return in_words(said, sorted(said))


def in_words(keys: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return some keys of a table with their values."""
    return ", ".join(f"{name} {keys[name]}" for name in names if name in keys)


def differing(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the keys in which some tables differ, except counts."""
    values: dict[str, set[str]] = {}
    for each in found:
        for key, value in each.items():
            values.setdefault(key, set()).add(repr(value))
    return sorted(key for key, known in values.items() if len(known) > 1 and key not in COUNTS)


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

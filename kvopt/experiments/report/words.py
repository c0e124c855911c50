"""Numbers in words.  Latencies in rounds are summed over requests, those in seconds are means."""

from __future__ import annotations

import re
from fractions import Fraction

from kvopt.experiments.studies.intervals import places_of, rounded
from kvopt.experiments.studies.records import Record
from kvopt.problem.batch_time import NANOSECONDS


def natural(name: str) -> list[tuple[int, str]]:
    """Return what sorts names as people do: a2 before a10."""
    return [(int(part or 0), "") if i % 2 else (0, part) for i, part in enumerate(_split(name))]


def _split(name: str) -> list[str]:
    return re.split(r"([0-9]{1,18})", name)


def size_of(record: Record) -> str:
    """Return how large an instance is, and at which rate it arrives where that was changed."""
    instance = record.instance
    rate = instance.parameters.get("rate", 1)
    at = "" if rate == 1 else f", rate {rate:g}"
    return f"{counted(instance.requests, 'request')}, M = {instance.memory:,}{at}"


def counted(count: int, one: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def percent(share: Fraction | None) -> str:
    """Return a share that is not negative as a percentage; only 0 itself looks like 0."""
    if share is None:
        return "-"
    return "0%" if not share else f"{float(max(share * 100, Fraction(1, 100))):.2f}%"


def latency_of(record: Record) -> str:
    """Return the latency of a run."""
    if not record.in_seconds:
        return f"total latency {record.value:,}"
    return f"mean latency {_seconds(record, record.value, up=True)} s"


def optimum_of(record: Record) -> str:
    """Return what is known of the optimum."""
    if record.in_seconds:
        low, high = (
            _seconds(record, record.lower, up=False),
            _seconds(record, record.upper, up=True),
        )
        return f"mean latency of the optimum in [{low}, {high}] s"
    if record.proved:
        return f"optimum {record.upper:,}"
    low, high = ("-" if end is None else f"{end:,}" for end in (record.lower, record.upper))
    return f"optimum in [{low}, {high}]"


def limits_of(record: Record) -> str:
    """Return the limits of a record on one line; of a model of batch times its name."""
    said = {
        name: value.get("name") or "without a name" if isinstance(value, dict) else value
        for name, value in record.limits.items()
    }
    return ", ".join(f"{name} {value}" for name, value in sorted(said.items()))


def _seconds(record: Record, total: int | None, *, up: bool) -> str:
    """Return a total in nanoseconds as seconds a request, rounded outward; a dash for unknown."""
    count = record.instance.requests
    if total is None or not count:
        return "-"
    mean = Fraction(total, count * NANOSECONDS)
    return rounded(mean, up=up, places=places_of(mean))

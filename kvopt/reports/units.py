"""Latencies in words: rounds are summed over requests, seconds are means."""

from __future__ import annotations

from fractions import Fraction

from kvopt.experiments.studies.intervals import rounded
from kvopt.experiments.studies.records import Record
from kvopt.model.batch_time import NANOSECONDS


def latency_of(record: Record) -> str:
    """Return the latency of a run."""
    if not record.in_seconds:
        return f"total latency {record.value:,}"
    return f"mean latency {seconds_of(record, record.value, up=True)} s"


def optimum_of(record: Record) -> str:
    """Return what is known of the optimum."""
    if record.in_seconds:
        ends = (
            seconds_of(record, record.lower, up=False),
            seconds_of(record, record.upper, up=True),
        )
        return f"mean latency of the optimum in [{', '.join(ends)}] s"
    if record.proved:
        return f"optimum {record.upper:,}"
    known = ("-" if end is None else f"{end:,}" for end in (record.lower, record.upper))
    return f"optimum in [{', '.join(known)}]"


def seconds_of(record: Record, total: int | None, *, up: bool) -> str:
    """Return a total in nanoseconds as seconds a request, rounded outward; a dash for unknown."""
    count = record.instance.requests
    if total is None or not count:
        return "-"
    return rounded(Fraction(total, count * NANOSECONDS), up=up, places=3)


def scale_of(record: Record) -> int:
    """Return what latencies of a record are divided by to be rounds or seconds."""
    return NANOSECONDS if record.in_seconds else 1

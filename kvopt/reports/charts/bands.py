"""How many requests run and how many wait, as two bands over time: what many requests come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kvopt.reports.charts.axes import Frame
from kvopt.reports.html import Markup
from kvopt.timetable.runs import PolicyRun

Counts = Sequence[tuple[float, int, int]]
"""Times with how many requests run and wait from then on."""

BANDS = {"running": "requests that run", "waiting": "requests that wait"}
"""What a legend says of the bands."""

_COLUMNS = 386
"""Times of a picture; of more, each column keeps the one at which most requests are there."""


def counts_of(run: PolicyRun) -> Counts:
    """Return how many requests run and wait, from each round in which that changes.

    A request waits from its arrival to its start; one that is evicted, or pauses, waits again.
    """
    present: Counter[int] = Counter()
    running: Counter[int] = Counter()
    for request, end in zip(run.instance, run.completions, strict=True):
        present[request.arrival] += 1
        if end is not None:
            present[end] -= 1
    for _, start, end in run.pieces():
        running[start] += 1
        running[end] -= 1
    found, there, busy = [], 0, 0
    for time in sorted({*present, *running}):
        there, busy = there + present[time], busy + running[time]
        found.append((time, busy, there - busy))
    return thinned(found)


def thinned(counts: Counts) -> Counts:
    """Return counts at no more times than a picture has columns."""
    if len(counts) <= _COLUMNS:
        return counts
    first, last = counts[0][0], counts[-1][0]
    most: dict[int, tuple[float, int, int]] = {}
    for each in counts:
        column = int((each[0] - first) * _COLUMNS / (last - first))
        kept = most.get(column)
        if kept is None or sum(each[1:]) > sum(kept[1:]):
            most[column] = each
    return [*most.values()]


def most_of(counts: Counts) -> int:
    """Return how many requests are there at most."""
    return max((running + waiting for _, running, waiting in counts), default=0)


def bands(frame: Frame, counts: Counts) -> Markup:
    """Draw the bands: requests that run below, those that wait above."""
    there = [(time, running + waiting) for time, running, waiting in counts]
    busy = [(time, running) for time, running, _ in counts]
    drawn = (frame.area(_steps(there), "waiting"), frame.area(_steps(busy), "running"))
    return Markup("".join(drawn))


def _steps(values: Sequence[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    """Yield the corners of values that stay until the next one."""
    for (time, value), (until, _) in pairwise(values):
        yield from ((time, value), (until, value))
    yield from values[-1:]

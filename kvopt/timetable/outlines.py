"""What is drawn, as plain numbers: exact, and free of matplotlib.

A request that starts at k is drawn over ``k .. k + o``; the round that ends at time t is
the stretch from t - 1 to t.  There are two ways to draw growth:

- *steps*: through the round that ends at t the height is what is held at t, an integer;
- *slopes*: a straight line that is at that height when the round ends.

Both agree at every integer time, seen from the left, and both fall upright at a
completion.  Steps are the truth and are drawn while they can be told apart.
"""

from __future__ import annotations

from kvopt.timetable.schedule import Schedule
from kvopt.timetable.sweep import Stretch

Points = list[tuple[float, float]]

_MOST_ROUNDS = 300
"""Rounds beyond which a step would be a few pixels wide."""

_MOST_STEPS = 5_000
"""Steps in all beyond which the file would be large for no gain."""


def is_stepped(schedule: Schedule) -> bool:
    """Whether growth is drawn in steps, not slopes."""
    left, right = window(schedule)
    return right - left <= _MOST_ROUNDS and schedule.instance.total_output <= _MOST_STEPS


def window(schedule: Schedule) -> tuple[int, int]:
    """Return the times between which there is something to see.

    A lead of idle rounds is shown unless it would take a quarter of the picture.
    """
    instance = schedule.instance
    first = min((*schedule.starts, *(request.arrival for request in instance)), default=0)
    right = max(schedule.makespan, first + 1)
    return (first if first * 4 > right else min(first, 0)), right


def growth(start: int, output: int, stepped: bool) -> Points:
    """Return the tokens produced by a request over time, from its start to its completion."""
    if not stepped:
        return [(start, 0), (start + output, output)]
    return [(start + j + side, j + 1) for j in range(output) for side in (0, 1)]


def outline(stretch: Stretch, stepped: bool) -> Points:
    """Return the tokens held over the time of a stretch, prompts and produced."""
    if not stepped:
        return [(time, stretch.held_at(time)) for time in (stretch.begin, stretch.end)]
    times = range(stretch.begin + 1, stretch.end + 1)
    return [(t - side, stretch.held_at(t)) for t in times for side in (1, 0)]


def profile(schedule: Schedule, stepped: bool) -> tuple[list[float], list[float], list[float]]:
    """Return times, prompt tokens and all tokens: an outline that begins and ends at 0."""
    times: list[float] = []
    prompts: list[float] = []
    totals: list[float] = []
    for stretch in schedule.sweep.stretches():
        for time, total in outline(stretch, stepped):
            times.append(time)
            prompts.append(stretch.prompts)
            totals.append(total)
    if not times:
        return [], [], []
    return [times[0], *times, times[-1]], [0, *prompts, 0], [0, *totals, 0]

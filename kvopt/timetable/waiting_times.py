"""Times of users of a run: mean, median and 99th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.clocks import Clock

MEASURES = ("latency", "time_to_first_token", "time_per_output_token")
"""Names of the measures in JSON."""

Measures = dict[str, dict[str, float | None]]
"""Values of ``mean``, ``median`` and ``p99`` by name."""


def summary(values: Sequence[float], scale: int = NANOSECONDS) -> dict[str, float | None]:
    """Return mean, median and 99th percentile, None for nothing.

    A percentile is the smallest value that so large a share of the values does not exceed.

    Parameters
    ----------
    values
        Times in units of a clock.
    scale
        Units of the clock in one unit of the result, by default nanoseconds in a second.
    """
    if not values:
        return {"mean": None, "median": None, "p99": None}
    ranked = sorted(values)
    return {
        "mean": sum(ranked) / len(ranked) / scale,
        "median": _percentile(ranked, 50) / scale,
        "p99": _percentile(ranked, 99) / scale,
    }


def waiting_cells(waited: Measures | None, clock: Clock) -> dict[str, str]:
    """Return the cells of a table about times of users, by column.

    They are the 99th percentile of latency, and the means of the time to the first token and of
    the time for each token after it.  In rounds the last is 1 and has no column.
    """
    columns = (
        ("p99", "latency", "p99", 0),
        ("first token", "time_to_first_token", "mean", 2),
        ("per token", "time_per_output_token", "mean", 2),
    )
    cells = {}
    for head, measure, share, places in columns[: 2 if clock.is_even else 3]:
        value = None if waited is None else waited[measure][share]
        head, places = (head, places) if clock.is_even else (f"{head} s", 3)
        cells[head] = "-" if value is None else f"{value:,.{places}f}"
    return cells


def _percentile(ranked: list[float], percent: int) -> float:
    return ranked[ceil(len(ranked) * percent / 100) - 1]

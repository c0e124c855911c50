"""The time-indexed program with pauses, as sparse arrays.

Token j of request i is produced at a time ``t = k + j``, where k is a round of the start window
of i: in a run without a pause k is its start, and each pause lets k grow.

* columns ``y[i, j, t]``: 1 if request i has produced j tokens by time t; request by request,
  token by token, times ascending;
* rows ``done[i, j]``: ``y[i, j, t] = 1`` at the last time;
* rows ``keep[i, j, t]``: ``y[i, j, t] <= y[i, j, t + 1]``;
* rows ``after[i, j, t]``: ``y[i, j, t] <= y[i, j - 1, t - 1]``, for j above 1;
* rows ``memory[t]``: the sum of ``(s_i + j) (y[i, j, t] - y[i, j, t - 1])`` is at most M;
* rows ``order[i, l, j, t]``: ``y[l, j, t] <= y[i, j, t]`` for requests of one shape, i there first.

Without the memory rows every corner is integral, so a point of the relaxation is a mixture of
paused runs: its least value is the best bound that prices on memory prove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Unpack

import numpy as np

from kvopt.formulations.arrays import Family, Key, ScheduleProgram, numbered
from kvopt.formulations.layout import (
    LARGEST_COLUMNS,
    Layout,
    LayoutOptions,
    layout,
    refuse_columns,
)
from kvopt.formulations.windows import Windows
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance, refuse_extras, refuse_fleet
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.standard_form import in_standard_form

CELLS_OF_A_COLUMN = 8
"""Coefficients of a column at most, without order rows."""


class PausedProgram(ScheduleProgram):
    """The program with pauses, its columns and rows in the order above.

    Columns of a request are by token and by round of the window.
    """

    def _read(self, ones: Sequence[Floats]) -> Schedule | None:
        if not all(values[:, -1:].all() for values in ones):
            return None
        times = [
            (window.start + values.argmax(axis=1) + np.arange(1, len(values) + 1)).tolist()
            for values, window in zip(ones, self.layout.windows, strict=True)
        ]
        ascends = all(a < b for active in times for a, b in pairwise(active))
        return Schedule.at_times(self.instance, times) if ascends else None

    def columns_of(self, schedule: Schedule) -> list[int] | None:
        """Return the columns that are 1 in a schedule, None if it leaves the windows."""
        chosen: list[int] = []
        ordered = in_standard_form(schedule).active_times
        for columns, window, active in zip(self.columns, self.layout.windows, ordered, strict=True):
            rounds = np.array(active) - np.arange(1, len(active) + 1)
            if rounds[0] not in window or rounds[-1] not in window:
                return None
            chosen += columns[np.array(window) >= rounds[:, None]].tolist()
        return chosen

    variable = "y"

    def keys(self) -> tuple[list[tuple[int, ...]], list[Key]]:
        """Return the meaning of each column and row, with the name of its family."""
        plan = self.layout
        lives = [
            (i, j, [k + j for k in window])
            for i, (window, request) in enumerate(zip(plan.windows, self.instance, strict=True))
            for j in range(1, request.output + 1)
        ]
        rows: list[Key] = [("done", i, j) for i, j, _ in lives]
        rows += [("keep", i, j, t) for i, j, times in lives for t in times[:-1]]
        rows += [("after", i, j, t) for i, j, times in lives if j > 1 for t in times[:-1]]
        rows += [("memory", time) for span in plan.spans for time in span]
        for i, h in plan.ordered:
            shared = shared_rounds(plan, i, h)
            tokens = range(1, self.instance.requests[i].output + 1)
            rows += [("order", i, h, j, k + j) for j in tokens for k in shared]
        return [(i, j, t) for i, j, times in lives for t in times], rows


def shared_rounds(plan: Layout, i: int, h: int) -> range:
    """Return the rounds of the windows of both requests."""
    first, second = plan.windows[i], plan.windows[h]
    return range(max(first.start, second.start), min(first.stop, second.stop))


def paused_arrays(
    instance: Instance,
    windows: Windows | None = None,
    **options: Unpack[LayoutOptions],
) -> PausedProgram:
    """Build the time-indexed program with pauses.

    Parameters
    ----------
    instance
        The problem.
    windows
        Rounds k to consider for each request; those of `kvopt.bounds.windows` hold an optimum with
        pauses too.
    options
        See `LayoutOptions`.
    """
    plan = paused_layout(instance, windows, **options)
    columns = numbered((r.output, len(w)) for r, w in zip(instance, plan.windows, strict=True))
    cost = np.zeros(sum(places.size for places in columns))
    for request, window, places in zip(instance, plan.windows, columns, strict=True):
        cost[places[-1]] = -1.0  # each round without the last token delays it
        cost[places[-1, -1]] = window[-1] + request.output - request.arrival
    lasts = np.concatenate([np.zeros(0, dtype=np.int64), *(places[:, -1] for places in columns)])
    shared = [(i, h, shared_rounds(plan, i, h)) for i, h in plan.ordered]
    families = [
        Family(len(lasts), 1, 1, [(np.arange(len(lasts)), lasts, 1.0)]),
        _at_most((places[:, :-1], places[:, 1:]) for places in columns),
        _at_most((places[1:, :-1], places[:-1, :-1]) for places in columns),
        Family(plan.num_times, -np.inf, instance.memory, _memory(instance, plan, columns)),
        _at_most(
            (_within(plan, columns, h, both), _within(plan, columns, i, both))
            for i, h, both in shared
        ),
    ]
    return PausedProgram.of(families, cost, instance, plan, columns)


def paused_layout(
    instance: Instance,
    windows: Windows | None,
    **options: Unpack[LayoutOptions],
) -> Layout:
    """Lay out the model; refuse one that is too large before anything is allocated."""
    refuse_fleet(instance, "the program with pauses")
    refuse_extras(instance, "the program with pauses")
    plan = layout(instance, windows, order_identical=options.get("order_identical", True))
    columns = sum(r.output * len(w) for r, w in zip(instance, plan.windows, strict=True))
    refuse_columns(columns, options.get("largest_columns", LARGEST_COLUMNS))
    return plan


def _at_most(pairs: Iterable[tuple[Integers, Integers]]) -> Family:
    """Return the rows that limit some columns by others."""
    size, entries = 0, []
    for smaller, larger in pairs:
        rows = np.arange(size, size + smaller.size).reshape(smaller.shape)
        entries += [(rows, smaller, 1.0), (rows, larger, -1.0)]
        size += smaller.size
    return Family(size, -np.inf, 0, entries)


def _memory(
    instance: Instance, plan: Layout, columns: tuple[Integers, ...]
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Yield the tokens that each column adds from its time on."""
    for request, window, places in zip(instance, plan.windows, columns, strict=True):
        tokens = np.arange(1, request.output + 1)[:, None]
        rows, held = (
            np.searchsorted(plan.moments, tokens + np.array(window)),
            request.prompt + tokens,
        )
        yield rows, places, held
        yield rows[:, 1:], places[:, :-1], -held


def _within(plan: Layout, columns: tuple[Integers, ...], i: int, rounds: range) -> Integers:
    """Return the columns of a request at some rounds of its window."""
    first = plan.windows[i].start
    return columns[i][:, rounds.start - first : max(rounds.start, rounds.stop) - first]

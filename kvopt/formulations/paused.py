"""The time-indexed program where requests may pause, as sparse arrays.

Token j of request i is produced at a time ``t = k + j``, where k is a round of the start window
of i: in a run without a pause k is its start, and each pause lets k grow.

* columns ``y[i, j, t]``: 1 if request i has produced j tokens by time t; request by request,
  token by token, times ascending;
* rows ``done[i, j]``: ``y[i, j, t] = 1`` at the last time;
* rows ``keep[i, j, t]``: ``y[i, j, t] <= y[i, j, t + 1]``;
* rows ``after[i, j, t]``: ``y[i, j, t] <= y[i, j - 1, t - 1]``, for j above 1;
* rows ``memory[t]``: the sum of ``(s_i + j) (y[i, j, t] - y[i, j, t - 1])`` is at most M;
* rows ``order[i, h, j, t]``: ``y[h, j, t] <= y[i, j, t]`` for requests of one shape, i there first.

Without the memory rows every corner is integral, so a point of the relaxation is a mixture of
paused runs: its least value is the best one that prices on memory prove.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from kvopt.formulations.arrays import Program
from kvopt.formulations.layout import (
    LARGEST_COLUMNS,
    Layout,
    LayoutOptions,
    layout,
    refuse_columns,
)
from kvopt.formulations.windows import Windows
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance, refuse_fleet
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.solution_files import INTEGRALITY, request_labels
from kvopt.timetable.standard_form import in_standard_form

CELLS_OF_A_COLUMN = 8
"""Coefficients of a column at most, without order rows."""

Positions = Integers


@dataclass(frozen=True, eq=False)
class PausedProgram(Program):
    """The program with pauses, its columns and rows in the order above.

    Parameters
    ----------
    instance, layout
        The problem, with the windows and the times that they reach.
    columns
        For each request its columns, by token and by round of the window.
    """

    instance: Instance
    layout: Layout
    columns: tuple[Positions, ...]

    def schedule_of(self, values: Floats) -> Schedule | None:
        """Read a schedule from column values, None unless they are integral."""
        ones = np.round(values)
        if np.abs(values - ones).max(initial=0.0) > INTEGRALITY:
            return None
        times = []
        for columns, window in zip(self.columns, self.layout.windows, strict=True):
            if not ones[columns[:, -1:]].all():
                return None
            rounds = window[0] + ones[columns].argmax(axis=1)
            times.append((rounds + np.arange(1, len(columns) + 1)).tolist())
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

    def names(self) -> tuple[list[str], list[str]]:
        """Return ``y_<request>_<token>_<time>`` for columns, and the names of the rows."""
        labels = request_labels(self.instance)
        columns = [
            f"y_{label}_{j}_{k + j}"
            for label, window, request in zip(
                labels, self.layout.windows, self.instance, strict=True
            )
            for j in range(1, request.output + 1)
            for k in window
        ]
        return columns, ["_".join(map(str, row)) for row in self.rows()]

    def rows(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the family of each row and what it is about, as in the model of Pyomo."""
        plan = self.layout
        lives = [
            (i, j, [k + j for k in window])
            for i, (window, request) in enumerate(zip(plan.windows, self.instance, strict=True))
            for j in range(1, request.output + 1)
        ]
        yield from (("done", i, j) for i, j, _ in lives)
        yield from (("keep", i, j, t) for i, j, times in lives for t in times[:-1])
        yield from (("after", i, j, t) for i, j, times in lives if j > 1 for t in times[:-1])
        yield from (("memory", time) for span in plan.spans for time in span)
        for i, h in plan.ordered:
            shared = shared_rounds(plan, i, h)
            tokens = range(1, self.instance.requests[i].output + 1)
            yield from (("order", i, h, j, k + j) for j in tokens for k in shared)


def shared_rounds(plan: Layout, i: int, h: int) -> range:
    """Return the rounds of the windows of both requests."""
    first, second = plan.windows[i], plan.windows[h]
    return range(max(first.start, second.start), min(first.stop, second.stop))


class _Family(NamedTuple):
    """Rows of one kind: their number, and entries as (row, column, value)."""

    size: int
    entries: list[tuple[Positions, Positions, Floats | float]]


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
    sizes = [r.output * len(w) for r, w in zip(instance, plan.windows, strict=True)]
    firsts = accumulate(sizes, initial=0)
    columns = tuple(
        np.arange(first, first + size).reshape(request.output, -1)
        for first, size, request in zip(firsts, sizes, instance, strict=False)
    )
    cost = np.zeros(sum(sizes))
    for request, window, places in zip(instance, plan.windows, columns, strict=True):
        cost[places[-1]] = -1.0  # the last token is late by each round without it
        cost[places[-1, -1]] = window[-1] + request.output - request.arrival
    families = [
        _done(columns), _keep(columns), _after(columns), _memory(instance, plan, columns),
        _order(plan, columns),
    ]  # fmt: skip
    upper = np.zeros(sum(family.size for family in families))
    lower = np.full_like(upper, -np.inf)
    upper[: families[0].size] = lower[: families[0].size] = 1.0
    memory = sum(family.size for family in families[:3])
    upper[memory : memory + plan.num_times] = instance.memory
    start, index, value = _compressed(families, len(cost))
    return PausedProgram(cost, start, index, value, lower, upper, instance, plan, columns)


def paused_layout(
    instance: Instance,
    windows: Windows | None,
    **options: Unpack[LayoutOptions],
) -> Layout:
    """Lay out the model; refuse one that is too large before anything is allocated."""
    refuse_fleet(instance, "the program with pauses")
    plan = layout(instance, windows, order_identical=options.get("order_identical", True))
    columns = sum(r.output * len(w) for r, w in zip(instance, plan.windows, strict=True))
    refuse_columns(columns, options.get("largest_columns", LARGEST_COLUMNS))
    return plan


def _compressed(
    families: list[_Family], columns: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], Floats]:
    """Return all entries by column, and in it by row."""
    parts: list[tuple[Positions, Positions, Floats]] = []
    first = 0
    for family in families:
        for rows, places, values in family.entries:
            shape = np.broadcast(rows, places).shape
            spread = (np.broadcast_to(part, shape).ravel() for part in (rows + first, places))
            parts.append((*spread, np.broadcast_to(values, shape).ravel()))  # type: ignore[arg-type]
        first += family.size
    if not parts:
        empty = np.zeros(0, dtype=np.int32)
        return np.zeros(1, dtype=np.int32), empty, np.zeros(0)
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((row, column))
    start = np.zeros(columns + 1, dtype=np.int32)
    np.cumsum(np.bincount(column, minlength=columns), out=start[1:])
    return start, row[order].astype(np.int32), value[order].astype(np.float64)


def _numbered(blocks: list[Positions]) -> Iterator[tuple[Positions, Positions]]:
    """Yield each block of columns with the numbers of its rows, one a column."""
    first = 0
    for block in blocks:
        yield np.arange(first, first + block.size).reshape(block.shape), block
        first += block.size


def _pairs(smaller: list[Positions], larger: list[Positions]) -> _Family:
    """Return the rows that say of columns that they are at most others."""
    entries: list[tuple[Positions, Positions, Floats | float]] = []
    for (rows, places), others in zip(_numbered(smaller), larger, strict=True):
        entries += [(rows, places, 1.0), (rows, others, -1.0)]
    return _Family(sum(block.size for block in smaller), entries)


def _done(columns: tuple[Positions, ...]) -> _Family:
    lasts = [places[:, -1] for places in columns]
    return _Family(sum(map(len, lasts)), [(*pair, 1.0) for pair in _numbered(lasts)])


def _keep(columns: tuple[Positions, ...]) -> _Family:
    return _pairs([p[:, :-1] for p in columns], [p[:, 1:] for p in columns])


def _after(columns: tuple[Positions, ...]) -> _Family:
    return _pairs([p[1:, :-1] for p in columns], [p[:-1, :-1] for p in columns])


def _memory(instance: Instance, plan: Layout, columns: tuple[Positions, ...]) -> _Family:
    times = np.concatenate([np.array(span) for span in plan.spans] or [np.zeros(0, dtype=int)])
    entries: list[tuple[Positions, Positions, Floats | float]] = []
    for request, window, places in zip(instance, plan.windows, columns, strict=True):
        tokens = np.arange(1, request.output + 1)[:, None]
        rows = np.searchsorted(times, tokens + np.array(window))
        held = (request.prompt + tokens).astype(np.float64)
        entries += [(rows, places, held), (rows[:, 1:], places[:, :-1], -held)]
    return _Family(plan.num_times, entries)


def _order(plan: Layout, columns: tuple[Positions, ...]) -> _Family:
    def shared(i: int, rounds: range) -> Positions:
        first = plan.windows[i].start
        return columns[i][:, rounds.start - first : max(rounds.start, rounds.stop) - first]

    pairs = [(i, h, shared_rounds(plan, i, h)) for i, h in plan.ordered]
    return _pairs(
        [shared(h, both) for _, h, both in pairs], [shared(i, both) for i, _, both in pairs]
    )

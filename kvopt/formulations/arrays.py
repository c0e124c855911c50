"""The time-indexed program as sparse arrays, straight into HiGHS.

The same matrix as `kvopt.formulations.pyomo.time_indexed`, built without a Python loop over
columns or nonzeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Unpack

import numpy as np
import numpy.typing as npt

from kvopt.errors import TooLarge
from kvopt.formulations.layout import Layout, LayoutOptions, column_names, layout, row_names
from kvopt.formulations.windows import Windows
from kvopt.kernels.dependencies import load_highspy
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.solution_files import INTEGRALITY
from kvopt.timetable.standard_form import in_standard_form

if TYPE_CHECKING:
    from highspy import Highs

Indices = npt.NDArray[np.int32]
OrderRows = list[tuple[int, float]]

_HIGHS_LARGEST = 1e15
"""HiGHS refuses a model with a coefficient of this size."""


@dataclass(frozen=True, eq=False)  # arrays do not compare to one truth value
class Program:
    """A model in compressed columns: minimise ``cost x`` with rows between their bounds.

    Every column is binary.

    Parameters
    ----------
    cost
        Of each column.
    start, index, value
        Compressed sparse columns.
    row_lower, row_upper
        Bounds of the rows.
    """

    cost: Floats
    start: Indices
    index: Indices
    value: Floats
    row_lower: Floats
    row_upper: Floats

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.row_lower)

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of columns and of rows."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ArrayModel(Program):
    """The time-indexed program; its rows and columns are those of `kvopt.formulations.layout`.

    Parameters
    ----------
    begins
        First column of each request, and the number of columns at the end.
    """

    instance: Instance
    layout: Layout
    begins: Integers

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of columns and of rows."""
        plan = self.layout
        return column_names(self.instance, plan), row_names(self.instance, plan)

    def places_of(self, values: Floats) -> tuple[list[int], list[int]] | None:
        """Read starts and workers from column values, None unless they are integral."""
        chosen = np.flatnonzero(values > 0.5)
        off = np.abs(values - np.round(values)).max(initial=0.0)
        owners = np.searchsorted(self.begins, chosen, side="right") - 1
        if off > INTEGRALITY or not np.array_equal(owners, np.arange(len(self.instance))):
            return None
        places = zip((chosen - self.begins[:-1]).tolist(), self.layout.windows, strict=True)
        found = [divmod(place, len(window)) for place, window in places]
        starts = [window[k] for (_, k), window in zip(found, self.layout.windows, strict=True)]
        return starts, [worker for worker, _ in found]

    def columns_of(self, starts: Sequence[int], workers: Sequence[int] = ()) -> list[int] | None:
        """Return the columns of a schedule, None if a start lies outside its window."""
        schedule = in_standard_form(Schedule(self.instance, starts, workers))
        where = zip(schedule.starts, schedule.workers, self.layout.windows, strict=True)
        found = list(zip(self.begins[:-1].tolist(), where, strict=True))
        if not all(k in window for _, (k, _, window) in found):
            return None
        return [begin + w * len(window) + k - window[0] for begin, (k, w, window) in found]


def time_indexed_arrays(
    instance: Instance,
    windows: Windows | None = None,
    **options: Unpack[LayoutOptions],
) -> ArrayModel:
    """Build the time-indexed integer program of an instance.

    Parameters
    ----------
    instance
        The problem.
    windows
        Start rounds to consider; by default those that are proved to hold an optimum.
    options
        See `LayoutOptions`.
    """
    plan = layout(instance, windows, **options)
    columns = [len(w) * len(at) for w, at in zip(plan.windows, plan.workers, strict=True)]
    begins = np.array([0, *accumulate(columns)], dtype=np.int64)
    orders = _order_rows(instance, plan)
    entries = [1 + r.output + len(o) for r, o in zip(instance, orders, strict=True)]
    widths = np.repeat(np.array(entries, dtype=np.int32), columns)
    start = np.zeros(plan.num_columns + 1, dtype=np.int32)
    np.cumsum(widths, out=start[1:])
    index = np.empty(int(start[-1]), dtype=np.int32)
    value = np.empty(int(start[-1]), dtype=np.float64)
    cost = np.empty(plan.num_columns, dtype=np.float64)
    for i, (begin, end) in enumerate(pairwise(begins.tolist())):
        stretch = slice(int(start[begin]), int(start[end]))
        shape = (len(plan.workers[i]), len(plan.windows[i]), entries[i])
        _fill_request(
            instance, plan, i, orders[i], cost[begin:end].reshape(shape[:2]),
            index[stretch].reshape(shape), value[stretch].reshape(shape),
        )  # fmt: skip
    starts, rows = len(instance), len(instance) + plan.num_times * plan.num_workers
    lower = np.full(rows + len(plan.ordered), -np.inf)
    upper = np.zeros_like(lower)
    lower[:starts] = upper[:starts] = 1.0
    upper[starts:rows] = instance.memory
    return ArrayModel(cost, start, index, value, lower, upper, instance, plan, begins)


def _order_rows(instance: Instance, plan: Layout) -> list[OrderRows]:
    """Return for each request its order rows, with the sign of its completion there."""
    orders: list[OrderRows] = [[] for _ in instance]
    first = len(instance) + plan.num_times * plan.num_workers
    for row, (i, j) in enumerate(plan.ordered, start=first):
        orders[i].append((row, 1.0))
        orders[j].append((row, -1.0))
    return orders


def _fill_request(
    instance: Instance,
    plan: Layout,
    i: int,
    orders: OrderRows,
    cost: Floats,
    index: Indices,
    value: Floats,
) -> None:
    """Fill the columns of request i: its start row, its memory rows, its order rows.

    The arrays have a row for each worker.
    """
    request, window = instance.requests[i], plan.windows[i]
    if not window:
        return
    count, first_row = len(instance), _first_memory_row(plan, window[0] + 1)
    starts = np.arange(len(window), dtype=np.int32)[:, None]
    grown = np.arange(request.output, dtype=np.int32)
    latency = window[0] + request.output - request.arrival
    cost[:] = np.arange(latency, latency + len(window))
    index[..., 0] = i
    value[..., 0] = 1.0
    memory = slice(1, 1 + request.output)
    first_rows = np.array(plan.workers[i], dtype=np.int32)[:, None, None] * plan.num_times
    index[..., memory] = starts + grown + (count + first_row) + first_rows
    value[..., memory] = float(request.prompt + 1) + grown  # 32 bits cannot hold every prompt
    completion = starts[:, 0] + float(window[0] + request.output)
    for position, (row, sign) in enumerate(orders, start=1 + request.output):
        index[..., position] = row
        value[..., position] = sign * completion


def _first_memory_row(plan: Layout, time: int) -> int:
    """Return the number of memory rows before the row of a time."""
    before = 0
    for span in plan.spans:
        if time in span:
            return before + time - span.start
        before += len(span)
    raise AssertionError(f"no row for time {time}")


def to_highs(model: Program, *, relax: bool = False, names: bool = False) -> Highs:
    """Pass a model to a new ``highspy.Highs``; ``relax`` drops integrality."""
    if max(model.value.max(initial=0.0), -model.value.min(initial=0.0)) >= _HIGHS_LARGEST:
        raise TooLarge("a request would hold 10^15 tokens or more, which HiGHS does not take")
    highspy = load_highspy()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    kind = 0 if relax else 1
    status = highs.passModel(
        model.num_columns, model.num_rows, len(model.index), int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMinimize), 0.0, model.cost, np.zeros(model.num_columns),
        np.ones(model.num_columns), model.row_lower, model.row_upper, model.start[:-1],
        model.index, model.value, np.full(model.num_columns, kind, dtype=np.int32),
    )  # fmt: skip
    if status == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS refused the model")
    if names:
        columns, rows = model.names()
        for column, name in enumerate(columns):
            highs.passColName(column, name)
        for row, name in enumerate(rows):
            highs.passRowName(row, name)
    return highs

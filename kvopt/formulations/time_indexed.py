"""The time-indexed program as a sparse matrix of SciPy, and its columns and rows in their order.

* columns ``x[i, k]``: request by request, start rounds ascending;
* rows ``start[i]``: each request starts once;
* rows ``memory[t]``: one for each time at which some column is active, ascending;
* rows ``order[i, j]``: of one shape, i starts no later than j
  (`kvopt.timetable.standard_form.start_order`).

In a fleet columns are ``x[i, k, w]``, those of a request worker by worker, and rows
``memory[t, w]``, worker by worker.

With shared prefixes columns ``held[v, t]`` follow, 1 if a node of the forest is held at a time, and
rows ``used[v, i, t]``: the node is held while request i, which has it on its path, is active.

It is built without a Python loop over columns or nonzeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from kvopt.errors import InvalidInput, TooLarge
from kvopt.formulations.windows import (
    Windows,
    latest_completions,
    windows_until,
    workers_allowed,
)
from kvopt.kernels.solver_versions import load_highspy
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.instance import Instance, refuse_extras
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import INTEGRALITY, request_labels
from kvopt.timetable.standard_form import in_standard_form, start_order

if TYPE_CHECKING:
    from highspy import Highs
    from scipy.sparse import csc_array

Indices = npt.NDArray[np.int32]
Key = tuple[Any, ...]
"""The family of a row, and its indices."""

_EMPTY = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)
LARGEST_COLUMNS = 5_000_000
"""Limit of columns, unless the caller raises it."""
LARGEST_NONZEROS = 200_000_000
"""Limit of nonzeros: 12 bytes each, in several copies."""
_HIGHS_LARGEST = 1e15
"""HiGHS refuses models with a coefficient of this size or more."""


@dataclass(frozen=True, eq=False)  # a comparison of arrays is not a single truth value
class Program:
    """A model with a sparse matrix: minimise ``cost x`` with rows between their bounds.

    Every column is binary.

    Parameters
    ----------
    cost
        Columns of the model.
    matrix
        The coefficients, a row for each constraint, in compressed columns.
    row_lower, row_upper
        Bounds of the rows.
    """

    cost: Floats
    matrix: csc_array
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


@dataclass(frozen=True)
class Layout:
    """Columns and rows of the time-indexed model of one instance.

    Parameters
    ----------
    windows
        Start windows of the requests.
    spans
        Disjoint, ascending ranges of times that hold every time with an active column.
    ordered
        Pairs (i, j) of requests of one shape: i starts no later than j.
    workers
        Allowed workers of each request.
    is_fleet
        Whether names include the worker, in a fleet of several.
    users
        For each node of the forest of prefixes the requests that use it.
    """

    windows: Windows
    spans: tuple[range, ...]
    ordered: tuple[tuple[int, int], ...]
    workers: tuple[range, ...]
    is_fleet: bool
    users: tuple[tuple[int, ...], ...]

    @property
    def num_columns(self) -> int:
        """Number of columns for starts."""
        return sum(len(w) * len(at) for w, at in zip(self.windows, self.workers, strict=True))

    @property
    def num_rows(self) -> int:
        """Number of memory rows, and of the columns for the times at which a node is held."""
        return self.num_times * self.num_workers

    @property
    def num_workers(self) -> int:
        """Number of workers in the model, at least one."""
        return max(map(len, self.workers), default=1)

    @property
    def num_times(self) -> int:
        """Number of memory rows of each worker."""
        return len(self.moments)

    @cached_property
    def moments(self) -> Integers:
        """The times of the memory rows of each worker."""
        return np.array([time for span in self.spans for time in span], dtype=np.int64)


class LayoutOptions(TypedDict, total=False):
    """Options that every builder of a model takes.

    Parameters
    ----------
    order_identical
        Order requests of one shape, which does not change the optimum; by default True.
    largest_columns
        Raise `TooLarge` beyond this number of columns, `LARGEST_COLUMNS` by default.
    """

    order_identical: bool
    largest_columns: int


def layout(
    instance: Instance,
    windows: Windows | None = None,
    **options: Unpack[LayoutOptions],
) -> Layout:
    """Lay out the model; refuse one that is too large before anything is allocated."""
    refuse_extras(instance, "a time-indexed program", ("weight", "max_active", "prefix"))
    if windows is None:
        windows = windows_until(instance, latest_completions(instance))
    _check_windows(instance, windows)
    workers, largest = workers_allowed(instance), options.get("largest_columns", LARGEST_COLUMNS)
    columns = sum(_length(w) * len(at) for w, at in zip(windows, workers, strict=True))
    _refuse_columns(columns, largest)
    if (many := nonzeros(instance, windows)) > LARGEST_NONZEROS:
        raise TooLarge(f"the model would have {many:,} nonzeros; the limit is {LARGEST_NONZEROS:,}")
    ordered = tuple(start_order(instance)) if options.get("order_identical", True) else ()
    spans, users = _spans(instance, windows), instance.forest.users
    plan = Layout(windows, spans, ordered, workers, instance.workers > 1, users)
    _refuse_columns(columns + len(users) * sum(map(len, spans)) * plan.num_workers, largest)
    return plan


def _check_windows(instance: Instance, windows: Windows) -> None:
    if len(windows) != len(instance):
        reason = f"has {len(windows)} entries for {len(instance)} requests"
        raise InvalidInput(reason, field="windows")
    for request, window in zip(instance, windows, strict=True):
        if window.step != 1 or (window and window.start < request.arrival):
            reason = f"must hold consecutive rounds from the arrival on, got {window}"
            raise InvalidInput(reason, field="windows", request=repr(request.id))


def nonzeros(instance: Instance, windows: Windows) -> int:
    """Return the number of coefficients of start columns in rows of starts, memory and use."""
    rows = zip(windows, instance, workers_allowed(instance), instance.forest.paths, strict=True)
    return sum(
        _length(window) * (request.output * (1 + len(path)) + 1) * len(at)
        for window, request, at, path in rows
    )


def _length(window: range) -> int:
    """Return the rounds of a window; len() fails beyond 2^63, before it can be refused."""
    return max(0, window.stop - window.start)


def _refuse_columns(columns: int, largest: int) -> None:
    """Raise `TooLarge` if a model has more columns than the limit."""
    if columns > largest:
        raise TooLarge(f"the model would have {columns:,} columns; the limit is {largest:,}")


def _spans(instance: Instance, windows: Windows) -> tuple[range, ...]:
    """Return the times at which requests may be active; those of one request are in one range."""
    lives = sorted(
        (w[0] + 1, w[-1] + r.output + 1) for w, r in zip(windows, instance, strict=True) if w
    )
    spans: list[range] = []
    for begin, end in lives:
        if spans and begin <= spans[-1].stop:
            spans[-1] = range(spans[-1].start, max(end, spans[-1].stop))
        else:
            spans.append(range(begin, end))
    return tuple(spans)


class Family(NamedTuple):
    """Rows of one kind: their number, bounds, and entries as rows, columns and values.

    The three parts of an entry are broadcast.
    """

    size: int
    lower: float
    upper: float
    entries: Iterable[tuple[Any, Integers, Any]]


@dataclass(frozen=True, eq=False)
class ArrayModel(Program):
    """The time-indexed program.

    Parameters
    ----------
    instance, layout
        The problem, with the windows and their times.
    columns
        The numbers of the columns of each request, by worker and by start.
    """

    instance: Instance
    layout: Layout
    columns: tuple[Integers, ...]

    @classmethod
    def of(
        cls,
        families: Sequence[Family],
        cost: Floats,
        instance: Instance,
        plan: Layout,
        columns: tuple[Integers, ...],
    ) -> Self:
        """Return the program with these families of rows, one after the other."""
        from scipy.sparse import coo_array  # importing a policy does not need it

        sizes = [family.size for family in families]
        pieces: list[tuple[Indices, Indices, Floats]] = []
        for first, family in zip(accumulate(sizes, initial=0), families, strict=False):
            for entry in family.entries:
                rows, places, values = np.broadcast_arrays(*entry)
                rows = rows.astype(np.int32).ravel() + np.int32(first)
                pieces.append((rows, places.astype(np.int32).ravel(), values.astype(float).ravel()))
        shape = sum(sizes), len(cost)
        row, column, value = map(np.concatenate, zip(*pieces, strict=True)) if pieces else _EMPTY
        pieces.clear()
        matrix = coo_array((value, (row, column)), shape=shape).tocsc()
        lower = np.repeat([float(family.lower) for family in families], sizes)
        upper = np.repeat([float(family.upper) for family in families], sizes)
        return cls(cost, matrix, lower, upper, instance, plan, columns)

    def keys(self) -> tuple[list[Key], list[Key]]:
        """Return the meaning of each column and row, with the name of its family.

        A column other than one of a request begins with the name of its kind.
        """
        plan, is_fleet = self.layout, self.layout.is_fleet
        columns: list[Key] = [
            (i, k, *((worker,) if is_fleet else ()))
            for i, (window, workers) in enumerate(zip(plan.windows, plan.workers, strict=True))
            for worker in workers
            for k in window
        ]
        times = [
            (time, worker) if is_fleet else (time,)
            for worker in range(plan.num_workers)
            for time in plan.moments.tolist()
        ]
        rows: list[Key] = [("start", i) for i in range(len(self.instance))]
        rows += [("memory", *time) for time in times]
        rows += [("order", *pair) for pair in plan.ordered]
        if self.instance.max_active is not None:
            rows += [("together", *time) for time in times]
        for v, users in enumerate(plan.users):
            columns += [("held", v, *time) for time in times]
            rows += [("used", v, i, *time) for i in users for time in times]
        return columns, rows

    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of columns and of rows, in which requests have their ids."""
        labels, (columns, rows) = request_labels(self.instance), self.keys()
        variables = [
            joined(i, *rest) if isinstance(i, str) else joined("x", labels[i], *rest)
            for i, *rest in columns
        ]
        named = [joined("start", label) for label in labels]
        named += [joined(*row) for row in rows[len(labels) :]]
        first = len(labels) + self.layout.num_times * self.layout.num_workers
        orders = [joined("order", labels[i], labels[j]) for i, j in self.layout.ordered]
        if len(set(orders)) == len(orders):  # ids a and b_c look like a_b and c
            named[first : first + len(orders)] = orders
        return variables, named

    def schedule_of(self, values: Floats) -> Schedule | None:
        """Read a schedule from column values, None unless they are integral."""
        ones = np.round(values)
        if np.abs(values - ones).max(initial=0.0) > INTEGRALITY:
            return None
        chosen = [np.argwhere(ones[columns]).tolist() for columns in self.columns]
        if any(len(places) != 1 for places in chosen):
            return None
        pairs = zip(chosen, self.layout.windows, strict=True)
        starts = [window[k] for [(_, k)], window in pairs]
        return Schedule(self.instance, starts, [worker for [(worker, _)] in chosen])

    def columns_of(self, schedule: Schedule) -> list[int] | None:
        """Return the columns that are 1 in a schedule, None if it leaves the windows."""
        form = in_standard_form(schedule)
        places = [*zip(self.columns, form.workers, form.starts, self.layout.windows, strict=True)]
        if not all(k in window for _, _, k, window in places):
            return None
        chosen = [int(columns[worker, k - window[0]]) for columns, worker, k, window in places]
        held = set[int]()
        for v, users in enumerate(self.layout.users):
            for i in users:
                first = np.searchsorted(self.layout.moments, form.starts[i] + 1)
                first += self.layout.num_times * form.workers[i]
                held.update(range(first, first + self.instance.requests[i].output))
            chosen += (self.layout.num_columns + v * self.layout.num_rows + row for row in held)
            held.clear()
        return chosen


def joined(*parts: object) -> str:
    """Return the name of a column or row of some parts."""
    return "_".join(map(str, parts))


def numbered(shapes: Iterable[tuple[int, int]]) -> tuple[Integers, ...]:
    """Return the numbers of columns, block by block of these shapes."""
    shapes = [*shapes]
    firsts = accumulate((rows * width for rows, width in shapes), initial=0)
    return tuple(
        np.arange(first, first + shape[0] * shape[1]).reshape(shape)
        for first, shape in zip(firsts, shapes, strict=False)
    )


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
    columns = numbered((len(at), len(w)) for at, w in zip(plan.workers, plan.windows, strict=True))
    ends = [
        np.arange(window.start, window.stop) + request.output
        for request, window in zip(instance, plan.windows, strict=True)
    ]
    cost = np.zeros(plan.num_columns + len(plan.users) * plan.num_rows)
    held = np.arange(plan.num_columns, len(cost)).reshape(len(plan.users), plan.num_rows)
    for request, completions, places in zip(instance, ends, columns, strict=True):
        cost[places] = request.weight * (completions - request.arrival)
    starts = ((i, places, 1.0) for i, places in enumerate(columns))
    # Of one shape, earlier starts are earlier completions, and the rows compare these.
    orders = (
        entry
        for row, (i, j) in enumerate(plan.ordered)
        for entry in ((row, columns[i], ends[i]), (row, columns[j], -ends[j]))
    )
    rows = np.arange(plan.num_rows)
    memory: list[tuple[Any, Integers, Any]] = [*_memory(instance, plan, columns)]
    memory += [(rows, *node) for node in zip(held, instance.forest.weights, strict=True)]
    families = [
        Family(len(instance), 1, 1, starts),
        Family(plan.num_rows, -np.inf, instance.memory, memory),
        Family(len(plan.ordered), -np.inf, 0, orders),
    ]
    if instance.max_active is not None:
        active = _active(instance, plan, columns)
        families.append(Family(plan.num_rows, -np.inf, instance.max_active, active))
    # A node is held whenever a user is active: the sum of its starts less ``held`` is at most 0.
    activity = list(_active(instance, plan, columns)) if plan.users else []
    for node, users in zip(held, plan.users, strict=True):
        families += [
            Family(plan.num_rows, -np.inf, 0, [activity[i], (rows, node, -1.0)]) for i in users
        ]
    return ArrayModel.of(families, cost, instance, plan, columns)


def _memory(
    instance: Instance, plan: Layout, columns: tuple[Integers, ...]
) -> Iterator[tuple[Integers, Integers, Numbers]]:
    """Yield the private tokens of each request in the rows of memory, by worker, start and age."""
    private = instance.forest.private
    everything = zip(instance, private, plan.windows, plan.workers, columns, strict=True)
    for request, prompt, window, workers, places in everything:
        # A request has its times in one span, so that the rows of its ages follow each other.
        grown = np.arange(request.output)
        rows = (
            np.searchsorted(plan.moments, window.start + 1)
            + np.arange(len(window))[:, None]
            + grown
        )
        first_rows = np.array(workers)[:, None, None] * plan.num_times
        # 32 bits cannot hold every prompt
        yield rows + first_rows, places[..., None], float(prompt + 1) + grown


def _active(
    instance: Instance, plan: Layout, columns: tuple[Integers, ...]
) -> Iterator[tuple[Integers, Integers, Numbers]]:
    """Yield a 1 for each request in the rows of memory in which a start makes it active."""
    for rows, places, tokens in _memory(instance, plan, columns):
        yield rows, places, np.sign(tokens)


def to_highs(model: Program, *, relax: bool = False, names: bool = False) -> Highs:
    """Pass a model to a new ``highspy.Highs``; ``relax`` drops integrality."""
    matrix = model.matrix
    if np.abs(matrix.data).max(initial=0.0) >= _HIGHS_LARGEST:
        raise TooLarge("a request would hold 10^15 tokens or more, which HiGHS does not take")
    highspy = load_highspy()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    kind = 0 if relax else 1
    status = highs.passModel(
        model.num_columns,
        model.num_rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        model.cost,
        np.zeros(model.num_columns),
        np.ones(model.num_columns),
        model.row_lower,
        model.row_upper,
        matrix.indptr[:-1],
        matrix.indices,
        matrix.data,
        np.full(model.num_columns, kind, dtype=np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS refused the model")
    if names:
        assert isinstance(model, ArrayModel)
        columns, rows = model.names()
        for column, name in enumerate(columns):
            highs.passColName(column, name)
        for row, name in enumerate(rows):
            highs.passRowName(row, name)
    return highs

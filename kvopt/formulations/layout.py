"""Columns and rows of a time-indexed model, and their order.

* columns ``x[i, k]``: request by request, start rounds ascending;
* rows ``start[i]``: each request starts once;
* rows ``memory[t]``: one for each time at which some column is active, ascending;
* rows ``order[i, j]``: of one shape, i starts no later than j
  (`kvopt.timetable.standard_form.start_order`).

In a fleet columns are ``x[i, k, w]``, those of a request worker by worker, and rows
``memory[t, w]``, worker by worker.

With shared prefixes columns ``held[v, t]`` follow, 1 if a node of the forest is held at a time, and
rows ``used[v, i, t]``: the node is held while request i, which has it on its path, is active.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict, Unpack

import numpy as np

from kvopt.errors import InvalidInput, TooLarge
from kvopt.formulations.windows import (
    Windows,
    latest_completions,
    windows_until,
    workers_allowed,
)
from kvopt.problem.arrays import Integers
from kvopt.problem.instance import Instance, refuse_extras
from kvopt.timetable.standard_form import start_order

LARGEST_COLUMNS = 5_000_000
"""Limit of columns, unless the caller raises it."""

LARGEST_NONZEROS = 200_000_000
"""Limit of nonzeros: 12 bytes each, in several copies."""


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

    @property
    def times(self) -> Iterator[tuple[int, int]]:
        """Yield time and worker of each memory row."""
        return ((time, w) for w in range(self.num_workers) for time in self.moments.tolist())


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
    workers = workers_allowed(instance)
    columns = sum(_length(w) * len(at) for w, at in zip(windows, workers, strict=True))
    refuse_columns(columns, options.get("largest_columns", LARGEST_COLUMNS))
    if (many := nonzeros(instance, windows)) > LARGEST_NONZEROS:
        raise TooLarge(f"the model would have {many:,} nonzeros; the limit is {LARGEST_NONZEROS:,}")
    ordered = tuple(start_order(instance)) if options.get("order_identical", True) else ()
    spans, users = _spans(instance, windows), instance.forest.users
    plan = Layout(windows, spans, ordered, workers, instance.workers > 1, users)
    largest = options.get("largest_columns", LARGEST_COLUMNS)
    refuse_columns(columns + len(users) * sum(map(len, spans)) * plan.num_workers, largest)
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


def refuse_columns(columns: int, largest: int) -> None:
    """Raise `TooLarge` if a model has more columns than the limit."""
    if columns > largest:
        raise TooLarge(f"the model would have {columns:,} columns; the limit is {largest:,}")


def _spans(instance: Instance, windows: Windows) -> tuple[range, ...]:
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

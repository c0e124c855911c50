"""The LP relaxation by column generation: a vertex of it, without most of its columns.

A column is a kind of requests and a start.  The LP over some columns is solved by the simplex
method; its duals are prices on memory, at which every kind has a cheapest start.  Those that cost
less than the kind pays are new columns.  Where there are none the vertex is optimal for the LP over
all columns, of which it needs two or three for each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvopt.bounds.kinds import Kind, Kinds
from kvopt.bounds.prices import Sums
from kvopt.errors import TooLarge
from kvopt.formulations.highs import interruptible, set_options
from kvopt.kernels.arrays import Floats, Integers
from kvopt.kernels.dependencies import load_highspy
from kvopt.model.instance import Instance
from kvopt.search.incumbent import Search

if TYPE_CHECKING:
    from highspy import Highs

Column = tuple[int, int]
"""Place of a kind, and a start."""

_TOLERANCE = 1e-7
"""Reduced costs above minus that count as 0, as in HiGHS."""
_LARGEST = 10**15
"""HiGHS refuses a coefficient of this size."""


def lp_vertex(
    instance: Instance, end: int, columns: Iterable[Column]
) -> tuple[Integers, Integers, Floats]:
    """Return the columns of an optimal vertex: places of kinds, starts, and how often they start.

    Parameters
    ----------
    instance
        The problem, whose kinds have the places of `Kinds`.
    end
        The last time of the LP.
    columns
        Some to begin with: those of a schedule at least.
    """
    if max(request.peak for request in instance) >= _LARGEST:
        raise TooLarge("a request would hold 10^15 tokens or more, which HiGHS does not take")
    kinds = Kinds.of(instance)
    rows, count = list(kinds.rows()), len(kinds)
    highs = load_highspy().Highs()
    search = Search(instance)  # which Ctrl-C ends
    set_options(highs, search, output_flag=False, solver="simplex")
    solve = interruptible(highs, search)
    for lower, upper in [(each, each) for each in kinds.counts] + [(0, instance.memory)] * end:
        highs.addRow(lower, upper, 0, [], [])
    known: dict[Column, None] = {}
    while fresh := [column for column in dict.fromkeys(columns) if column not in known]:
        known.update(dict.fromkeys(fresh))
        _add(highs, rows, fresh)
        if not solve() or highs.getModelStatus() != load_highspy().HighsModelStatus.kOptimal:
            raise TooLarge(f"HiGHS found no optimum of an LP of {len(known):,} columns")
        duals = np.array(highs.getSolution().row_dual)
        columns = _cheaper(rows, duals[:count], np.maximum(-duals[count:], 0.0))
    places, starts = np.array(list(known)).T
    return places, starts, np.maximum(highs.getSolution().col_value, 0.0)


def _add(highs: Highs, rows: Sequence[Kind], columns: Sequence[Column]) -> None:
    """Add columns: a start of their kind, and what it holds at each time from then on."""
    for place, start in columns:
        arrival, prompt, output = rows[place]
        held = range(len(rows) + start, len(rows) + start + output)
        highs.addCol(
            start + output - arrival, 0.0, highs.inf, 1 + output,
            np.array([place, *held], dtype=np.int32),
            np.array([1, *range(prompt + 1, prompt + output + 1)], dtype=float),
        )  # fmt: skip


def _cheaper(rows: Sequence[Kind], paid: Floats, prices: Floats) -> Iterator[Column]:
    """Yield the cheapest column of each kind at the prices, if it costs less than is paid."""
    end = len(prices)
    sums = Sums.of(prices, 1, max(output for _, _, output in rows))
    for place, (arrival, prompt, output) in enumerate(rows):
        now, then = slice(arrival, end - output + 1), slice(arrival + output, end + 1)
        costs = sums.begun[now] - prompt * sums.paid[now]
        costs += (prompt + output) * sums.paid[then] - sums.held[then]
        start = int(costs.argmin())
        if costs[start] + output - arrival < paid[place] - _TOLERANCE:
            yield place, arrival + start

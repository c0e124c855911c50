"""The LP relaxation by column generation: a vertex of it, without most of its columns.

A column is a kind of requests and a start.  The LP over some columns is solved by the simplex
method; its duals are prices on memory, at which every kind has a cheapest start.  Those that cost
less than the kind pays are new columns.  Where there are none the vertex is optimal for the LP over
all columns, of which it needs a few for each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import Sums, start_costs
from kvopt.errors import TooLarge
from kvopt.formulations.highs import interruptible, set_options
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.dependencies import load_highspy
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance

Column = tuple[int, int]
"""Place of a kind, and a start."""

_TOLERANCE = 1e-7
"""Reduced costs above minus that count as 0, as in HiGHS."""


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
    highspy, kinds, known = load_highspy(), Kinds.of(instance), list[Column]()
    rows, highs, search = list(kinds.rows()), highspy.Highs(), Search(instance)
    set_options(highs, search, output_flag=False, solver="simplex")
    solve = interruptible(highs, search)
    for lower, upper in [(each, each) for each in kinds.counts] + [(0, instance.memory)] * end:
        highs.addRow(lower, upper, 0, [], [])
    while fresh := sorted({*columns} - {*known}):
        known += fresh
        for place, start in fresh:
            arrival, prompt, output = rows[place]
            held = np.arange(len(rows) + start, len(rows) + start + output)
            tokens = np.arange(prompt + 1, prompt + output + 1)
            index, value = np.append(held, place), np.append(tokens, 1)
            latency = start + output - arrival
            highs.addCol(latency, 0, highs.inf, len(index), index, value)
        if not solve() or highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise TooLarge(f"HiGHS found no optimum of an LP of {len(known):,} columns")
        duals = np.array(highs.getSolution().row_dual)
        columns = _cheaper(kinds, duals[: len(rows)], np.maximum(-duals[len(rows) :], 0.0))
    places, starts = np.array(known).T
    return places, starts, np.maximum(highs.getSolution().col_value, 0.0)


def _cheaper(kinds: Kinds, paid: Floats, prices: Floats) -> Iterator[Column]:
    """Yield the cheapest column of each kind at the prices, if it costs less than is paid."""
    sums = Sums.of(prices, 1, kinds)
    for place, (arrival, prompt, output) in enumerate(kinds.rows()):
        costs = start_costs(sums, (arrival, prompt, output))[: len(prices) - output - arrival + 1]
        start = int(costs.argmin())
        if costs[start] < paid[place] - _TOLERANCE:
            yield place, arrival + start

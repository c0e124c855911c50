"""The LP relaxation by column generation: a vertex of it, without most of its columns.

A column is a kind of requests and a start.  The LP over some columns is solved by the simplex
method; its duals are prices on memory, at which every kind has a cheapest start.  A start that
costs less than its kind pays is a new column.  Without one the vertex is optimal for the LP over
all columns, of which it needs a few for each kind.

The first columns are those of a schedule, and minimisers of Lagrangian subproblems: starts that
are cheapest at prices near the best ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import first_prices
from kvopt.bounds.prices import Sums, start_costs
from kvopt.errors import TooLarge
from kvopt.formulations.highs import interruptible, set_options
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.clock import wall_time
from kvopt.kernels.dependencies import load_highspy
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER

Column = tuple[int, int]
"""Place of a kind, and a start."""

_TOLERANCE = 1e-7
"""Reduced costs above minus that count as 0, as in HiGHS."""

MOST_STEPS, LEAST_STEPS = 100, 10
"""Most and fewest steps along the averaged excess of memory; more hardly change the order."""
_COSTS = 10_000_000
"""Limit of the costs that all steps evaluate, unless the fewest steps evaluate more."""
_WEIGHT = 0.1
"""Share of the newest minimisers in the average."""
_STEP = 0.002
"""First step, as a share of the bound; longer after successes, shorter after failures."""
_LAST_TIME = 20_000_000
"""Last time that may have a price; beyond, the tables take too much memory."""


class Averaged(NamedTuple):
    """Minimisers of a sequence of Lagrangian subproblems.

    Starts have a row for each step and a column for each kind; the weights of the steps sum to 1.
    """

    kinds: Kinds
    starts: Integers
    weights: Floats


def averaged_minimisers(instance: Instance) -> Averaged:
    """Return minimisers of subproblems from the fluid prices on."""
    from kvopt.bounds.scan import Scanner  # it loads numba

    if (end := fluid_end(instance)) > _LAST_TIME:
        raise TooLarge(f"schedules span {end:,} rounds; the limit is {_LAST_TIME:,}")
    prices, scanner = first_prices(instance), Scanner(Kinds.of(instance))
    best, starts, average = scanner.lagrangian(prices, instance.total_memory)
    minimisers, weights = [starts], np.ones(1)
    step, failures = _STEP, 0
    costs = len(scanner.kinds) * len(prices)
    for _ in range(max(LEAST_STEPS, min(MOST_STEPS, _COSTS // costs))):
        steepness = float(average @ average)
        if steepness == 0:
            break
        trial = np.maximum(prices + step * max(best, 1.0) / steepness * average, 0.0)
        value, starts, excess = scanner.lagrangian(trial, instance.total_memory)
        minimisers.append(starts)
        weights = np.append((1 - _WEIGHT) * weights, _WEIGHT)
        average = (1 - _WEIGHT) * average + _WEIGHT * excess
        if value > best:
            prices, best, step, failures = trial, value, 1.1 * step, 0
        else:
            failures += 1
            step = step / 1.5 if failures % 10 == 0 else step
    return Averaged(scanner.kinds, np.array(minimisers), weights)


class Vertex(NamedTuple):
    """A vertex of the LP: places of kinds in `Kinds`, starts, how often they start, and prices.

    It is optimal unless there was no time for that.
    """

    places: Integers
    starts: Integers
    mass: Floats
    prices: Floats
    is_optimal: bool


def lp_vertex(
    search: Search, starts: Sequence[int], end: int, time_limit: float = math.inf
) -> Vertex | None:
    """Return an optimal vertex, or the last one found in time, or None.

    Parameters
    ----------
    search
        The problem, and when to stop.
    starts, end
        Starts of a feasible schedule, and the last time of the LP, at least its makespan.
    time_limit
        Seconds for the LPs.
    """
    highspy, highs = load_highspy(), load_highspy().Highs()
    averaged, over = averaged_minimisers(search.instance), wall_time() + time_limit
    kinds, found, known = averaged.kinds, None, list[Column]()
    rows, count = list(kinds.rows()), len(kinds)
    place_of = {kind: place for place, kind in enumerate(rows)}
    fresh = {(place_of[r.kind], k) for r, k in zip(search.instance, starts, strict=True)}
    for each in averaged.starts:
        fresh.update(enumerate(np.minimum(each, end - kinds.outputs).tolist()))
    set_options(highs, search, output_flag=False, solver="simplex")
    solve = interruptible(highs, search)
    memory = min(search.instance.total_memory, LARGEST_INTEGER)  # of the LP alone
    for lower, upper in [(each, each) for each in kinds.counts] + [(0, memory)] * end:
        highs.addRow(lower, upper, 0, [], [])
    while fresh:
        known += sorted(fresh)
        for place, start in known[-len(fresh) :]:
            arrival, prompt, output = rows[place]
            held = np.arange(count + start, count + start + output)
            tokens = np.arange(prompt + 1, prompt + output + 1)
            index, value = np.append(held, place), np.append(tokens, 1)
            highs.addCol(start + output - arrival, 0, highs.inf, len(index), index, value)
        left = min(search.remaining, over - wall_time())
        if left < math.inf:
            highs.setOptionValue("time_limit", highs.getRunTime() + max(left, 0.0))
        if not solve():
            return found
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            if highs.getModelStatus() != highspy.HighsModelStatus.kTimeLimit:
                raise TooLarge(f"HiGHS found no optimum of an LP of {len(known):,} columns")
            if search.remaining <= time_limit:
                search.ran_out_of_time()
            return found
        solution = highs.getSolution()
        paid, duals = np.split(np.array(solution.row_dual), [count])
        prices = np.maximum(-duals, 0.0)
        fresh = {*_cheaper(kinds, paid, prices)} - {*known}
        places, begins = np.array(known).T
        mass = np.maximum(solution.col_value, 0.0)
        found = Vertex(places, begins, mass, prices, not fresh)
    return found


def _cheaper(kinds: Kinds, paid: Floats, prices: Floats) -> Iterator[Column]:
    """Yield the cheapest column of each kind at the prices, if it costs less than its kind pays."""
    sums = Sums.of(prices, 1, kinds)
    for place, (arrival, prompt, output) in enumerate(kinds.rows()):
        costs = start_costs(sums, (arrival, prompt, output))[: len(prices) - output - arrival + 1]
        start = int(costs.argmin())
        if costs[start] < paid[place] - _TOLERANCE:
            yield place, arrival + start

"""The LP relaxation by column generation: a vertex of it, and the bound of its memory prices.

A column is a kind of requests and a start.  The LP over some columns is solved by the simplex
method; its duals are prices on memory, at which every kind has a cheapest start.  A start that
costs less than its kind pays is a new column.  Without one the vertex is optimal for the LP over
all columns, of which it needs a few for each kind.

Memory rows end with the fluid (`kvopt.bounds.fluid`), and starts up to that time are columns.  A
later start holds tokens only after the last row, so it is never cheaper.  If the vertex holds more
than the memory after the last row, rows are added up to that time.  So in the end it is optimal for
the LP with all rows.

The first columns are starts at the last row, which always fit, and minimisers of Lagrangian
subproblems: starts that are cheapest at prices near the best ones.

The value that an LP solver reports is a float and is not used.  The duals of the memory rows
are prices; rounded to integers they prove a bound by themselves (`kvopt.bounds.prices`), the
value of the relaxation up to rounding.  Nothing about the LP has to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import first_prices
from kvopt.bounds.prices import Sums, price_bound, rounded_prices, start_costs
from kvopt.errors import TooLarge
from kvopt.formulations.highs import end_with, set_options
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import CheckedBound
from kvopt.kernels.budget import Budget
from kvopt.kernels.solver_versions import load_highspy
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER

if TYPE_CHECKING:
    from highspy import HighsStatus

Column = tuple[int, int]
"""Place of a kind, and a start."""

_TOLERANCE = 1e-7
"""Reduced costs above minus that count as 0, as in HiGHS."""

_MAX_STEPS, _MIN_STEPS = 100, 10
"""Most and fewest steps along the averaged excess of memory; more hardly change the order."""
_COSTS = 10_000_000
"""Limit of the costs that all steps evaluate, unless the fewest steps evaluate more."""
_WEIGHT = 0.1
"""Share of the newest minimisers in the average."""
_STEP = 0.002
"""First step, as a share of the bound; longer after successes, shorter after failures."""
_DENOMINATOR = 2**24
"""Denominator of prices: rounding loses less than 1e-7 of one, and sums stay inside 64 bits."""
QUICK_COLUMNS = 16_000
"""Columns up to which an LP takes a second at most."""
_BYTES = 150
"""Bytes for each possible column: some of the columns, and tables of their costs."""
_LAST_TIME = 20_000_000
"""Last time that may have a price; beyond, the tables take too much memory."""


def lp_bounds(
    instance: Instance, budget: Budget, limits: Limits, largest_columns: int = 3_000_000
) -> Iterator[CheckedBound]:
    """Yield the bounds of the duals of each LP over some columns; the last one is the best.

    All columns were looked at unless the budget is over.  More than the largest number raise
    `TooLarge`.
    """
    if budget.over() or not len(instance):
        return
    count = int((fluid_end(instance) - Kinds.of(instance).arrivals + 1).sum())
    if count > largest_columns:
        raise TooLarge(f"the LP would have {count:,} columns; the limit is {largest_columns:,}")
    budget.refuse(_BYTES * count)
    for vertex in lp_vertices(instance, budget, limits):
        prices = rounded_prices(vertex.prices, _DENOMINATOR)
        yield CheckedBound(price_bound(instance, prices), "lp", prices)


class Averaged(NamedTuple):
    """Minimisers of a sequence of Lagrangian subproblems.

    Starts have a row for each step and a column for each kind; the weights of the steps sum to 1.
    """

    kinds: Kinds
    starts: Integers
    weights: Floats


def averaged_minimisers(instance: Instance) -> Averaged:
    """Return minimisers of subproblems from the fluid prices on, by the volume algorithm.

    Steps go along a moving mean of the excess of memory.  The minimisers have the same weights in
    their mean, which approaches a solution of the LP (`kvopt.bounds.mean_starts`).
    """
    from kvopt.bounds.scan import Scanner  # it loads numba

    if (end := fluid_end(instance)) > _LAST_TIME:
        raise TooLarge(f"schedules span {end:,} rounds; the limit is {_LAST_TIME:,}")
    prices, scanner = first_prices(instance), Scanner(Kinds.of(instance))
    best, starts, average = scanner.lagrangian(prices, instance.total_memory)
    minimisers, weights = [starts], np.ones(1)
    step, failures = _STEP, 0
    costs = len(scanner.kinds) * len(prices)
    for _ in range(max(_MIN_STEPS, min(_MAX_STEPS, _COSTS // costs))):
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

    Each kind pays its dual.
    """

    places: Integers
    starts: Integers
    mass: Floats
    prices: Floats
    paid: Floats


def lp_vertices(instance: Instance, budget: Budget, limits: Limits) -> Iterator[Vertex]:
    """Yield the optimal vertex of each LP over some columns, that over all if time suffices."""
    averaged = averaged_minimisers(instance)
    program = _RestrictedProgram(instance, averaged.kinds, budget, limits)
    fresh = {column for starts in averaged.starts for column in enumerate(starts.tolist())}
    end = fluid_end(instance)
    while fresh or end > program.end:
        if end > program.end:
            program.add_rows(end)
            # Starts at the last row always fit.
            fresh |= {(place, end) for place in range(len(averaged.kinds))}
        program.add_columns(fresh - {*program.columns})
        # HiGHS asks the budget now and then, and a small program may end before.
        if budget.over() or (vertex := program.solved()) is None:
            return
        yield vertex
        fresh = {*program.cheaper_columns(vertex)} - {*program.columns}
        if not fresh:
            end = program.needed_end(vertex.mass)


class _RestrictedProgram:
    """The LP over some columns, with a row for each kind and memory rows up to its end.

    Later starts are columns too.  They pay only for the times up to the end, so that all kinds
    that start there are feasible.

    Parameters
    ----------
    instance, kinds
        The problem, and the kinds of its requests.
    budget, limits
        When HiGHS ends, and its threads and seed.
    """

    def __init__(self, instance: Instance, kinds: Kinds, budget: Budget, limits: Limits) -> None:
        self.columns: list[Column] = []
        self.end = 0
        self._kinds = kinds
        self._rows = list(kinds.rows())
        self._memory = min(instance.total_memory, LARGEST_INTEGER)  # of the LP alone
        self._highs = load_highspy().Highs()
        set_options(self._highs, limits, output_flag=False, solver="simplex")
        end_with(self._highs, budget)
        for count in kinds.counts:
            self._highs.addRow(count, count, 0, [], [])

    def add_rows(self, end: int) -> None:
        """Add the memory rows up to an end, with the tokens of all columns."""
        places, starts = np.array(self.columns, dtype=np.int64).reshape(-1, 2).T
        for time in range(self.end + 1, end + 1):
            ages = time - starts
            active = np.flatnonzero((ages > 0) & (ages <= self._kinds.outputs[places]))
            tokens = self._kinds.prompts[places[active]] + ages[active]
            self._accept(self._highs.addRow(0, self._memory, len(active), active, tokens))
        self.end = end

    def add_columns(self, columns: set[Column]) -> None:
        """Add starts of kinds."""
        for place, start in sorted(columns):
            arrival, prompt, output = self._rows[place]
            active = min(output, self.end - start)
            held = len(self._rows) + np.arange(start, start + active)
            tokens = np.arange(prompt + 1, prompt + active + 1)
            index, value = np.append(held, place), np.append(tokens, 1)
            cost = start + output - arrival
            self._accept(self._highs.addCol(cost, 0, self._highs.inf, len(index), index, value))
            self.columns.append((place, start))

    def _accept(self, status: HighsStatus) -> None:
        if status == load_highspy().HighsStatus.kError:
            raise TooLarge("HiGHS refused a row or column of the LP: its numbers are too large")

    def solved(self) -> Vertex | None:
        """Return an optimum over the columns and its duals, None if there was no time for it."""
        statuses = load_highspy().HighsModelStatus
        self._highs.run()
        if (status := self._highs.getModelStatus()) == statuses.kInterrupt:
            return None
        if status != statuses.kOptimal:
            raise TooLarge(f"HiGHS found no optimum of an LP of {len(self.columns):,} columns")
        solution = self._highs.getSolution()
        # Rows of kinds come first.  Duals of memory rows are at most 0: upper limits of a minimum.
        paid, duals = np.split(np.array(solution.row_dual), [len(self._rows)])
        places, starts = np.array(self.columns).T
        mass, prices = np.maximum(solution.col_value, 0.0), np.maximum(-duals, 0.0)
        return Vertex(places, starts, mass, prices, paid)

    def cheaper_columns(self, vertex: Vertex) -> Iterator[Column]:
        """Yield the cheapest column of each kind, if it costs less than its kind pays."""
        sums = Sums.of(vertex.prices, 1, self._kinds)
        for place, kind in enumerate(self._rows):
            costs = start_costs(sums, kind)
            start = int(costs.argmin())
            if costs[start] < vertex.paid[place] - _TOLERANCE:
                yield place, kind[0] + start

    def needed_end(self, mass: Floats) -> int:
        """Return the last time at which the columns hold more than the memory, or the end."""
        used = np.flatnonzero(mass)
        places, starts = np.array(self.columns)[used].T
        prompts, outputs = self._kinds.prompts[places], self._kinds.outputs[places]
        for time in np.unique(starts + outputs)[::-1].tolist():  # memory peaks at completions
            if time <= self.end:
                break
            ages = time - starts
            held = np.where((ages > 0) & (ages <= outputs), prompts + ages, 0) @ mass[used]
            if held > self._memory * (1 + _TOLERANCE):
                return int(time)
        return self.end

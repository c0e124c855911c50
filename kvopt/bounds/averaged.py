"""Where the relaxation starts requests, without an LP: averages of Lagrangian minimisers.

With a price on memory every request has a cheapest start of its own (`kvopt.bounds.prices`).
At prices near the best ones, these starts averaged over the steps that led there approach an
optimal solution of the LP relaxation: the volume algorithm of Barahona and Anbil (2000).  It
needs no matrix, so it runs where the LP has millions of columns.

The fluid prices that it begins with are nearly the best ones already, so few steps do: fewer
the larger the instance is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvopt.bounds.fluid import fluid_end, fluid_prices
from kvopt.bounds.kinds import Floats, Integers, Kinds
from kvopt.bounds.scan import Scanner
from kvopt.errors import TooLarge
from kvopt.model.instance import Instance

MOST_STEPS, LEAST_STEPS = 100, 10
"""Steps along the averaged excess of memory, at most and at least; more hardly move the order."""

_COSTS = 10_000_000
"""Costs that all steps look at together, unless the least steps look at more."""
_WEIGHT = 0.1
"""Share of the newest minimisers in the average."""
_STEP = 0.002
"""First step, as a share of the bound; longer after successes, shorter after failures."""
_LAST_TIME = 20_000_000
"""Last time that may have a price; beyond, the tables take too much memory."""


@dataclass(frozen=True, eq=False)
class Averaged:
    """Minimisers of a sequence of Lagrangian subproblems.

    Parameters
    ----------
    kinds
        The kinds of requests.
    starts
        A row for each step: the cheapest start of each kind.
    weights
        Of the steps in the average; they sum to 1.
    """

    kinds: Kinds
    starts: Integers
    weights: Floats


def averaged_minimisers(instance: Instance) -> Averaged:
    """Return minimisers of subproblems from the fluid prices on."""
    if (end := fluid_end(instance)) > _LAST_TIME:
        raise TooLarge(f"{end:,} times are more than the limit of {_LAST_TIME:,}")
    fluid = fluid_prices(instance)
    prices: Floats = np.concatenate((fluid, np.zeros(len(fluid) // 8 + 1)))
    problem = _Subproblem(instance)
    starts, best, average = problem.solve(prices)
    minimisers, weights = [starts], np.ones(1)
    step, failures = _STEP, 0
    for _ in range(_steps(len(problem.kinds) * len(prices))):
        steepness = float(average @ average)
        if steepness == 0:
            break
        trial = np.maximum(prices + step * max(best, 1.0) / steepness * average, 0.0)
        starts, value, excess = problem.solve(trial)
        minimisers.append(starts)
        weights = np.append((1 - _WEIGHT) * weights, _WEIGHT)
        average = (1 - _WEIGHT) * average + _WEIGHT * excess
        if value > best:
            prices, best, step, failures = trial, value, 1.1 * step, 0
        else:
            failures += 1
            step = step / 1.5 if failures % 10 == 0 else step
    return Averaged(problem.kinds, np.array(minimisers), weights)


def _steps(costs: int) -> int:
    """Return how many steps are worth their time when each looks at so many costs."""
    return max(LEAST_STEPS, min(MOST_STEPS, _COSTS // costs))


class _Subproblem:
    """The cheapest start of each request at given prices."""

    def __init__(self, instance: Instance) -> None:
        self.kinds = Kinds.of(instance)
        self._scanner = Scanner(self.kinds)
        self._memory = instance.memory

    def solve(self, prices: Floats) -> tuple[Integers, float, Floats]:
        """Return the starts, the value of the Lagrangian, and tokens above M at each time."""
        costs, starts = self._scanner.least_costs(prices, 1)
        value = float(self.kinds.counts @ costs) - self._memory * float(prices.sum())
        return starts, value, self.kinds.loads(starts, len(prices)) - self._memory

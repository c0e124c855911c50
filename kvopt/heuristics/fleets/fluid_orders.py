"""Schedules of a fleet in the order in which a slower fluid serves requests.

The fluid of the volume bound (`kvopt.bounds.fluid`) uses all memory of all workers.  No fleet
does: after a completion the free memory next to the other requests rarely fits the next one.  A
fluid with a few percent less memory, its **pace**, begins requests about when a good fleet does,
and yields prices of that memory.  So requests are placed in its order
(`kvopt.heuristics.fleets.placing`), at its prices.

Paces are compared by their schedules.  Better orders lose less memory, so the best pace rises
with the number of orders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kvopt.bounds.fluid import fluid_end, fluid_order, fluid_prices
from kvopt.heuristics.fleets.placing import Placing, Tries, place_next
from kvopt.heuristics.reduced_costs import summed
from kvopt.heuristics.reinsertion import nowhere, refuse_too_long
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance

_PACES = tuple(1 - 0.02 * k for k in range(11))
"""First paces, until two in a row are worse."""
_FIRST_STEP, _MIN_STEP = 0.01, 0.00125
"""First and least distance of two paces to compare."""
_FIRST_ORDERS, _MAX_ORDERS = 4, 4096
"""Orders of each few requests in the first pass, and their limit."""
_IDLE_TURNS = 3
"""The search ends after so many passes without improvement."""
_SPARE = 50
"""First length of loads beyond the fluid, in longest outputs."""
_NAME = "fluid order"

Placed = tuple[list[int], list[int]]
"""Starts and workers of all requests."""


class Fluid(NamedTuple):
    """Services of a fluid for an instance.

    Parameters
    ----------
    order
        Requests in the order in which it begins to serve them.
    paid, moment
        Sums of the prices ``p_t`` of a token and of ``t p_t`` up to each time.
    """

    order: Integers
    paid: Floats
    moment: Floats


def fluid_of(instance: Instance, pace: float) -> Fluid:
    """Return the fluid of a share of the memory of all workers."""
    pool = instance.pooled()
    slower = replace(pool, memory=max(int(pace * pool.memory), instance.memory))
    order = np.array(fluid_order(slower), dtype=np.int64)
    return Fluid(order, *summed(fluid_prices(slower)))


def search_fluid_orders(search: Search, budget: Budget, seed: int = 0) -> None:
    """Try paces, then more and more orders at the best ones, for so long.

    The first paces are never cut short.  Without a limit the search ends if nothing improves.

    Raises
    ------
    TooLarge
        If schedules span too many rounds.
    """
    if len(search.instance) < 2:
        return
    with ThreadPoolExecutor(search.limits.threads) as pool:
        paces = _Paces(search, pool, budget)
        best = paces.first()
        step, orders, idle, turn = _FIRST_STEP, _FIRST_ORDERS, 0, 0
        while idle < _IDLE_TURNS and not budget.over():
            began, before, turn = wall_time(), search.objective, turn + 1
            better = paces.best_of([best, best + step], Tries(orders, seed + turn))
            step = max(step / 2, _MIN_STEP) if better == best else step
            best = better
            idle = idle + 1 if search.objective == before else 0
            orders = _next_orders(orders, wall_time() - began, budget.left)


def _next_orders(orders: int, took: float, left: float) -> int:
    """Return twice the number of orders, or fewer if the next pass would not end in time."""
    if left == math.inf or left > 2 * took:
        return min(2 * orders, _MAX_ORDERS)
    return max(1, int(orders * left / max(took, 1e-3)))


class _Paces:
    """Place requests at different paces, and offer the results."""

    def __init__(self, search: Search, pool: ThreadPoolExecutor, budget: Budget) -> None:
        self._search, self._pool, self._budget = search, pool, budget
        self._first = search.instance.first_arrival
        self._shifted = search.instance.shifted(-self._first)
        self._fluids: dict[float, Fluid] = {}
        # Too early for prices of all these rounds.
        refuse_too_long(self._shifted.workers, fluid_end(self._shifted.pooled()))

    def first(self) -> float:
        """Return the best of the first paces, without other orders."""
        values: list[float] = []
        for pace in _PACES:
            values.append(self._offer(self._placed(pace, Tries(1, 0), self._search.budget)))
            if values[-1] == math.inf or len(values) - values.index(min(values)) > 2:
                break
        return _PACES[values.index(min(values))]

    def best_of(self, paces: Sequence[float], tries: Tries) -> float:
        """Offer the schedule of each pace; return the best pace, the first one in a tie."""
        kept = [pace for pace in paces if pace <= 1]
        work = [self._pool.submit(self._placed, pace, tries, self._budget) for pace in kept]
        values = [self._offer(part.result()) for part in work]
        return kept[values.index(min(values))]

    def _placed(self, pace: float, tries: Tries, budget: Budget) -> Placed | None:
        if budget.over():
            return None
        if pace not in self._fluids:
            self._fluids[pace] = fluid_of(self._shifted, pace)
        return placed(self._shifted, self._fluids[pace], tries, budget)

    def _offer(self, schedule: Placed | None) -> float:
        """Offer a schedule; return the sum of its starts."""
        if schedule is None:
            return math.inf
        starts, workers = schedule
        self._search.offer_starts([k + self._first for k in starts], _NAME, workers)
        return sum(starts)


def placed(instance: Instance, fluid: Fluid, tries: Tries, budget: Budget) -> Placed | None:
    """Return the placement of requests, None if the search had to stop before its end.

    Raises
    ------
    TooLarge
        If the schedule spans too many rounds.
    """
    placing = _nothing_placed(instance, fluid)
    while placing.reached[0] < len(instance):
        if budget.over():
            return None
        if not place_next(placing, tries):
            placing = _lengthened(placing)
    return placing.fleet.starts.tolist(), placing.fleet.workers.tolist()


def _nothing_placed(instance: Instance, fluid: Fluid) -> Placing:
    """Return an instance as arrays."""
    arrivals, _, outputs = columns_of(instance)
    fleet = nowhere(instance, len(fluid.paid) + _SPARE * int(outputs.max()))
    fleet = fleet._replace(arrivals=arrivals)  # the fluid counts rounds from 0
    floors = np.repeat(arrivals[:, None], instance.workers, axis=1)
    reached = np.zeros(2, dtype=np.int64)
    return Placing(fleet, fluid.order.copy(), fluid.paid, fluid.moment, floors, reached)


def _lengthened(placing: Placing) -> Placing:
    """Return the arrays with twice the rounds."""
    workers, span = placing.fleet.loads.shape
    refuse_too_long(workers, 2 * span)
    loads = np.pad(placing.fleet.loads, ((0, 0), (0, span)))
    return placing._replace(fleet=placing.fleet._replace(loads=loads))

"""Place the requests of a fleet one by one, each few in the best of many orders.

Each request goes to the worker and the round where it starts earliest next to the placed ones.  A
large one waits for its place on one worker, while later ones in the line start on the other
workers, or next to it.

The order of two neighbours in the line decides which requests fit.  So the next in line are placed
in many orders that differ a little, and the first few of the cheapest order stay.  The cost of an
order is the starts of its requests, and the price of the tokens that they hold beyond a *horizon*;
memory that is empty before the horizon counts as lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.reduced_costs import tokens_of
from kvopt.heuristics.reinsertion import Placement, earliest, hold
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into, order_of
from kvopt.kernels.random_numbers import State, normal, reseed, uniform
from kvopt.problem.arrays import Floats, Integers

_KEPT, _SEEN = 5, 25
"""Requests that stay as in the best order, and requests whose order varies."""
_LATE = 0.6
"""Position of the horizon between their mean start and their last start."""
_MAX_BLUR, _MIN_BLUR = 0.5, 0.01
"""Deviation of random places in the line, as a share of their number."""


class Placing(NamedTuple):
    """State of the placement of requests.

    Parameters
    ----------
    fleet
        The instance, and the placed requests.
    line
        The current order of placement; its first requests are placed.
    paid, moment
        Sums of prices ``p_t`` of a token and of ``t p_t`` up to each time.
    floors
        For each request and worker the first round at which it can start next to the placed ones.
    reached
        Number of placed requests, and the last time with tokens.
    """

    fleet: Placement
    line: Integers
    paid: Floats
    moment: Floats
    floors: Integers
    reached: Integers


class Tries(NamedTuple):
    """Parameters of the placement: number of orders, and the seed of the random generator."""

    orders: int
    seed: int


@compiled
def place_next(placing: Placing, tries: Tries, until: int) -> None:
    """Place requests up to a position of the line, or up to the end of the loads."""
    fleet, line, reached = placing.fleet, placing.line, placing.reached
    random, count = np.zeros(1, dtype=np.int64), len(line)
    while reached[0] < until:
        first, stop = reached[0], min(reached[0] + _SEEN, count)
        # At the latest each starts when all others end.
        end, longest = reached[1], 0
        for i in line[first:stop]:
            end, longest = max(end, fleet.arrivals[i]), max(longest, fleet.outputs[i])
        if end + (_SEEN + 1) * longest + 1 >= fleet.loads.shape[1]:
            return
        # Later placements can only delay the earliest start of a request.
        floors = placing.floors
        for i in line[first:stop]:
            for worker in range(floors.shape[1]):
                floors[i, worker] = earliest(fleet, worker, i, floors[i, worker])
        if tries.orders > 1:
            reseed(random, tries.seed, first, 0)
            _improve(placing, first, stop, tries.orders, random)
        kept = line[first:stop] if stop == count else line[first : first + _KEPT]
        _place(placing, kept)
        for i in kept:
            reached[1] = max(reached[1], fleet.starts[i] + fleet.outputs[i])
        reached[0] += len(kept)


@compiled
def _improve(placing: Placing, first: int, stop: int, orders: int, random: State) -> None:
    """Change the order of some requests in the line to the cheapest one that was tried."""
    fleet, best = placing.fleet, placing.line[first:stop]
    _place(placing, best)
    total, latest, size = 0, 0, len(best)
    for i in best:
        total, latest = total + fleet.starts[i], max(latest, fleet.starts[i])
    horizon = int(total / size + _LATE * (latest - total / size))
    lowest = _taken_out(placing, best, horizon)
    keys, tried = np.empty(size), np.empty(size, dtype=np.int64)
    for _ in range(orders - 1):
        # The members in an order that differs a little.
        blur = size * _MAX_BLUR * (_MIN_BLUR / _MAX_BLUR) ** uniform(random)
        for place in range(size):
            keys[place] = place + blur * normal(random)
        order = order_of(keys)
        for place in range(size):
            tried[place] = best[order[place]]
        _place(placing, tried)
        cost = _taken_out(placing, tried, horizon)
        if cost < lowest:
            lowest = cost
            copy_into(best, tried, size)


@compiled
def _place(placing: Placing, order: Integers) -> None:
    """Place requests one by one, each on the worker where it starts earliest: after its floor."""
    fleet = placing.fleet
    for i in order:
        best, where, floors = -1, 0, placing.floors[i]
        for worker in range(len(floors)):
            if best < 0 or floors[worker] < best:
                start = earliest(fleet, worker, i, floors[worker])
                if best < 0 or start < best:
                    best, where = start, worker
        fleet.starts[i], fleet.workers[i] = best, where
        hold(fleet, i, 1)


@compiled
def _taken_out(placing: Placing, members: Integers, horizon: int) -> float:
    """Remove requests; return their starts plus the price of the tokens held after the horizon."""
    fleet, paid, moment, cost = placing.fleet, placing.paid, placing.moment, 0.0
    for i in members:
        start = fleet.starts[i]
        held = tokens_of(paid, moment, start, fleet.prompts[i], fleet.outputs[i], horizon)
        cost += start + held
        hold(fleet, i, -1)
    return cost

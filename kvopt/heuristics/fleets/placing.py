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
from kvopt.kernels.random_numbers import normal, reseed, uniform
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
def place_next(placing: Placing, tries: Tries) -> bool:
    """Place the next few in the line in the cheapest order that was tried; False if loads end.

    Each is placed on the worker where it starts earliest.
    """
    fleet, floors, reached = placing.fleet, placing.floors, placing.reached
    first = reached[0]
    line = placing.line[first : first + _SEEN]
    size = len(line)
    kept = size if first + size == len(placing.line) else _KEPT
    # At the latest each starts when all others end; later placements can only delay its start.
    end, longest = reached[1], 0
    for i in line:
        end, longest = max(end, fleet.arrivals[i]), max(longest, fleet.outputs[i])
    if end + (_SEEN + 1) * longest + 1 >= fleet.loads.shape[1]:
        return False
    for i in line:
        for worker in range(floors.shape[1]):
            floors[i, worker] = earliest(fleet, worker, i, floors[i, worker])
    random, keys, tried = np.zeros(1, dtype=np.int64), np.empty(size), line.copy()
    reseed(random, tries.seed, first, 0)
    lowest, horizon, last = np.inf, 0, tries.orders if tries.orders > 1 else 0
    for turn in range(last + 1):
        # First the order as it is, then orders that differ a little, at last the best one to stay.
        if 0 < turn < last:
            blur = size * _MAX_BLUR * (_MIN_BLUR / _MAX_BLUR) ** uniform(random)
            for place in range(size):
                keys[place] = place + blur * normal(random)
            order = order_of(keys)
        else:
            order = np.arange(size)
        for place in range(size):
            tried[place] = line[order[place]]
        total = latest = 0
        for i in tried if turn < last else tried[:kept]:
            best, where = -1, 0
            for worker in range(floors.shape[1]):
                if best < 0 or floors[i, worker] < best:
                    start = earliest(fleet, worker, i, floors[i, worker])
                    if best < 0 or start < best:
                        best, where = start, worker
            fleet.starts[i], fleet.workers[i] = best, where
            total, latest = total + best, max(latest, best)
            hold(fleet, i, 1)
        if turn == last:
            break
        # Removed, they have cost their starts, and the tokens that they held after the horizon.
        if turn == 0:
            horizon = int(total / size + _LATE * (latest - total / size))
        cost = 0.0
        for i in tried:
            start, prompt, output = fleet.starts[i], fleet.prompts[i], fleet.outputs[i]
            held = tokens_of(placing.paid, placing.moment, start, prompt, output, horizon)
            cost += start + held
            hold(fleet, i, -1)
        if cost < lowest:
            lowest = cost
            copy_into(line, tried, size)
    for i in tried[:kept]:
        reached[1] = max(reached[1], fleet.starts[i] + fleet.outputs[i])
    reached[0] += kept
    return True

"""The inner loops of the search for schedules in rounds in which many requests attain.

Requests are placed in an order.  Then some are taken out and put back, many times, with one that
is late.  Those taken out start near its window, on any worker.  They go back one by one, each to
the worker and the round where it starts earliest, and one that does not fit in time is left out.
A step that leaves out more than there were is undone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.fleets.reinsertion import Fleet, hold, place
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import State, below, uniform
from kvopt.problem.arrays import Integers

_MOST_TAKEN = 10
"""Requests taken out at once, at most."""
_BLINK = 0.05
"""Probability that a worker is passed over."""


class Places(NamedTuple):
    """Where requests are, a start of -1 is nowhere; and the latest starts at which they attain."""

    fleet: Fleet
    latest: Integers


@compiled
def fill(places: Places, order: Integers, random: State) -> int:
    """Place what fits in time, in an order; return how many do."""
    count = 0
    for i in order:
        count += _put_in_time(places, i, random, 0.0)
    return count


@compiled
def _put_in_time(places: Places, i: int, random: State, blink: float) -> bool:
    """Put a request where it starts earliest, if that is in time."""
    fleet, latest = places.fleet, places.latest[i]
    return fleet.arrivals[i] <= latest and place(fleet, i, fleet.arrivals[i], latest, random, blink)


@compiled
def exchange(places: Places, line: Integers, late: Integers, random: State, steps: int) -> int:
    """Take steps; return how many requests are late still, which are the first of their array.

    The line has requests by their starts.
    """
    chosen = np.zeros(_MOST_TAKEN + 1, dtype=np.int64)
    starts, workers = np.zeros_like(chosen), np.zeros_like(chosen)
    fleet = places.fleet
    begins, left = fleet.starts[line], len(late)
    for _ in range(steps):
        if left == 0:
            break
        which = below(random, left)
        chosen[0], count = late[which], 1
        i = chosen[0]
        time = fleet.arrivals[i] + below(random, places.latest[i] - fleet.arrivals[i] + 1)
        reach = 1 + below(random, 3 * _MOST_TAKEN * len(fleet.loads))
        first = np.searchsorted(begins, time) - below(random, reach + 1)
        for _ in range(1 + below(random, _MOST_TAKEN)):
            at = first + below(random, reach)
            if 0 <= at < len(line) and fleet.starts[line[at]] >= 0:
                j = line[at]
                hold(fleet, j, -1)
                chosen[count], starts[count], workers[count] = (
                    j,
                    fleet.starts[j],
                    fleet.workers[j],
                )
                fleet.starts[j] = -1
                count += 1
        out = _put_back(places, chosen[:count], random)
        if out == -2:
            for x in range(count):
                j = chosen[x]
                if fleet.starts[j] >= 0:
                    hold(fleet, j, -1)
                    fleet.starts[j] = -1
            for x in range(1, count):
                j = chosen[x]
                fleet.starts[j], fleet.workers[j] = starts[x], workers[x]
                hold(fleet, j, 1)
        elif out >= 0:
            late[which] = out
        else:
            left -= 1
            late[which] = late[left]
    return left


@compiled
def _put_back(places: Places, chosen: Integers, random: State) -> int:
    """Put requests back in some order; return the one left out, -1 if none is, -2 of several."""
    fleet = places.fleet
    keys, way, out = np.empty(len(chosen)), below(random, 4), -1
    for x in range(len(chosen)):
        i = chosen[x]
        if way == 0:
            keys[x] = places.latest[i]
        elif way == 1:
            keys[x] = fleet.outputs[i] * (2.0 * fleet.prompts[i] + fleet.outputs[i] + 1.0)
        else:
            keys[x] = uniform(random)
    if way == 3:
        keys[0] = -1.0
    for x in np.argsort(keys):
        if not _put_in_time(places, chosen[x], random, _BLINK):
            if out >= 0:
                return -2
            out = chosen[x]
    return out

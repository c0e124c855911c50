"""The inner loops of the search for schedules in rounds in which many requests attain.

Requests are placed in an order.  Then some are taken out and put back, many times, with one that
is late.  Those taken out start near its window, on any worker.  They go back one by one, each to
the worker and the round where it starts earliest, and one that does not fit in time is left out.
A step that leaves out more than there were is undone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.decode import earliest
from kvopt.heuristics.scenes import Rows
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import State, below, uniform
from kvopt.problem.arrays import Integers

_MOST_TAKEN = 10
"""Requests taken out at once, at most."""
_BLINK = 0.05
"""Probability that a worker is passed over."""


class Places(NamedTuple):
    """An instance as arrays, and where its requests are; rounds count from the first arrival.

    Parameters
    ----------
    memory
        M, of each worker.
    arrivals, prompts, outputs, latest
        Of each request; the latest start at which it attains.
    starts, workers
        Where each of them is; a start of -1 is nowhere.
    profiles
        Tokens that each worker holds at each time.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    latest: Integers
    starts: Integers
    workers: Integers
    profiles: Rows


@compiled
def put(places: Places, i: int, sign: int) -> None:
    """Add a request to what its worker holds, or take it away."""
    profile, begin = places.profiles[places.workers[i]], places.starts[i] + 1
    for grown in range(places.outputs[i]):
        profile[begin + grown] += sign * (places.prompts[i] + 1 + grown)


@compiled
def place(places: Places, i: int, random: State, blink: float) -> bool:
    """Put a request where it starts earliest, if that is in time."""
    best, count = places.latest[i] + 1, len(places.profiles)
    offset = below(random, count)
    for turn in range(count):
        worker = (offset + turn) % count
        if blink and turn + 1 < count and uniform(random) < blink:
            continue
        room = places.memory - places.prompts[i]
        start = earliest(places.profiles[worker], room, places.outputs[i], places.arrivals[i])
        if start < best:
            best, places.workers[i] = start, worker
    if best > places.latest[i]:
        return False
    places.starts[i] = best
    put(places, i, 1)
    return True


@compiled
def fill(places: Places, order: Integers, random: State) -> int:
    """Place what fits in time, in an order; return how many do."""
    count = 0
    for i in order:
        if places.arrivals[i] <= places.latest[i]:
            count += place(places, i, random, 0.0)
    return count


@compiled
def exchange(places: Places, line: Integers, late: Integers, random: State, steps: int) -> int:
    """Take steps; return how many requests are late still, which are the first of their array.

    The line has requests by their starts.
    """
    chosen = np.zeros(_MOST_TAKEN + 1, dtype=np.int64)
    starts, workers = np.zeros_like(chosen), np.zeros_like(chosen)
    begins, left = places.starts[line], len(late)
    for _ in range(steps):
        if left == 0:
            break
        which = below(random, left)
        chosen[0], count = late[which], 1
        i = chosen[0]
        time = places.arrivals[i] + below(random, places.latest[i] - places.arrivals[i] + 1)
        reach = 1 + below(random, 3 * _MOST_TAKEN * len(places.profiles))
        first = np.searchsorted(begins, time) - below(random, reach + 1)
        for _ in range(1 + below(random, _MOST_TAKEN)):
            at = first + below(random, reach)
            if 0 <= at < len(line) and places.starts[line[at]] >= 0:
                j = line[at]
                put(places, j, -1)
                chosen[count], starts[count], workers[count] = (
                    j,
                    places.starts[j],
                    places.workers[j],
                )
                places.starts[j] = -1
                count += 1
        out = _put_back(places, chosen[:count], random)
        if out == -2:
            for x in range(count):
                j = chosen[x]
                if places.starts[j] >= 0:
                    put(places, j, -1)
                    places.starts[j] = -1
            for x in range(1, count):
                j = chosen[x]
                places.starts[j], places.workers[j] = starts[x], workers[x]
                put(places, j, 1)
        elif out >= 0:
            late[which] = out
        else:
            left -= 1
            late[which] = late[left]
    return left


@compiled
def _put_back(places: Places, chosen: Integers, random: State) -> int:
    """Put requests back in some order; return the one left out, -1 if none is, -2 of several."""
    keys, way, out = np.empty(len(chosen)), below(random, 4), -1
    for x in range(len(chosen)):
        i = chosen[x]
        if way == 0:
            keys[x] = places.latest[i]
        elif way == 1:
            keys[x] = places.outputs[i] * (2.0 * places.prompts[i] + places.outputs[i] + 1.0)
        else:
            keys[x] = uniform(random)
    if way == 3:
        keys[0] = -1.0
    for x in np.argsort(keys):
        if not place(places, chosen[x], random, _BLINK):
            if out >= 0:
                return -2
            out = chosen[x]
    return out

"""Requests that may start soon and fit, for greedy completions of a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.state_beams.guides import Guide, cell_of, slope_of, value_at
from kvopt.heuristics.state_beams.labels import Words, waits
from kvopt.kernels.compiled import steering
from kvopt.kernels.magnitudes import NEVER
from kvopt.problem.arrays import Floats, Integers

_LEAST_LISTED = 8
"""Candidates that are listed however much their starts cost."""


class Candidates(NamedTuple):
    """Requests by the extra cost of a start now over a later one.

    Parameters
    ----------
    requests, prompts, outputs
        Requests and their shapes.
    costs, slopes
        Reduced cost of a start when the list was made, and what a round adds.
    laters, later_slopes
        The least one from then on, and what a round adds.
    counts
        How many there are, when the list was made, and when the next request arrives.
    """

    requests: Integers
    prompts: Integers
    outputs: Integers
    costs: Floats
    slopes: Floats
    laters: Floats
    later_slopes: Floats
    counts: Integers


class Work(NamedTuple):
    """Work arrays of a greedy run: holdings, prices, waiting, largest prompt by output."""

    loads: Integers
    values: Floats
    waiting: Words
    caps: Integers


def no_candidates(many: int) -> Candidates:
    """Return an empty list for so many requests."""
    requests, prompts, outputs = np.zeros((3, many), dtype=np.int64)
    costs, slopes, laters, later_slopes = np.zeros((4, many))
    counts = np.zeros(3, dtype=np.int64)
    return Candidates(requests, prompts, outputs, costs, slopes, laters, later_slopes, counts)


@steering
def cost_of(found: Candidates, y: int, since: int) -> float:
    """Return the reduced cost of a start so many rounds after the list was made."""
    return float(found.costs[y] + since * found.slopes[y])


@steering
def later_of(found: Candidates, y: int, since: int) -> float:
    """Return the least reduced cost of a start then or later."""
    return float(found.laters[y] + since * found.later_slopes[y])


@steering
def list_candidates(
    guide: Guide, some: Words, now: int, dearest: float, listed: int, found: Candidates
) -> None:
    """List requests that wait in some label and have arrived, the most pressing ones first."""
    cell, count, arrival = cell_of(guide, now), 0, NEVER
    waiting, keys = np.empty(len(guide.outputs), dtype=np.int64), np.empty(len(guide.outputs))
    for i in range(len(guide.outputs)):
        if guide.arrivals[i] > now:
            arrival = min(arrival, guide.arrivals[i])
        elif waits(some, i):
            shape = guide.shapes[i]
            later = value_at(guide, guide.later, shape, now)
            key = value_at(guide, guide.costs, shape, now) - later
            then = guide.costs[shape, cell + 1] - guide.later[shape, cell + 1]
            waiting[count] = i
            keys[count] = min(key, then) - 1e-3 * (later - guide.least[i])
            count += 1
    taken = 0
    for x in np.argsort(keys[:count]):
        if taken == listed or (keys[x] > dearest and taken >= _LEAST_LISTED):
            break
        i = waiting[x]
        shape = guide.shapes[i]
        found.requests[taken] = i
        found.prompts[taken], found.outputs[taken] = guide.prompts[i], guide.outputs[i]
        found.costs[taken] = value_at(guide, guide.costs, shape, now) - guide.least[i]
        found.slopes[taken] = slope_of(guide, guide.costs, shape, cell)
        found.laters[taken] = value_at(guide, guide.later, shape, now) - guide.least[i]
        found.later_slopes[taken] = slope_of(guide, guide.later, shape, cell)
        taken += 1
    found.counts[0], found.counts[1], found.counts[2] = taken, now, arrival


@steering
def fill_caps(guide: Guide, loads: Integers, ahead: int, caps: Integers) -> int:
    """Fill in the largest prompt that fits so many rounds ahead, by output.

    Returned is the largest output that fits with the least prompt.
    """
    memory, least = guide.memory, guide.smallest
    cap = memory
    for age in range(1, len(caps)):
        cap = min(cap, memory - loads[ahead + age] - age)
        if cap < least:
            return age - 1
        caps[age] = cap
    return len(caps) - 1

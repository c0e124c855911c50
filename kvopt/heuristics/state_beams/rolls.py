"""Requests that may start soon and fit, for greedy completions of a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.state_beams.guides import Guide, line_at
from kvopt.heuristics.state_beams.labels import Words, waits
from kvopt.kernels.compiled import steering
from kvopt.kernels.copying import order_of
from kvopt.kernels.magnitudes import NEVER
from kvopt.problem.arrays import Floats, Integers

_LEAST_LISTED = 8
"""Least number of listed candidates, at any cost of their starts."""


class Candidates(NamedTuple):
    """Requests by the extra cost of a start now over a later one.

    Parameters
    ----------
    requests, prompts, outputs
        Requests and their shapes.
    costs, laters
        Reduced cost of a start when the list was made, and the least one from then on; the second
        column has the growth in a round.
    counts
        Number of requests, the round of the list, and the arrival of the next request.
    """

    requests: Integers
    prompts: Integers
    outputs: Integers
    costs: Floats
    laters: Floats
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
    costs, laters = np.zeros((2, many, 2))
    return Candidates(requests, prompts, outputs, costs, laters, np.zeros(3, dtype=np.int64))


@steering
def cost_at(costs: Floats, y: int, since: int) -> float:
    """Return one of the costs or of the laters so many rounds after the list was made."""
    return float(costs[y, 0] + since * costs[y, 1])


@steering
def list_candidates(
    guide: Guide, some: Words, now: int, dearest: float, listed: int, found: Candidates
) -> None:
    """List arrived requests that wait in some label, those of largest extra cost first."""
    following = min(now // guide.step, guide.costs.shape[1] - 2) + 1
    count, arrival = 0, NEVER
    waiting, keys = np.empty(len(guide.outputs), dtype=np.int64), np.empty(len(guide.outputs))
    for i in range(len(guide.outputs)):
        if guide.arrivals[i] > now:
            arrival = min(arrival, guide.arrivals[i])
        elif waits(some, i):
            costs, laters = guide.costs[guide.shapes[i]], guide.later[guide.shapes[i]]
            later, _ = line_at(guide, laters, now)
            key = line_at(guide, costs, now)[0] - later
            then = costs[following] - laters[following]
            waiting[count] = i
            keys[count] = min(key, then) - 1e-3 * (later - guide.least[i])
            count += 1
    taken = 0
    for x in order_of(keys[:count]):
        if taken == listed or (keys[x] > dearest and taken >= _LEAST_LISTED):
            break
        i = waiting[x]
        found.requests[taken] = i
        found.prompts[taken], found.outputs[taken] = guide.prompts[i], guide.outputs[i]
        cost, slope = line_at(guide, guide.costs[guide.shapes[i]], now)
        found.costs[taken, 0], found.costs[taken, 1] = cost - guide.least[i], slope
        later, slope = line_at(guide, guide.later[guide.shapes[i]], now)
        found.laters[taken, 0], found.laters[taken, 1] = later - guide.least[i], slope
        taken += 1
    found.counts[0], found.counts[1], found.counts[2] = taken, now, arrival


@steering
def fill_caps(guide: Guide, loads: Integers, ahead: int, caps: Integers) -> int:
    """Fill in the largest prompt that fits so many rounds ahead, by output.

    Returns the largest output that fits with the least prompt.
    """
    memory, least = guide.memory, guide.smallest
    cap = memory
    for age in range(1, len(caps)):
        cap = min(cap, memory - loads[ahead + age] - age)
        if cap < least:
            return age - 1
        caps[age] = cap
    return len(caps) - 1

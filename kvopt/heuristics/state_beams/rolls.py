"""Requests that may start soon, and a quick look at how a label goes on with them.

Slack of the next rounds depends on what starts in them.  A greedy run of some rounds finds
something that fits, so a label is judged by what it can be filled with and not by a bound, which
would favour labels of which little is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.state_beams.guides import Guide, cell_of, slope_of, value_at
from kvopt.heuristics.state_beams.labels import Words, add_life, is_first, take_out, waits
from kvopt.kernels.compiled import steering
from kvopt.problem.arrays import Floats, Integers

_LEAST_LISTED = 8
"""Candidates that are listed however much their starts cost."""


class Candidates(NamedTuple):
    """Requests by what a start now costs more than a later one.

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
    """Room for a run: what is held, worth and waiting, and the largest prompt by output."""

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
def list_candidates(
    guide: Guide, some: Words, now: int, dearest: float, listed: int, found: Candidates
) -> None:
    """List requests that wait in some label and have arrived, the most pressing ones first."""
    cell, count, arrival = cell_of(guide, now), 0, np.int64(2**62)
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


@steering
def roll_on(
    guide: Guide, rows: Floats, found: Candidates, work: Work, now: int, depth: int,
    urgency: float, cost: float, later: float, slope: float,
) -> float:  # fmt: skip
    """Go on greedily from the next round on; return what is spent by the end of the horizon.

    ``later`` and ``slope`` are of the next round, ``cost`` is without slacks of later ones.
    """
    loads, values, waiting, caps = work
    horizon = len(values) - 1
    for ahead in range(1, horizon):
        while guide.memory - loads[ahead + 1] > guide.smallest:
            longest = fill_caps(guide, loads, ahead, caps)
            if longest == 0:
                break
            since = now + ahead - found.counts[1]
            most, best = 0.0, -1
            for y in range(found.counts[0]):
                output = found.outputs[y]
                if output > longest or found.prompts[y] > caps[output]:
                    continue
                i = found.requests[y]
                if not is_first(guide.twins, waiting, i):
                    continue
                gain = urgency * (found.laters[y] + (since + 1) * found.later_slopes[y])
                gain -= found.costs[y] + since * found.slopes[y]
                state = guide.firsts[i] + output
                for age in range(1, min(output, depth, horizon - ahead) + 1):
                    gain += rows[(now + ahead + age) % len(rows), state - age]
                if gain > most:
                    most, best = gain, y
            if best < 0:
                break
            i = found.requests[best]
            cost += found.costs[best] + since * found.slopes[best]
            later -= found.laters[best] + since * found.later_slopes[best]
            slope -= found.later_slopes[best]
            take_out(waiting, i)
            add_life(guide, rows, i, now, ahead, loads, values)
        later += slope
    until = min(horizon, guide.last - now)
    for ahead in range(1, until + 1):
        cost += guide.largest[now + ahead] - values[ahead]
    return cost + urgency * later

"""Requests and their prices in arrays for completion bounds, and the states of each time.

A member is an active request of which only peak and completion are known, so that at each time its
state is.  See `kvopt.bounds.configurations.completion`.
"""

from __future__ import annotations

from typing import NamedTuple

from kvopt.bounds.configurations.labels import Integers
from kvopt.kernels.compiled import compiled

NEVER = 2**61
"""Cost of a start that there is not, and a round later than all."""


class Crowd(NamedTuple):
    """The requests, their peaks and their prices, as compiled loops take them.

    Parameters
    ----------
    arrivals, outputs, kinds, reduced_costs
        Of each request, by peak; ``kinds`` is the number of that.
    peaks, copies, firsts
        Of each peak: how large it is, how many requests have it, the number of its first state.
    memory, most
        M, and how many requests can be active together.
    prices, largest
        As in `Evaluation`.
    begins, ends, signs
        Of each peak and completion: the first start that leads there, the last time at which it is
        worth anything, and a random number; sums of these are the keys of sets.
    starting
        Of each peak and rounds left: the least reduced cost of a start just before the time that
        is gone back to, `NEVER` if there is none.
    runs
        Room to work in: members of a set that are alike, and how many of them start.
    """

    arrivals: Integers
    outputs: Integers
    kinds: Integers
    reduced_costs: Integers
    peaks: Integers
    copies: Integers
    firsts: Integers
    memory: int
    most: int
    prices: Integers
    largest: Integers
    begins: Integers
    ends: Integers
    signs: Integers
    starting: Integers
    runs: Integers


PRICE, HOLD, LEFT, KIND, END = range(5)
"""Columns of what can be shown at a time; there are as many rows of one state as can be in it."""


@compiled
def fill_ends(outputs: Integers, firsts: Integers, prices: Integers, ends: Integers) -> None:
    """Fill in the last time with a price for each member, by its completion."""
    last = len(prices) - 1
    for kind in range(len(outputs)):
        for end in range(ends.shape[1]):
            for time in range(max(1, end - outputs[kind] + 1), min(end, last) + 1):
                if prices[time, firsts[kind] + end - time] > 0:
                    ends[kind, end] = time


@compiled
def fill_begins(crowd: Crowd, budget: int) -> None:
    """Fill in the first start that leads to a completion and is cheap enough."""
    crowd.begins[:] = NEVER
    for i in range(len(crowd.outputs)):
        kind = crowd.kinds[i]
        for end in range(crowd.arrivals[i] + crowd.outputs[i], crowd.begins.shape[1]):
            if _cost(crowd, i, end - crowd.outputs[i]) <= budget:
                start = end - crowd.outputs[i]
                crowd.begins[kind, end] = min(crowd.begins[kind, end], start)


@compiled
def _cost(crowd: Crowd, i: int, start: int) -> int:
    """Return the reduced cost of a start of a request."""
    last = crowd.reduced_costs.shape[1] - 1
    return int(crowd.reduced_costs[i, min(start, last)])


@compiled
def fill_shown(crowd: Crowd, now: int, budget: int, shown: Integers) -> int:
    """Fill in the states of a time that have a price then or later, and the least costs of starts.

    Those with most rounds left come first, equal ones one after the other.
    """
    count = 0
    for left in range(crowd.outputs.max() - 1, -1, -1):
        for i in range(len(crowd.outputs)):
            kind, start = crowd.kinds[i], now + left - crowd.outputs[i]
            if left >= crowd.outputs[i] or start < crowd.arrivals[i]:
                continue
            if crowd.ends[kind, now + left] >= now and _cost(crowd, i, start) <= budget:
                shown[count, PRICE] = crowd.prices[now, crowd.firsts[kind] + left]
                shown[count, HOLD] = crowd.peaks[kind] - left
                shown[count, LEFT] = left
                shown[count, KIND] = kind
                shown[count, END] = crowd.ends[kind, now + left]
                count += 1
    crowd.starting[:] = NEVER
    for i in range(len(crowd.outputs)):
        if crowd.arrivals[i] < now and _cost(crowd, i, now - 1) <= budget:
            kind, left = crowd.kinds[i], crowd.outputs[i] - 1
            crowd.starting[kind, left] = min(crowd.starting[kind, left], _cost(crowd, i, now - 1))
    return count


@compiled
def fill_worth(shown: Integers, worth: Integers) -> None:
    """Fill in the largest value that later states can add, by members and tokens so far."""
    most, memory = worth.shape[1] - 1, worth.shape[2] - 1
    for at in range(len(shown) - 1, -1, -1):
        price, hold, left = shown[at, PRICE], shown[at, HOLD], shown[at, LEFT]
        worth[at] = worth[at + 1]
        for many in range(most):
            for held in range(memory - hold - (many + 1) * left + 1):
                value = price + worth[at + 1, many + 1, held + hold]
                worth[at, many, held] = max(worth[at, many, held], value)

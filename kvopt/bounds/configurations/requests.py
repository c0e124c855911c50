"""Requests and their prices in arrays for completion bounds, and the states of each time.

A member is an active request of which only peak and completion are known.  They give its state at
each time.  See `kvopt.bounds.configurations.cost_to_go`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.labels import Integers
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into

NEVER = 2**61
"""Cost of a start that does not exist, and a round later than all."""


class Requests(NamedTuple):
    """The requests, their peaks and their prices, as compiled loops take them.

    Parameters
    ----------
    arrivals, outputs, kinds, reduced_costs
        Columns of requests, sorted by peak; ``kinds`` are the numbers of their peaks.
    peaks, copies, firsts
        Columns of peaks: tokens, number of requests, number of the first state.
    memory, most
        M, and how many requests can be active together.
    prices, largest
        As in `Evaluation`.
    begins, ends, zobrist
        For each peak and completion the first start that leads there, the last time with a price,
        and a random number; sums of these numbers are the keys of sets.
    starting
        For each peak and number of rounds to go the least reduced cost of a start at the current
        time of the backward pass, `NEVER` if none is allowed.
    runs
        Work array: equal members of a set, and how many of them start.
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
    zobrist: Integers
    starting: Integers
    runs: Integers


PRICE, HOLD, LEFT, KIND, END = range(5)
"""Columns of the states that can occur at a time, with a row for each copy."""


def fill_ends(outputs: Integers, firsts: Integers, prices: Integers, ends: Integers) -> None:
    """Fill in the last time with a price for each member, by its completion."""
    for kind, output in enumerate(outputs.tolist()):
        for left in range(output):
            times = 1 + np.flatnonzero(prices[1:, firsts[kind] + left] > 0)
            ends[kind, times + left] = np.maximum(ends[kind, times + left], times)


def fill_begins(requests: Requests, budget: int) -> None:
    """Fill in the first start that leads to a completion and is cheap enough."""
    requests.begins[:], last = NEVER, requests.reduced_costs.shape[1] - 1
    for i, (arrival, output) in enumerate(zip(requests.arrivals, requests.outputs, strict=True)):
        starts = np.arange(arrival, requests.begins.shape[1] - output)
        cheap = starts[requests.reduced_costs[i, np.minimum(starts, last)] <= budget]
        earliest = requests.begins[requests.kinds[i]]
        earliest[cheap + output] = np.minimum(earliest[cheap + output], cheap)


@compiled
def _cost(requests: Requests, i: int, start: int) -> int:
    """Return the reduced cost of a start of a request."""
    last = requests.reduced_costs.shape[1] - 1
    return int(requests.reduced_costs[i, min(start, last)])


@compiled
def fill_possible_states(requests: Requests, now: int, budget: int, shown: Integers) -> int:
    """Fill in the states of a time that have a price then or later, and the least costs of starts.

    Those with most rounds left come first, equal ones one after the other.
    """
    count = 0
    for left in range(requests.outputs.max() - 1, -1, -1):
        for i in range(len(requests.outputs)):
            kind, start = requests.kinds[i], now + left - requests.outputs[i]
            if left >= requests.outputs[i] or start < requests.arrivals[i]:
                continue
            if requests.ends[kind, now + left] >= now and _cost(requests, i, start) <= budget:
                shown[count, PRICE] = requests.prices[now, requests.firsts[kind] + left]
                shown[count, HOLD] = requests.peaks[kind] - left
                shown[count, LEFT] = left
                shown[count, KIND] = kind
                shown[count, END] = requests.ends[kind, now + left]
                count += 1
    requests.starting[:] = NEVER
    for i in range(len(requests.outputs)):
        if requests.arrivals[i] < now and _cost(requests, i, now - 1) <= budget:
            kind, left = requests.kinds[i], requests.outputs[i] - 1
            cost = _cost(requests, i, now - 1)
            requests.starting[kind, left] = min(requests.starting[kind, left], cost)
    return count


@compiled
def fill_knapsack(shown: Integers, worth: Integers) -> None:
    """Fill in the largest value that later states can add, by members and tokens so far."""
    most, memory = worth.shape[1] - 1, worth.shape[2] - 1
    for at in range(len(shown) - 1, -1, -1):
        price, hold, left = shown[at, PRICE], shown[at, HOLD], shown[at, LEFT]
        for many in range(most + 1):
            copy_into(worth[at, many], worth[at + 1, many], memory + 1)
        for many in range(most):
            for held in range(memory - hold - (many + 1) * left + 1):
                value = price + worth[at + 1, many + 1, held + hold]
                worth[at, many, held] = max(worth[at, many, held], value)

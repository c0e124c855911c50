"""Inner loops of a ceiling: the least payment of a request that attains its service level.

Prices are constant in cells of equal length: with borders ``b_0 = 0, b_1, ..`` the price of the
times ``b_c + 1 .. b_{c+1}`` is ``p_c``, and after the last border it is 0.
They are float64 to search for prices, and int64 in proofs: sums may pass 64 bits, costs may not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.cheapest_services import CellPrices
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import order_of
from kvopt.problem.arrays import Floats


class Demands(NamedTuple):
    """Requests that are active at their cheapest times, or in their cheapest rounds.

    Parameters
    ----------
    begins, early, ends
        When each arrives, and when its first and its last token are due.
    amounts, later
        How long it is active, and how much of it may be after its first token.
    tops
        What it uses of a unit of the cheapest time.
    fixed, shortest
        Its price of a round, and the least length of one.
    held, growth
        Tokens held in the first round, and in addition in all later ones.
    prompts
        Work of its prompt by each row.
    """

    begins: Floats
    early: Floats
    ends: Floats
    amounts: Floats
    later: Floats
    tops: Floats
    fixed: Floats
    shortest: Floats
    held: Floats
    growth: Floats
    prompts: Floats


class CellUse(NamedTuple):
    """Rounds (or times), tokens, and works by each row in cells, and rounds of each request."""

    rounds: Floats
    tokens: Floats
    prompts: Floats
    paid: Floats


@compiled
def _take_cheapest(
    demands: Demands,
    i: int,
    slope: float,
    prices: Floats,
    first: int,
    last: int,
    width: float,
    used: Floats,
) -> float:
    """Return the price of the cheapest times of a window, at 1 or more cut short.

    ``prices`` and ``used`` are of its cells from the first one on; prices end with the last one.
    """
    begin, early, end = demands.begins[i], demands.early[i], demands.ends[i]
    left, later, top, cost = demands.amounts[i], demands.later[i], demands.tops[i], 0.0
    # What is after the last price is free, and so comes first.
    free = min(max(early - max(begin, last * width), 0.0), left)
    after = min(max(end - max(early, last * width), 0.0), later, left - free)
    left, later, top = left - free - after, later - after, top - slope * (free + after)
    if left <= 0.0:
        return cost
    for place in order_of(prices):
        cell = first + place
        # The part of the cell before the first token is due, then the one after it.
        size = max(min(early, (cell + 1) * width) - max(begin, cell * width), 0.0)
        size = min(size, left)
        after = max(min(end, (cell + 1) * width) - max(early, cell * width), 0.0)
        after = min(after, later, left - size)
        later -= after
        size += after
        held = size * top - slope * size * (size - 1.0) / 2.0
        used[place] = held
        cost += prices[place] * held
        top -= slope * size
        left -= size
        if left <= 0.0 or cost >= 1.0:
            break
    return cost


@compiled
def fill_cheapest(
    demands: Demands, slope: float, cells: CellPrices, width: float, costs: Floats, used: CellUse
) -> None:
    """Fill the cheapest rounds and prompt of each request, and add up those that cost below 1.

    A window has an amount of time, in which a round takes the least that it lasts.  Of a unit of
    time after the cheapest a request uses ``slope`` less than of the one before.
    """
    by_round, by_token, rows = cells
    shortest, held, prompts = demands.shortest, demands.held, demands.prompts
    last = len(by_round)
    for i in range(len(demands.begins)):
        first = min(int(demands.begins[i] // width), last)
        until = min(int(np.ceil(demands.ends[i] / width)), last)
        until_first = np.ceil(demands.early[i] / width)
        prices, part = np.empty(until - first), np.zeros(until - first)
        # Its tokens grow where they are cheapest, its prompt is before its first token.
        cheap, place, prompt = -1, -1, 0.0
        for cell in range(first, until):
            price = demands.fixed[i] + by_round[cell] + by_token[cell] * held[i]
            prices[cell - first] = price / shortest[i]
            if cheap < 0 or by_token[cell] < by_token[cheap]:
                cheap = cell
            if cell < until_first:
                work = 0.0
                for row in range(len(rows)):
                    work += rows[row, cell] * prompts[row, i]
                if place < 0 or work < prompt:
                    place, prompt = cell, work
        if demands.ends[i] > last * width:
            cheap = -1
        if demands.early[i] > last * width:
            place, prompt = -1, 0.0
        cost = prompt if cheap < 0 else prompt + by_token[cheap] * demands.growth[i]
        costs[i] = cost
        if cost >= 1.0:
            continue
        costs[i] += _take_cheapest(demands, i, slope, prices, first, last, width, part)
        if costs[i] >= 1.0:
            continue
        if cheap >= 0:
            used.tokens[cheap] += demands.growth[i]
        if place >= 0:
            for row in range(len(rows)):
                used.prompts[row, place] += prompts[row, i]
        for cell in range(first, until):
            number = part[cell - first] / shortest[i]
            used.rounds[cell] += number
            used.tokens[cell] += number * held[i]
            used.paid[i] += number

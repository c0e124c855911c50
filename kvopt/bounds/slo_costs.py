"""Inner loops of a ceiling: the cheapest times or rounds of a request that attains.

Prices are constant in cells of equal length, and 0 after the last of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.cheapest_services import CellPrices, RoundColumns, Used
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import order_of
from kvopt.problem.arrays import Floats


class Windows(NamedTuple):
    """When requests may be active.

    Parameters
    ----------
    begins, early, ends
        When each arrives, and when its first and its last token are due.
    later
        How much of its time may be after its first token.
    tops
        What it uses of a unit of the cheapest time.
    """

    begins: Floats
    early: Floats
    ends: Floats
    later: Floats
    tops: Floats


@compiled
def _take_cheapest(
    windows: Windows,
    i: int,
    left: float,
    slope: float,
    prices: Floats,
    first: int,
    last: int,
    width: float,
    used: Floats,
) -> float:
    """Return the price of the cheapest times of a window, cut short at 1, which counts 0.

    ``prices`` and ``used`` are of its cells from the first one on; prices end with the last one.
    It is active for as long as is ``left``.  Time after the first token is due is limited within
    that, so the cheapest time comes first, with the most tokens (Theorem 6.2).  Floats only steer.
    """
    begin, early, end = windows.begins[i], windows.early[i], windows.ends[i]
    later, top, cost = windows.later[i], windows.tops[i], 0.0
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
    windows: Windows,
    columns: RoundColumns,
    fixed: Floats,
    slope: float,
    cells: CellPrices,
    width: float,
    costs: Floats,
    used: Used,
) -> None:
    """Fill the cheapest rounds and prompt of each request, and add up those that cost below 1.

    A window has an amount of time, in which a round takes the least that it lasts.  Of a unit of
    time after the cheapest a request uses ``slope`` less than of the one before.  It pays its
    ``fixed`` price for a round.
    """
    by_round, by_token, rows = cells
    shortest, held, prompts = columns.shortest, columns.held, columns.prompts
    last = len(by_round)
    for i in range(len(fixed)):
        first = min(int(windows.begins[i] // width), last)
        until = min(int(np.ceil(windows.ends[i] / width)), last)
        until_first = np.ceil(windows.early[i] / width)
        prices, part = np.empty(until - first), np.zeros(until - first)
        # Its tokens grow where they are cheapest, its prompt is before its first token.
        cheap, place, prompt = -1, -1, 0.0
        for cell in range(first, until):
            price = fixed[i] + by_round[cell] + by_token[cell] * held[i]
            prices[cell - first] = price / shortest[i]
            if cheap < 0 or by_token[cell] < by_token[cheap]:
                cheap = cell
            if cell < until_first:
                work = 0.0
                for row in range(len(rows)):
                    work += rows[row, cell] * prompts[row, i]
                if place < 0 or work < prompt:
                    place, prompt = cell, work
        # After the last price both are free.
        if windows.ends[i] > last * width:
            cheap = -1
        if windows.early[i] > last * width:
            place, prompt = -1, 0.0
        cost = prompt if cheap < 0 else prompt + by_token[cheap] * columns.growth[i]
        costs[i] = cost
        if cost >= 1.0:
            continue
        whole = columns.rounds[i] * shortest[i]
        costs[i] += _take_cheapest(windows, i, whole, slope, prices, first, last, width, part)
        if costs[i] >= 1.0:
            continue  # it counts 0, and uses nothing
        if cheap >= 0:
            used.tokens[cheap] += columns.growth[i]
        if place >= 0:
            for row in range(len(rows)):
                used.prompts[row, place] += prompts[row, i]
        for cell in range(first, until):
            number = part[cell - first] / shortest[i]
            used.rounds[cell] += number
            used.tokens[cell] += number * held[i]
            used.by_fixed[i] += number

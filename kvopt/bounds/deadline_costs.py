"""What a request pays at least to attain its deadline: the inner loops of its ceiling.

Prices are constant in cells of equal length: with borders ``b_0 = 0, b_1, ..`` the price of the
times ``b_c + 1 .. b_{c+1}`` is ``p_c``, and after the last border it is 0.
They are float64 to look for prices, and int64 to prove: sums may pass 64 bits, costs may not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats, Integers, Numbers


def sums_of(prices: Numbers, width: int) -> tuple[Numbers, Numbers]:
    """Return at each border the sums of ``p_t`` and of ``t p_t`` over the times up to it."""
    kind = prices.dtype.type
    borders = np.arange(len(prices) + 1) * width
    halves = borders * (borders + 1) // 2
    paid, moment = (np.zeros(len(borders), dtype=prices.dtype) for _ in range(2))
    np.cumsum(prices * kind(width), out=paid[1:])
    np.cumsum(prices * np.diff(halves).astype(prices.dtype), out=moment[1:])
    return paid, moment


@compiled
def _cost(
    prices: Numbers, paid: Numbers, moment: Numbers, width: int, s: int, o: int, k: int
) -> Any:
    """Return what the tokens of a run from k on cost: ``sum_j p_{k+j} (s + j)``."""
    last = len(prices)
    c = min(k // width, last)
    e = min((k + o) // width, last)
    b, t = c * width, (k + o) if e < last else last * width
    f = e * width
    here = min(k, last * width)
    before, then = paid[c] + (prices[c] * (here - b) if c < last else prices[0] * 0), paid[e]
    first, second = moment[c], moment[e]
    if c < last:
        first += prices[c] * ((here * (here + 1) - b * (b + 1)) // 2)
    if e < last:
        then += prices[e] * (t - f)
        second += prices[e] * ((t * (t + 1) - f * (f + 1)) // 2)
    return (s - k) * (then - before) + second - first


@compiled
def least_costs(
    arrivals: Integers, prompts: Integers, outputs: Integers, latest: Integers, prices: Numbers,
    paid: Numbers, moment: Numbers, width: int, costs: Numbers, starts: Integers,
) -> None:  # fmt: skip
    """Find the cheapest of the starts ``a .. latest`` of each request, -1 where there is none.

    A step from k to k + 1 moves a run past each border b in k + 1 .. k + o, at which the price
    jumps by D_b, and adds D_b (s + b - k).  So between two starts at which a run begins or ends
    at a border, costs are a polynomial of second degree, whose second difference is the price at
    the begin of the run less that after its end.
    """
    last = len(prices)
    for i in range(len(arrivals)):
        s, o, k, end = prompts[i], outputs[i], arrivals[i], latest[i]
        starts[i] = -1
        if k > end:
            continue
        end = max(k, min(end, last * width))
        best = _cost(prices, paid, moment, width, s, o, k)
        starts[i] = k
        while k < end:
            to_begin, to_end = width - k % width, width - (k + o) % width
            following = min(end, k + min(to_begin, to_end))
            now, then = k // width, (k + o) // width
            bend = (prices[now] if now < last else prices[0] * 0) - (
                prices[then] if then < last else prices[0] * 0
            )
            if bend > 0 and following > k + 1:
                cost = _cost(prices, paid, moment, width, s, o, k)
                step = _cost(prices, paid, moment, width, s, o, k + 1) - cost
                if step < 0:
                    place = min(k + int(-step // bend), following)
                    for near in range(max(place - 1, k), min(place + 1, following) + 1):
                        cost = _cost(prices, paid, moment, width, s, o, near)
                        if cost < best:
                            best, starts[i] = cost, near
            k = following
            cost = _cost(prices, paid, moment, width, s, o, k)
            if cost < best:
                best, starts[i] = cost, k
        costs[i] = best


@compiled
def loads_of(
    prompts: Integers, outputs: Integers, starts: Integers, width: int, loads: Floats
) -> None:
    """Add up what runs from some starts hold in each cell; a start of -1 is none."""
    last = len(loads)
    for i in range(len(starts)):
        time, end = starts[i], starts[i] + outputs[i]
        while starts[i] >= 0 and time < end and time < last * width:
            cell = time // width
            until = min(end, (cell + 1) * width)
            held = prompts[i] + (time + 1 + until) / 2.0 - starts[i]
            loads[cell] += held * (until - time)
            time = until


@compiled
def fill_cheapest(
    begins: Floats, ends: Floats, amounts: Floats, tops: Floats, slope: float, prices: Floats,
    width: float, costs: Floats, loads: Floats,
) -> None:  # fmt: skip
    """Fill the cheapest times of each window, and add up the loads of those that cost below 1.

    A request takes an amount of time; in the cheapest part it holds its top, and ``slope`` less
    for each unit of time after that.
    """
    last = len(prices)
    for i in range(len(begins)):
        first = min(int(begins[i] // width), last)
        until = min(int(np.ceil(ends[i] / width)), last)
        free = min(max(ends[i] - max(begins[i], last * width), 0.0), amounts[i])
        left, top, cost = amounts[i] - free, tops[i] - slope * free, 0.0
        if left <= 0.0:
            costs[i] = 0.0
            continue
        order = np.argsort(prices[first:until])
        used = np.zeros(until - first)
        for place in order:
            cell = first + place
            size = min(ends[i], (cell + 1) * width) - max(begins[i], cell * width)
            size = min(size, left)
            held = size * top - slope * size * (size - 1.0) / 2.0
            used[place] = held
            cost += prices[cell] * held
            top -= slope * size
            left -= size
            if left <= 0.0 or cost >= 1.0:
                break
        costs[i] = cost
        if cost < 1.0:
            for place in range(until - first):
                loads[first + place] += used[place]

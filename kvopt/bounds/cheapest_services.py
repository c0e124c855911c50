"""Find the cheapest services of requests at prices of shared rounds, and add up what they use.

The loops take floats to search for prices, and integers to prove; in Python where integers pass 64
bits.  `kvopt.bounds.shared_rounds` has the bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvopt.problem.arrays import Floats, Integers, Numbers


class CellGrid(NamedTuple):
    """Denominator of prices, nanoseconds of a cell (a float among floats), and numbers of cells.

    ``cells`` is that of all cells, ``period`` that of a period of block shares.
    """

    unit: int
    cell: Any
    cells: int
    period: int = 2**62


class CellPrices(NamedTuple):
    """Prices of cells, over the unit of a proof.

    Parameters
    ----------
    round
        What each round of a request costs, beyond its own price of a round and its tokens.
    token
        What each token costs that is held in a round.
    rows
        Prices of the rows; the last row has the shares of interference.
    """

    round: Numbers
    token: Numbers
    rows: Numbers


class Services(NamedTuple):
    """Requests in the columns that the loops read, in one kind of numbers.

    Parameters
    ----------
    arrivals, alone, shortest, growth, prompts, nodes, profile
        As of `kvopt.bounds.shared_rounds.RoundColumns`.
    whole, later
        Least length of all rounds, and of all but the first.
    rates
        Price of waiting.
    fixed, slopes
        Prices of rounds.
    lowest
        Minimum of the profile.
    """

    arrivals: Numbers
    alone: Numbers
    shortest: Numbers
    whole: Numbers
    later: Numbers
    growth: Numbers
    rates: Numbers
    fixed: Numbers
    slopes: Numbers
    prompts: Numbers
    nodes: Numbers
    profile: Numbers
    lowest: Numbers


class Payments(NamedTuple):
    """What requests pay.

    Parameters
    ----------
    values
        The least cost, times the unit.
    ends
        The cell in which a request then completes; their number if it is after the last one.
    limits
        The price of the dearest service that it then uses.
    """

    values: Numbers
    ends: Integers
    limits: Numbers

    @classmethod
    def of(cls, count: int, kind: Any) -> Payments:
        """Return space for the answers of so many requests."""
        values, limits = np.zeros((2, count), dtype=kind)
        return cls(values, np.zeros(count, dtype=np.int64), limits)


def find_cheapest(
    first: int,
    last: int,
    grid: CellGrid,
    never: float,
    prices: CellPrices,
    services: Services,
    payments: Payments,
) -> None:
    """Find the least cost of a range of requests.

    Costs are below ``never``, which stands for that of a wait beyond it.

    A request that completes in a cell uses the cheapest services of all cells from its arrival up
    to this one.  Used cells are on a stack, the dearest first, which may be used in part.
    """
    cell, period = grid.cell, grid.period
    by_round, by_token, rows = prices
    (arrivals, alone, shortest, whole, later, growth, rates, fixed, slopes, prompts, nodes, profile,
     lowest) = services  # fmt: skip
    values, ends, limits = payments
    count = len(by_round)
    stack, sizes = np.empty_like(by_round), np.empty_like(by_round)
    for i in range(first, last):
        arrival, k = arrivals[i], int(arrivals[i] // cell)
        after, place, wait = k, count, max(alone[i], count * cell - arrival)
        best = never + 0 * arrival if wait * 1.0 * rates[i] >= never else wait * rates[i]
        head, top, total, cost, limit = 0, 0, 0 * arrival, 0 * arrival, 0 * arrival
        token, prompt, least, is_bounded = 0 * arrival, 0 * arrival, 0 * arrival, False
        node = 0 * arrival
        while k < count:
            begin, end = max(k * cell, arrival), (k + 1) * cell
            time = rates[i] * max(alone[i], begin - arrival)
            if time + least >= best:
                break
            # The cell joins those that are used, and what is dearer than needed leaves.
            pays = max(fixed[i] - slopes[i] * (begin - arrival), 0 * arrival)
            price = (pays + by_round[k] + by_token[k] * profile[i, k // period]) // shortest[i]
            if total < whole[i] or price < stack[head]:
                spot = top
                while spot > head and stack[spot - 1] < price:
                    stack[spot], sizes[spot] = stack[spot - 1], sizes[spot - 1]
                    spot -= 1
                stack[spot], sizes[spot] = price, end - begin
                top += 1
                total, cost = total + end - begin, cost + (end - begin) * price
                while total - sizes[head] >= whole[i]:
                    total, cost = total - sizes[head], cost - sizes[head] * stack[head]
                    head += 1
            if begin == arrival or by_token[k] < token:
                token = by_token[k]
            if end > arrival + alone[i]:
                # Its prompt is processed before its later rounds, and so are its nodes, which
                # may be so at another time.
                while after <= k and after * cell < end - later[i]:
                    work, beside = 0 * arrival, 0 * arrival
                    for row in range(len(rows)):
                        work += rows[row, after] * prompts[row, i]
                        beside += rows[row, after] * nodes[row, i]
                    if after * cell <= arrival or work < prompt:
                        prompt = work
                    if after * cell <= arrival or beside < node:
                        node = beside
                    after += 1
                value = time + cost - (total - whole[i]) * stack[head]
                value += growth[i] * token + prompt + node
                if value < best:
                    best, place, limit = value, k, stack[head]
                if not is_bounded and rates[i] > 0:
                    is_bounded = True
                    # Services of all cells that are worth a wait cost so much at the least.
                    last = min(count, int((arrival + best // rates[i]) // cell) + 1)
                    low, token_low = by_round[k], by_token[k]
                    for other in range(int(arrival // cell), last):
                        low = min(low, by_round[other])
                        token_low = min(token_low, by_token[other])
                    least = (low + token_low * lowest[i]) // shortest[i] * whole[i]
                    least += growth[i] * token_low
            k += 1
        values[i], ends[i], limits[i] = best, place, limit


class Used(NamedTuple):
    """The use of all requests at their cheapest services.

    Parameters
    ----------
    rounds, tokens
        Rounds in each cell, and tokens held in them.
    prompts
        Work of prompts by each row in each cell.
    by_fixed, by_slope
        How the cost of each request changes with its prices of rounds.
    reads
        What each request pays for a token of its profile in each period.
    """

    rounds: Floats
    tokens: Floats
    prompts: Floats
    by_fixed: Floats
    by_slope: Floats
    reads: Floats


def add_services(
    first: int,
    last: int,
    grid: CellGrid,
    prices: CellPrices,
    services: Services,
    payments: Payments,
    used: Used,
) -> None:
    """Add the use of a range of requests at the costs of `find_cheapest`."""
    by_round, by_token, rows = prices
    (arrivals, _, shortest, whole, later, growth, _, fixed, slopes, prompts, nodes, profile,
     _) = services  # fmt: skip
    _, ends, limits = payments
    cell, period = grid.cell, grid.period
    rounds, tokens, works, by_fixed, by_slope, reads = used
    costs = np.empty(len(by_round))
    for i in range(first, last):
        arrival, place = arrivals[i], ends[i]
        if place >= len(by_round):
            continue  # it waits until nothing costs anything
        begin = int(arrival // cell)
        cheap, full, ties = begin, 0.0, 0.0
        prompt, least = begin, -1.0
        node, least_node = begin, -1.0
        for k in range(begin, place + 1):
            since = max(k * cell - arrival, 0.0)
            pays = max(fixed[i] - slopes[i] * since, 0.0)
            costs[k] = (pays + by_round[k] + by_token[k] * profile[i, k // period]) // shortest[i]
            size = (k + 1) * cell - arrival - since
            if costs[k] < limits[i]:
                full += size
            elif costs[k] == limits[i]:
                ties += size
            if by_token[k] < by_token[cheap]:
                cheap = k
            if k * cell < (place + 1) * cell - later[i]:
                work, beside = 0.0, 0.0
                for row in range(len(rows)):
                    work += rows[row, k] * prompts[row, i]
                    beside += rows[row, k] * nodes[row, i]
                if least < 0.0 or work < least:
                    least, prompt = work, k
                if least_node < 0.0 or beside < least_node:
                    least_node, node = beside, k
        tokens[cheap] += growth[i]
        for row in range(len(rows)):
            works[row, prompt] += prompts[row, i]
            works[row, node] += nodes[row, i]
        # CellPrices of the last price are used in part, all of them alike.
        part = (whole[i] - full) / ties
        for k in range(begin, place + 1):
            if costs[k] > limits[i]:
                continue
            since = max(k * cell - arrival, 0.0)
            number = ((k + 1) * cell - arrival - since) / shortest[i]
            if costs[k] == limits[i]:
                number *= part
            rounds[k] += number
            tokens[k] += number * profile[i, k // period]
            reads[i, k // period] += number * by_token[k]
            if fixed[i] > slopes[i] * since:
                by_fixed[i] += number
                by_slope[i] -= number * since

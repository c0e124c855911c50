"""Find the cheapest services of requests at prices of shared rounds, and add up what they use.

The loops take floats to search for prices, and integers to prove; in Python where integers pass 64
bits.  `kvopt.bounds.shared_rounds` has the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kvopt.bounds.prefix_shares import Processed
from kvopt.bounds.seconds_evaluation import integers, longest
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.instance import Instance


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


class RoundColumns(NamedTuple):
    """Requests in the columns that a bound by shared rounds needs; times in nanoseconds.

    Parameters
    ----------
    arrivals
        From the first one on.
    alone
        Least time from the arrival to the completion.
    rounds
        Rounds that yield a token.
    shortest
        Least length of such a round.
    held
        Tokens held in the first of them.
    growth
        Tokens held in addition in all later ones.
    prompts
        For each row the work of the prompt beyond that of a token; the last row is interference.
    nodes
        For each row the work of the nodes whose first user to arrive it is.
    counts
        Weights of the latencies.
    profile
        Tokens for which it pays in its first round, by periods of cells.
    """

    arrivals: Numbers
    alone: Numbers
    rounds: Numbers
    shortest: Numbers
    held: Numbers
    growth: Numbers
    prompts: Numbers
    nodes: Numbers
    counts: Numbers
    profile: Numbers

    @classmethod
    def of(
        cls,
        instance: Instance,
        model: BatchTime,
        rows: Sequence[Sequence[int]],
        arrivals: Sequence[int],
        *,
        chunks: bool = False,
        done: Processed | None = None,
    ) -> RoundColumns:
        """Return the columns of an instance, in integers of any size.

        With ``chunks`` prompts may be processed in pieces: then each row is one line, and a token
        of a prompt delays others by f(1) - f(0) only.  ``done`` are the prompt tokens that are
        surely processed, if requests hold others as well; nodes are so in pieces.  The profile is
        that of the whole prompt.

        With f(b) the longest line at b tokens, a request alone takes f(1 + fresh) + prompt_ns fresh
        + (o - 1) f(1) + kv_ns times the tokens that it holds, summed over its rounds.
        """
        prompts = integers([request.prompt for request in instance])
        outputs = integers([request.output for request in instance])
        fresh = prompts if done is None else integers(done.private)
        growth = outputs * (outputs - 1) // 2
        token, prefill = longest(model.lines, 1), longest(model.lines, fresh + 1)
        more = model.prompt_ns * fresh
        chosen = [[model.lines[line] for line in row] for row in rows]
        works = [longest(lines, fresh + 1) - longest(lines, 1) for lines in chosen]
        in_interference = fresh * (token - longest(model.lines, 0)) if chunks else prefill - token
        held_in_all = outputs * (prompts + 1) + growth
        nodes = np.zeros((len(rows) + 1, len(instance)), dtype=object)
        if done is not None and done.nodes:
            slopes = [line.token_ns + model.prompt_ns for (line,) in chosen]
            nodes[:-1] = np.outer(slopes, integers(list(map(sum, done.nodes))))
        return cls(
            arrivals=integers(arrivals) - min(arrivals, default=0),
            alone=prefill + more + (outputs - 1) * token + model.kv_ns * held_in_all,
            rounds=outputs,
            shortest=token + model.kv_ns * (prompts + 1),
            held=prompts + 1,
            growth=growth,
            prompts=np.array([work + more for work in (*works, in_interference)], dtype=object),
            nodes=nodes,
            counts=integers([request.weight for request in instance]),
            profile=(prompts + 1)[:, None],
        )


class Shares(NamedTuple):
    """Prices of rounds, and shares of interference.

    Parameters
    ----------
    fixed, slopes
        Prices of rounds, as in a proof.
    interference
        Shares that charge works in times alone, over the unit.
    grown
        Shares that charge prompts by the backlog, over the unit.
    left
        What of ``grown`` charges the works of tokens in times alone, over the unit.
    """

    fixed: Numbers
    slopes: Numbers
    interference: Numbers
    grown: Numbers
    left: Numbers


T = TypeVar("T", bound=NamedTuple)


def in_kind(columns: T, kind: Any) -> T:
    """Return columns in one kind of numbers."""
    return columns._make(np.asarray(column, dtype=kind) for column in columns)


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
    tokens, prompts, nodes
        The cells of the tokens that it holds in addition, and of its prompt and its nodes.
    """

    values: Numbers
    ends: Integers
    limits: Numbers
    tokens: Integers
    prompts: Integers
    nodes: Integers

    @classmethod
    def of(cls, count: int, kind: Any) -> Payments:
        """Return space for the payments of so many requests."""
        values, limits = np.zeros((2, count), dtype=kind)
        ends, tokens, prompts, nodes = np.zeros((4, count), dtype=np.int64)
        return cls(values, ends, limits, tokens, prompts, nodes)


def find_cheapest(
    first: int,
    last: int,
    grid: CellGrid,
    never: float,
    prices: CellPrices,
    columns: RoundColumns,
    shares: Shares,
    payments: Payments,
) -> None:
    """Find the least cost of a range of requests.

    Costs are below ``never``, which stands for that of a wait beyond it.

    A request that completes in a cell uses the cheapest services of all cells from its arrival up
    to this one.  A round takes ``shortest`` of the time of cells at least, all of them ``whole``.
    Used cells are on a stack, the dearest first, which may be used in part.
    """
    cell, period = grid.cell, grid.period
    by_round, by_token, rows = prices
    arrivals, alone, rounds, shortest, _, growth, prompts, nodes, counts, profile = columns
    fixed, slopes, interference, grown, _ = shares
    count = len(by_round)
    stack, sizes = np.empty_like(by_round), np.empty_like(by_round)
    for i in range(first, last):
        arrival, k = arrivals[i], int(arrivals[i] // cell)
        whole = rounds[i] * shortest[i]
        later = whole - shortest[i]
        rate = counts[i] * grid.unit - interference[i] - grown[i]
        after, place, wait = k, count, max(alone[i], count * cell - arrival)
        # Tested in floats first: the product may leave the range of 64 bits.
        best = never + 0 * arrival if wait * 1.0 * rate >= never else wait * rate
        head, top, total, cost, limit = 0, 0, 0 * arrival, 0 * arrival, 0 * arrival
        token, prompt, node, lowest = 0 * arrival, 0 * arrival, 0 * arrival, 0 * arrival
        token_at, prompt_at, node_at, is_bounded = k, k, k, False
        while k < count:
            begin, end = max(k * cell, arrival), (k + 1) * cell
            time = rate * max(alone[i], begin - arrival)
            if time + lowest >= best:
                break
            # The cell joins those that are used, and what is dearer than needed leaves.
            pays = max(fixed[i] - slopes[i] * (begin - arrival), 0 * arrival)
            price = (pays + by_round[k] + by_token[k] * profile[i, k // period]) // shortest[i]
            if total < whole or price < stack[head]:
                spot = top
                while spot > head and stack[spot - 1] < price:
                    stack[spot], sizes[spot] = stack[spot - 1], sizes[spot - 1]
                    spot -= 1
                stack[spot], sizes[spot] = price, end - begin
                top += 1
                total, cost = total + end - begin, cost + (end - begin) * price
                while total - sizes[head] >= whole:
                    total, cost = total - sizes[head], cost - sizes[head] * stack[head]
                    head += 1
            if begin == arrival or by_token[k] < token:
                token, token_at = by_token[k], k
            if end > arrival + alone[i]:
                # Its prompt is processed before its later rounds, and so are its nodes, which
                # may be so at another time.
                while after <= k and after * cell < end - later:
                    work, of_nodes = 0 * arrival, 0 * arrival
                    for row in range(len(rows)):
                        work += rows[row, after] * prompts[row, i]
                        of_nodes += rows[row, after] * nodes[row, i]
                    if after * cell <= arrival or work < prompt:
                        prompt, prompt_at = work, after
                    if after * cell <= arrival or of_nodes < node:
                        node, node_at = of_nodes, after
                    after += 1
                # It may complete here, if that is cheaper than in all cells before.
                value = time + cost - (total - whole) * stack[head]
                value += growth[i] * token + prompt + node
                if value < best:
                    best, place, limit = value, k, stack[head]
                    payments.tokens[i], payments.prompts[i] = token_at, prompt_at
                    payments.nodes[i] = node_at
                if not is_bounded and rate > 0:
                    is_bounded = True
                    # Services of all cells that are worth a wait cost this much or more.
                    until = min(count, int((arrival + best // rate) // cell) + 1)
                    low, token_low = by_round[k], by_token[k]
                    for other in range(int(arrival // cell), until):
                        low = min(low, by_round[other])
                        token_low = min(token_low, by_token[other])
                    held = profile[i, 0]
                    for other in range(1, profile.shape[1]):
                        held = min(held, profile[i, other])
                    lowest = (low + token_low * held) // shortest[i] * whole
                    lowest += growth[i] * token_low
            k += 1
        payments.values[i], payments.ends[i], payments.limits[i] = best, place, limit


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

    @classmethod
    def of(cls, columns: RoundColumns, cells: CellPrices) -> Used:
        """Return room for the use of all requests."""
        (rounds, tokens), works = np.zeros((2, len(cells.round))), np.zeros_like(cells.rows)
        by_fixed, by_slope = np.zeros((2, len(columns.arrivals)))
        return cls(rounds, tokens, works, by_fixed, by_slope, np.zeros_like(columns.profile))


def add_services(
    first: int,
    last: int,
    grid: CellGrid,
    prices: CellPrices,
    columns: RoundColumns,
    shares: Shares,
    payments: Payments,
    used: Used,
) -> None:
    """Add the use of a range of requests at the costs of `find_cheapest`.

    At these services the use of a cell is the derivative of the costs by its prices.
    """
    by_round, by_token, rows = prices
    arrivals, _, whole_rounds, shortest, _, growth, prompts, nodes, _, profile = columns
    fixed, slopes, _, _, _ = shares
    cell, period = grid.cell, grid.period
    rounds, tokens, works, by_fixed, by_slope, reads = used
    costs = np.empty(len(by_round))
    for i in range(first, last):
        arrival, place, limit = arrivals[i], payments.ends[i], payments.limits[i]
        if place >= len(by_round):
            continue  # it waits until nothing costs anything
        # What is used once: tokens that it holds in addition, its prompt, and its nodes.
        tokens[payments.tokens[i]] += growth[i]
        for row in range(len(rows)):
            works[row, payments.prompts[i]] += prompts[row, i]
            works[row, payments.nodes[i]] += nodes[row, i]
        # The time of cells that are used in full, and of those of the last price.
        begin, full, ties = int(arrival // cell), 0.0, 0.0
        for k in range(begin, place + 1):
            since = max(k * cell - arrival, 0.0)
            pays = max(fixed[i] - slopes[i] * since, 0.0)
            costs[k] = (pays + by_round[k] + by_token[k] * profile[i, k // period]) // shortest[i]
            size = (k + 1) * cell - arrival - since
            if costs[k] < limit:
                full += size
            elif costs[k] == limit:
                ties += size
        # Cells of the last price are used in part, all of them alike.
        part = (whole_rounds[i] * shortest[i] - full) / ties
        for k in range(begin, place + 1):
            if costs[k] > limit:
                continue
            since = max(k * cell - arrival, 0.0)
            number = ((k + 1) * cell - arrival - since) / shortest[i]
            if costs[k] == limit:
                number *= part
            rounds[k] += number
            tokens[k] += number * profile[i, k // period]
            reads[i, k // period] += number * by_token[k]
            if fixed[i] > slopes[i] * since:
                by_fixed[i] += number
                by_slope[i] -= number * since

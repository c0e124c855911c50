"""Evaluate the bound of integer prices of states, in integers.

Between two knots a < b prices are interpolated and rounded down,

    F_t = ((b - t) F_a + (t - a) F_b) // (b - a),

so the price of a configuration is at most the interpolated largest sum, rounded down too (Claim 3.6
of docs/theory/configurations.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kvopt.bounds.configurations.smoothing import fill_largest
from kvopt.bounds.configurations.states import Knots, States
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import order_of
from kvopt.kernels.magnitudes import LARGEST_SUM
from kvopt.problem.arrays import Flags, Floats, Integers

FORBIDDEN = LARGEST_SUM
"""Cost, in units of 1 / D, of a removed start: above every other, and sums fit into 64 bits."""
_FINEST = 10
"""Binary places of prices at most: 20 gave 0.05 rounds of 7,486 more, and twice the bytes."""


@dataclass(frozen=True)
class Evaluation:
    """Value of prices over all schedules with the remaining starts.

    Parameters
    ----------
    denominator
        D, the unit of everything here.
    total
        D times the bound: no such schedule has a total latency below it.
    reduced_costs
        For each request and start round 0 .. T the reduced cost of the start: its cost less the
        least one of the request; `FORBIDDEN` if removed.  The last column is of T and later.
    prices
        F_t of each state, for t = 0 .. T.
    largest
        R_t, at least the price of each configuration that can occur at t, for t = 0 .. T.
    """

    denominator: int
    total: int
    reduced_costs: Integers
    prices: Integers
    largest: Integers

    @property
    def bound(self) -> int:
        """The bound on total latency, rounded up."""
        return -(-self.total // self.denominator)


def rounded(prices: Floats, denominator: int) -> Integers:
    """Return prices over a denominator, none of them negative."""
    return np.asarray(np.floor(np.maximum(prices, 0.0) * denominator).astype(np.int64))


def denominator_for(states: States, knots: Knots, prices: Floats) -> int:
    """Return a power of two that keeps every sum of these prices well inside 64 bits.

    A finer one than `_FINEST` hardly raises a bound, and makes certificates longer.
    """
    longest = int(states.outputs.max())
    latest = knots.last + longest + int(states.arrivals.max())
    largest = latest + float(prices.max(initial=0.0)) * longest
    largest *= (len(states.outputs) + knots.last) * states.workers
    return int(2 ** max(0, min(_FINEST, 58 - int(np.ceil(np.log2(largest + 1))))))


def evaluate(
    states: States, knots: Knots, starts: Flags, prices: Integers, denominator: int
) -> Evaluation:
    """Evaluate prices at knots, for requests with their remaining starts.

    The bound is Theorem 3.1 of docs/theory, for configurations as in Claim 3.3; between
    knots largest sums may be interpolated by Claim 3.6.
    """
    largest = _largest(states, knots, knots.copies(states, starts), prices)
    return evaluation_of(states, knots, starts, prices, largest, denominator)


def evaluation_of(
    states: States,
    knots: Knots,
    starts: Flags,
    prices: Integers,
    largest: Integers,
    denominator: int,
) -> Evaluation:
    """Evaluate the bound of prices at knots, with the largest sum R at each time."""
    costs = np.full(starts.shape, FORBIDDEN, dtype=np.int64)
    total = _fill_costs(states, knots.times, prices.T.copy(), denominator, starts, costs)
    reduced_costs = np.where(costs < FORBIDDEN, costs - costs.min(axis=1)[:, None], FORBIDDEN)
    by_time = _at_all_times(knots, prices)
    return Evaluation(denominator, total - int(largest.sum()), reduced_costs, by_time, largest)


def total_of(states: States, knots: Knots, prices: Integers, denominator: int) -> int:
    """Return the total of `evaluate` with all starts, without its tables.

    So it works for thousands of requests.
    """
    starts = np.ones((1, knots.last + 1), dtype=np.bool_)
    costs = np.empty(starts.shape, dtype=np.int64)
    total = _fill_costs(states, knots.times, prices.T.copy(), denominator, starts, costs)
    return total - int(_largest(states, knots, knots.copies_by_arrival(states), prices).sum())


def _largest(states: States, knots: Knots, copies: Integers, prices: Integers) -> Integers:
    """Return the largest price of a configuration at the times 0 .. T.

    Each worker of a fleet has a configuration, so their number multiplies the largest sum.
    """
    # The number of members is not limited to the requests that can be active together: the verifier
    # has no such limit, and the claim must not exceed the bound that it finds.
    members = min(int(copies.sum(axis=1).max()), states.memory // int(states.holds.min()))
    best = np.empty((members + 1, states.memory + 1), dtype=np.int64)
    sums = np.empty(len(knots), dtype=np.int64)
    fill_largest(states, prices, copies, best, sums)
    return _at_all_times(knots, states.workers * sums)


def _at_all_times(knots: Knots, values: Integers) -> Integers:
    """Return values at knots interpolated at the times 0 .. T, rounded down; 0 at time 0."""
    rows = np.zeros((knots.last + 1, *values.shape[1:]), dtype=np.int64)
    rows[-1] = values[-1]
    for (a, b), (low, high) in zip(pairwise(knots.times.tolist()), pairwise(values), strict=True):
        steps = np.arange(b - a).reshape(-1, *[1] * (values.ndim - 1))
        rows[a:b] = ((b - a - steps) * low + steps * high) // (b - a)
    return rows


@compiled
def _fill_costs(
    states: States,
    times: Integers,
    prices: Integers,
    denominator: int,
    starts: Flags,
    costs: Integers,
) -> int:
    """Fill in the cost of every start, and return the sum of the least cost of each request.

    The last column is for all late starts.  A single row of ``costs`` serves all requests in turn.
    ``paid[c]`` is the sum of prices that a request of the same peak with completion c has paid in
    its last states; ``prices`` has a row for each state, with the knots as columns.
    """
    outputs, last, total, longest = states.outputs, times[-1], 0, 0
    for output in outputs:
        longest = max(longest, output)
    paid = np.zeros(last + longest + 1, dtype=np.int64)
    peak, passed = -1, 0
    # Requests of one peak come one after the other, outputs upwards.
    for i in order_of(states.firsts + outputs):
        if states.firsts[i] != peak:
            peak, passed = states.firsts[i], 0
            paid[:] = 0
        while passed < outputs[i]:
            row = prices[peak + passed]
            for knot in range(len(times) - 1):
                begin, end = times[knot], times[knot + 1]
                low, high = row[knot], row[knot + 1]
                for t in range(begin, end):
                    paid[t + passed] += ((end - t) * low + (t - begin) * high) // (end - begin)
            paid[last + passed] += row[-1]
            passed += 1
        arrival, output = states.arrivals[i], outputs[i]
        place, lowest = i % len(starts), FORBIDDEN
        for k in range(min(arrival, last), last + 1):
            if starts[place, k]:
                cost = denominator * (max(k, arrival) + output - arrival) + paid[k + output]
                costs[place, k] = cost
                lowest = min(lowest, cost)
        total += lowest
    return total

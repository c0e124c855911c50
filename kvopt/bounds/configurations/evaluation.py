"""What integer prices of states prove, evaluated in integers.

Between two knots a < b prices are interpolated and rounded down,

    F_t = ((b - t) F_a + (t - a) F_b) // (b - a),

so that no configuration is worth more than the interpolated largest sums, rounded down too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvopt.bounds.configurations.smoothing import largest_sums, steps_of
from kvopt.bounds.configurations.states import Knots, States
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Flags, Floats, Integers

CLOSED = 2**61
"""Cost, in units of 1 / D, of a start that was ruled out: above every other, and sums fit."""
_FINEST = 10
"""Binary places of prices at most: 20 gave 0.05 rounds of 7,486 more, and twice the bytes."""


@dataclass(frozen=True)
class Evaluation:
    """What prices prove of all schedules with the starts that are left.

    Parameters
    ----------
    denominator
        D, the unit of everything here.
    total
        D times the bound: no such schedule has a total latency below it.
    reduced_costs
        For each request and start round 0 .. T the reduced cost of the start: its cost less the
        least one of the request; `CLOSED` if ruled out.  The last column is of T and later.
    prices
        F_t of each state, for t = 0 .. T.
    largest
        No configuration that can stand at t is worth more than this, for t = 0 .. T.
    """

    denominator: int
    total: int
    reduced_costs: Integers
    prices: Integers
    largest: Integers

    @property
    def bound(self) -> int:
        """The least total latency that is not ruled out."""
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
    most = (latest + float(prices.max(initial=0.0)) * longest) * (len(states.outputs) + knots.last)
    most *= states.workers
    return int(2 ** max(0, min(_FINEST, 58 - int(np.ceil(np.log2(most + 1))))))


def evaluate(
    states: States, knots: Knots, starts: Flags, prices: Integers, denominator: int
) -> Evaluation:
    """Evaluate prices at knots, for requests with some starts left.

    The bound is Claim 10 of docs/configurations.md, for configurations as in Claim 1; between
    knots largest sums may be interpolated by Claim 5.  Of a fleet each worker shows a
    configuration, so together they are worth at most as many times the largest sum.
    """
    last = knots.last
    by_time = np.zeros((last + 1, len(states)), dtype=np.int64)
    largest = np.zeros(last + 1, dtype=np.int64)
    sums = _largest_at_knots(states, knots.copies(states, starts), prices)
    for knot, time in enumerate(knots.times.tolist()):
        by_time[time], largest[time] = prices[knot], states.workers * sums[knot]
    for a, b in zip(knots.times[:-1].tolist(), knots.times[1:].tolist(), strict=True):
        for t in range(a + 1, b):
            by_time[t] = ((b - t) * by_time[a] + (t - a) * by_time[b]) // (b - a)
            largest[t] = ((b - t) * largest[a] + (t - a) * largest[b]) // (b - a)
    return evaluation_of(states, starts, by_time, largest, denominator)


def evaluation_of(
    states: States, starts: Flags, by_time: Integers, largest: Integers, denominator: int
) -> Evaluation:
    """Return what prices at all times prove, with a largest sum for each time."""
    costs = np.full(starts.shape, CLOSED, dtype=np.int64)
    _costs(states.arrivals, states.outputs, states.firsts, starts, by_time, denominator, costs)
    least = costs.min(axis=1)
    reduced_costs = np.where(costs < CLOSED, costs - least[:, None], CLOSED)
    total = int(least.sum()) - int(largest.sum())
    return Evaluation(denominator, total, reduced_costs, by_time, largest)


def total_of(
    states: States, knots: Knots, copies: Integers, prices: Integers, denominator: int
) -> int:
    """Return the total that `evaluate` would find with all starts, without its tables.

    What a request costs is laid out for one peak at a time, so requests may be thousands.
    """
    largest = states.workers * _largest_at_knots(states, copies, prices)
    total = -int(largest[-1])
    for a, b, low, high in zip(
        knots.times[:-1], knots.times[1:], largest[:-1], largest[1:], strict=True
    ):
        steps = np.arange(b - a)
        total -= int((((b - a - steps) * low + steps * high) // (b - a)).sum())
    together = np.lexsort((states.outputs, states.firsts))
    return total + _least_costs(
        together,
        states.arrivals,
        states.outputs,
        states.firsts,
        knots.times,
        np.ascontiguousarray(prices.T),
        denominator,
    )


def _largest_at_knots(states: States, copies: Integers, prices: Integers) -> Integers:
    sums = np.empty(len(prices), dtype=np.int64)
    steps = np.empty(int(copies.sum(axis=1).max()), dtype=np.int64)
    # Not only as many members as requests can be active together: the verifier knows no such
    # limit, and what is claimed must not be more than what it finds.
    most = min(len(steps), states.memory // int(states.holds.min()))
    best = np.empty((most + 1, states.memory + 1), dtype=np.int64)
    for knot in range(len(prices)):
        count = steps_of(prices[knot], copies[knot], states.order, 0, steps)
        largest_sums(prices[knot], steps, count, states.holds, states.lefts, best)
        sums[knot] = best.max()
    return sums


@compiled
def _costs(
    arrivals: Integers,
    outputs: Integers,
    firsts: Integers,
    starts: Flags,
    prices: Integers,
    denominator: int,
    costs: Integers,
) -> None:
    """Fill in what every start costs; the last column holds the least of all late starts."""
    last = len(prices) - 1
    for i in range(len(outputs)):
        for k in range(arrivals[i], last):
            if starts[i, k]:
                cost = denominator * (k + outputs[i] - arrivals[i])
                for age in range(1, min(outputs[i], last - k) + 1):
                    cost += prices[k + age, firsts[i] + outputs[i] - age]
                costs[i, k] = cost
        if starts[i, last]:
            late = max(last, arrivals[i])
            costs[i, last] = denominator * (late + outputs[i] - arrivals[i])


@compiled
def _least_costs(
    together: Integers,
    arrivals: Integers,
    outputs: Integers,
    firsts: Integers,
    times: Integers,
    prices: Integers,
    denominator: int,
) -> int:
    """Return the sum of what the cheapest start of each request costs.

    Requests come peak by peak, outputs upwards.  ``paid[c]`` is what one that completes at c
    passes in the states of the peak so far; there is a row of prices for each state.
    """
    last, total = times[-1], 0
    paid = np.zeros(last + outputs.max() + 1, dtype=np.int64)
    peak, states = -1, 0
    for i in together:
        if firsts[i] != peak:
            peak, states = firsts[i], 0
            paid[:] = 0
        while states < outputs[i]:
            row = prices[peak + states]
            for knot in range(len(times) - 1):
                begin, end = times[knot], times[knot + 1]
                low, high = row[knot], row[knot + 1]
                for t in range(begin, end):
                    paid[t + states] += ((end - t) * low + (t - begin) * high) // (end - begin)
            paid[last + states] += row[-1]
            states += 1
        delay = outputs[i] - arrivals[i]
        least = denominator * (max(last, arrivals[i]) + delay)
        for k in range(arrivals[i], last):
            least = min(least, denominator * (k + delay) + paid[k + outputs[i]])
        total += least
    return total

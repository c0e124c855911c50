"""A smooth stand-in for the bound of priced configurations, and its gradient.

The bound is a sum of minima over starts less a sum of maxima over configurations.  With a
temperature both become averages in which the best weighs most: least costs turn into
``-tau log sum exp(-cost / tau)``, and the dynamic program over configurations adds where it
compared.  The derivative by the price of a state is the share of requests that pass it less
the share of configurations that hold it.

The hard values come out on the way.  All of this is floats: it steers, it proves nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvopt.configurations.states import Flags, Floats, Integers
from kvopt.kernels.compiled import steering

_TILT = 0.8
"""Share of the largest sum that is taken out as a price of held tokens; keeps sums in range."""
_RANGE = 690.0
"""Largest exponent of e whose power a float can hold, nearly."""
_OUT_OF_REACH = -(2**60)
"""Value of what cannot be reached: less than any sum of prices, and sums with it fit 64 bits."""
_FAINT = 25.0
"""Temperatures below zero from which on a price is left out."""


@steering
def steps_of(
    prices: Floats, copies: Integers, order: Integers, threshold: float, steps: Integers
) -> int:
    """List the states that the dynamic program may add, once for every copy."""
    count = 0
    for state in order:
        if prices[state] > threshold:
            for _ in range(copies[state]):
                steps[count] = state
                count += 1
    return count


@steering
def largest_sums(
    prices: Any, steps: Integers, count: int, holds: Integers, lefts: Integers, best: Any
) -> int:
    """Fill best[c, H] with the largest price of a configuration of c states that holds H.

    Returns the largest c that was reached.  Negative entries are out of reach.  That this is
    the largest is Claim 3 of docs/configurations.md, which calls the number of members A.
    """
    memory = best.shape[1] - 1
    best[:, :] = _OUT_OF_REACH
    best[0, 0] = 0
    reached = 0
    for step in range(count):
        state = steps[step]
        price, hold, left = prices[state], holds[state], lefts[state]
        if price <= 0:
            continue
        for c in range(min(reached, best.shape[0] - 2), -1, -1):
            room = memory - hold - (c + 1) * left
            if room < 0:
                continue
            source, target = best[c], best[c + 1]
            for held in range(room + 1):
                target[held + hold] = max(target[held + hold], source[held] + price)
            if c == reached:
                reached += 1
    return reached


@steering
def _scale(best: Floats, reached: int, tau: float) -> tuple[float, float, float]:
    """Return the largest sum, a price of a held token that explains most of it, and a shift.

    Less the price of what is held, and shifted, sums over tau stay in the range of floats;
    where they do not, the shift is infinite.  A full cache that is worth the largest sum has
    (1 - tilt) of it left, so that is where the range may begin.
    """
    memory = best.shape[1] - 1
    largest = best[: reached + 1].max()
    tilt = _TILT * largest / memory
    bulge = 0.0
    for c in range(reached + 1):
        for held in range(memory + 1):
            bulge = max(bulge, best[c, held] - tilt * held)
    if bulge - (1.0 - _TILT) * largest > 1.8 * _RANGE * tau:
        return largest, tilt, -np.inf
    return largest, tilt, min(0.0, 0.9 * _RANGE - bulge / tau)


@steering
def _smooth_sums(
    prices: Floats,
    steps: Integers,
    count: int,
    holds: Integers,
    lefts: Integers,
    tau: float,
    scale: tuple[float, float, float],
    tables: Floats,
    table: Floats,
    reaches: Integers,
    shares: Floats,
) -> float:
    """Return the smooth largest sum, and add the share of configurations that hold a state.

    A sum over configurations of e to the price over tau would leave the range of floats.
    What a token is worth on average is taken out of every price, and put back at the end.
    """
    largest, tilt, shift = scale
    memory = tables.shape[2] - 1
    most = tables.shape[1] - 1
    tables[0, :, :] = 0.0
    tables[0, 0, 0] = np.exp(shift)
    reached = 0
    for step in range(count):
        state = steps[step]
        hold, left = holds[state], lefts[state]
        weight = np.exp((prices[state] - tilt * hold) / tau)
        reaches[step] = reached
        for c in range(reached + 1):
            tables[step + 1, c, :] = tables[step, c, :]
        if reached < most:
            tables[step + 1, reached + 1, :] = 0.0
        grown = reached
        for c in range(min(reached, most - 1) + 1):
            room = memory - hold - (c + 1) * left
            if room < 0:
                break
            source, target = tables[step, c], tables[step + 1, c + 1]
            for held in range(room + 1):
                target[held + hold] += weight * source[held]
            if c == reached:
                grown = reached + 1
        reached = grown
    total = 0.0
    for held in range(memory + 1):
        end = np.exp((tilt * held - largest) / tau - shift)
        for c in range(reached + 1):
            total += tables[count, c, held] * end
    if not 0.99 < total < np.inf:
        return np.inf
    for held in range(memory + 1):
        table[:, held] = np.exp((tilt * held - largest) / tau - shift) / total
    for step in range(count - 1, -1, -1):
        state = steps[step]
        hold, left = holds[state], lefts[state]
        weight = np.exp((prices[state] - tilt * hold) / tau)
        share = 0.0
        for c in range(min(reaches[step], most - 1) + 1):
            room = memory - hold - (c + 1) * left
            if room < 0:
                break
            source, after, now = tables[step, c], table[c + 1], table[c]
            for held in range(room + 1):
                gained = weight * after[held + hold]
                share += source[held] * gained
                now[held] += gained
        shares[state] += share
    smooth: float = largest + tau * np.log(total)
    return smooth


@steering
def configurations_part(
    rows: Integers,
    prices: Floats,
    copies: Integers,
    order: Integers,
    holds: Integers,
    lefts: Integers,
    memory: int,
    most: int,
    taus: Floats,
    largest: Floats,
    smooth: Floats,
    shares: Floats,
) -> None:
    """Evaluate some knots: largest sums, smooth ones, and the shares of their states.

    A knot whose sums leave the range of floats gets an infinite smooth value.
    """
    longest = 0
    for row in rows:
        longest = max(longest, copies[row].sum())
    steps = np.empty(longest, dtype=np.int64)
    reaches = np.empty(longest, dtype=np.int64)
    best = np.empty((most + 1, memory + 1))
    table = np.empty((most + 1, memory + 1))
    tables = np.empty((longest + 1, most + 1, memory + 1))
    for row in rows:
        tau = taus[row]
        count = steps_of(prices[row], copies[row], order, -_FAINT * tau, steps)
        reached = largest_sums(prices[row], steps, count, holds, lefts, best)
        scale = _scale(best, reached, tau)
        largest[row] = scale[0]
        smooth[row] = np.inf
        if scale[2] == -np.inf:
            continue
        smooth[row] = _smooth_sums(
            prices[row],
            steps,
            count,
            holds,
            lefts,
            tau,
            scale,
            tables,
            table,
            reaches,
            shares[row],
        )


@steering
def requests_part(
    sums: Floats,
    arrivals: Integers,
    outputs: Integers,
    firsts: Integers,
    starts: Flags,
    tau: float,
    weights: Floats,
) -> tuple[float, float]:
    """Return the sum of least costs, the smooth one, and the weight of every start.

    ``sums[c, state]`` is the price of what a request passes to complete at c.
    """
    weights[:, :] = 0.0
    last = starts.shape[1] - 1
    hard, smooth = 0.0, 0.0
    for i in range(len(outputs)):
        output, end = outputs[i], max(last, arrivals[i])
        state = firsts[i] + output - 1
        least = np.inf
        for k in range(arrivals[i], end + 1):
            if starts[i, min(k, last)]:
                least = min(least, k + output - arrivals[i] + sums[min(k, last) + output, state])
        total = 0.0
        for k in range(arrivals[i], end + 1):
            if starts[i, min(k, last)]:
                cost = k + output - arrivals[i] + sums[min(k, last) + output, state] - least
                if cost < 30.0 * tau:
                    total += np.exp(-cost / tau)
        for k in range(arrivals[i], min(end, last - 1) + 1):
            if starts[i, k]:
                cost = k + output - arrivals[i] + sums[k + output, state] - least
                if cost < 30.0 * tau:
                    weights[k + output, state] += np.exp(-cost / tau) / total
        hard += least
        smooth += least - tau * np.log(total)
    return hard, smooth


@steering
def sums_along_lives(times: Integers, prices: Floats, lefts: Integers, sums: Floats) -> None:
    """Fill ``sums[c, state]`` with the prices of a life that completes at c, from state on.

    Prices between knots are interpolated; there are none before the first and after the last.
    """
    for state in range(len(lefts)):
        for knot in range(len(times)):
            begin = times[knot]
            end = times[knot + 1] if knot + 1 < len(times) else begin + 1
            slope = (prices[knot + 1, state] - prices[knot, state]) if end > begin + 1 else 0.0
            slope /= end - begin
            for time in range(begin, end):
                sums[time + lefts[state], state] += prices[knot, state] + slope * (time - begin)
    for c in range(len(sums)):
        for state in range(len(lefts)):
            if lefts[state]:
                sums[c, state] += sums[c, state - 1]


@steering
def shares_of_lives(times: Integers, weights: Floats, lefts: Integers, shares: Floats) -> None:
    """Add to each knot the weight of the lives that pass its states: the transpose of the sums."""
    for c in range(len(weights)):
        for state in range(len(lefts) - 1, 0, -1):
            if lefts[state]:
                weights[c, state - 1] += weights[c, state]
    for state in range(len(lefts)):
        for knot in range(len(times)):
            begin = times[knot]
            end = times[knot + 1] if knot + 1 < len(times) else begin + 1
            for time in range(begin, end):
                weight = weights[time + lefts[state], state]
                share = (time - begin) / (end - begin)
                shares[knot, state] += (1.0 - share) * weight
                if share > 0.0:
                    shares[knot + 1, state] += share * weight


@steering
def dot(one: Floats, other: Floats) -> float:
    """Return the sum of products: vectors are too short for the threads of a linear algebra."""
    total = 0.0
    for row in range(one.shape[0]):
        for column in range(one.shape[1]):
            total += one[row, column] * other[row, column]
    return total

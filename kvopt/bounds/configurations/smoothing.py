"""A smooth version of the configuration bound, and its gradient.

The bound is a sum of minima over starts less a sum of maxima over configurations.  With a
temperature both become averages in which the best weighs most: least costs turn into
``-tau log sum exp(-cost / tau)``, and the dynamic program over configurations adds where it
compared.  The derivative by the price of a state is the share of requests that pass it less
the share of configurations that hold it: Claim 3.15 of docs/theory.

The same loops yield the exact values.  All of this is in floats: it steers and proves nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import steering
from kvopt.problem.arrays import Flags, Floats, Integers

_TILT = 0.8
"""Share of the largest sum that is taken out as a price of held tokens; keeps sums in range."""
_RANGE = 690.0
"""Largest exponent of e whose power a float can hold, nearly."""
_OUT_OF_REACH = -(2**60)
"""Value of unreachable entries: less than any sum of prices, and sums with it fit 64 bits."""
_FAINT = 25.0
"""Temperatures below zero from which on a price is left out."""


@steering
def _steps_of(
    states: States, prices: Any, copies: Integers, threshold: float, steps: Integers
) -> Integers:
    """Return the states that the dynamic program may add, once for every copy."""
    count = 0
    for state in states.order:
        if prices[state] > threshold:
            for _ in range(copies[state]):
                steps[count] = state
                count += 1
    return steps[:count]


@steering
def _members_before(states: States, state: int, limit: int) -> int:
    """Return the number of members, up to a limit, with which a state still fits.

    Negative if it does not fit alone.
    """
    free, left = states.memory - states.holds[state], states.remaining[state]
    return min(limit, free // left - 1) if left > 0 else limit


@steering
def largest_sums(states: States, prices: Any, steps: Integers, best: Any) -> int:
    """Fill best[c, H] with the largest price of a configuration of c states that holds H.

    Returns the largest c that was reached.  Negative entries are out of reach.  That this is
    the largest is Claim 3.4 of docs/theory, which calls the number of members A.
    """
    memory = states.memory
    best[:, :] = _OUT_OF_REACH
    best[0, 0] = 0
    # Each member holds at least this much, so more members hold a multiple of it.
    reached, smallest = 0, states.holds[steps].min() if len(steps) else 0
    highest = np.zeros(best.shape[0], dtype=np.int64)  # tokens held by so many members, at most
    for state in steps:
        price, hold, left = prices[state], states.holds[state], states.remaining[state]
        if price <= 0:
            continue
        top = _members_before(states, state, min(reached, best.shape[0] - 2))
        for c in range(top, -1, -1):  # descending, so that this copy is added at most once
            last = min(highest[c], memory - hold - (c + 1) * left)
            for held in range(c * smallest, last + 1):
                best[c + 1, held + hold] = max(best[c + 1, held + hold], best[c, held] + price)
            highest[c + 1] = max(highest[c + 1], last + hold)
        if top == reached:
            reached += 1
    return reached


@steering
def fill_largest(states: States, prices: Any, copies: Integers, best: Any, largest: Any) -> None:
    """Fill in the largest price of a configuration at each knot; best is a table to work in."""
    longest = 0
    for row in range(len(prices)):
        longest = max(longest, copies[row].sum())
    steps = np.empty(longest, dtype=np.int64)
    for row in range(len(prices)):
        added = _steps_of(states, prices[row], copies[row], 0.0, steps)
        largest_sums(states, prices[row], added, best)
        largest[row] = best.max()


class _Tables(NamedTuple):
    """Arrays of the smooth dynamic program.

    Parameters
    ----------
    sums
        Sums for each number of members and of tokens held.
    kept
        Entries to which each step has added, for the backward pass.
    tops, weights
        For each step the most members before it, and e to its price over tau.
    lasts
        For each step and number of members the most tokens that they hold before it.
    """

    sums: Floats
    kept: Floats
    tops: Integers
    weights: Floats
    lasts: Integers


@steering
def _smooth_sums(
    states: States,
    prices: Floats,
    steps: Integers,
    tau: float,
    best: Floats,
    largest: float,
    reached: int,
    tables: _Tables,
    shares: Floats,
) -> float:
    """Return the smooth largest sum, and add the share of configurations that hold a state.

    A sum over configurations of e to the price over tau would leave the range of floats.
    So a price of a held token that explains most of it is subtracted from every price, and added
    back at the end.  The backward pass needs the entries to which each step has added: only these
    are stored.  If sums leave the range nevertheless, it returns infinity.
    """
    table, kept, tops, weights, lasts = tables
    members, memory = table.shape[0] - 1, states.memory
    # If a full cache costs the largest sum, (1 - tilt) of it remains, so the range begins there.
    tilt, bulge = _TILT * largest / memory, 0.0
    for c in range(reached + 1):
        for held in range(memory + 1):
            bulge = max(bulge, best[c, held] - tilt * held)
    if bulge - (1.0 - _TILT) * largest > 1.8 * _RANGE * tau:
        return np.inf
    shift = min(0.0, 0.9 * _RANGE - bulge / tau)
    table[:, :] = 0.0
    table[0, 0] = np.exp(shift)
    reached, place, smallest = 0, 0, states.holds[steps].min() if len(steps) else 0
    highest = np.zeros(members + 1, dtype=np.int64)
    for step in range(len(steps)):
        state = steps[step]
        hold, left = states.holds[state], states.remaining[state]
        weight = np.exp((prices[state] - tilt * hold) / tau)
        top = _members_before(states, state, min(reached, members - 1))
        tops[step], weights[step] = top, weight
        for c in range(top, -1, -1):
            last = lasts[step, c] = min(highest[c], memory - hold - (c + 1) * left)
            begin, end = c * smallest, last + 1
            for held in range(begin, end):
                kept[place + held - begin] = table[c, held]
                table[c + 1, held + hold] += weight * table[c, held]
            place += max(0, end - begin)
            highest[c + 1] = max(highest[c + 1], last + hold)
        if top == reached:
            reached += 1
    total = 0.0
    for held in range(memory + 1):
        end = np.exp((tilt * held - largest) / tau - shift)
        for c in range(reached + 1):
            total += table[c, held] * end
    if not 0.99 < total < np.inf:
        return np.inf
    for held in range(memory + 1):
        table[:, held] = np.exp((tilt * held - largest) / tau - shift) / total
    # Backwards the table has what later steps make of each entry, as a part of the total.
    for step in range(len(steps) - 1, -1, -1):
        state = steps[step]
        hold, left = states.holds[state], states.remaining[state]
        top, weight = tops[step], weights[step]
        share = 0.0
        for c in range(top + 1):
            begin, end = c * smallest, lasts[step, c] + 1
            place -= max(0, end - begin)
            for held in range(begin, end):
                gained = weight * table[c + 1, held + hold]
                share += kept[place + held - begin] * gained
                table[c, held] += gained
        shares[state] += share
    smooth: float = largest + tau * np.log(total)
    return smooth


class Smoothed(NamedTuple):
    """Largest prices of configurations at each knot, smooth and exact.

    Parameters
    ----------
    largest, smooth
        The largest sum, and its smooth version; infinite where sums leave the range of floats.
    shares
        The share of configurations that hold each state.
    """

    largest: Floats
    smooth: Floats
    shares: Floats


@steering
def fill_smoothed(
    states: States,
    rows: Integers,
    prices: Floats,
    copies: Integers,
    taus: Floats,
    smoothed: Smoothed,
) -> None:
    """Evaluate the configurations at some knots, each with a temperature of its own."""
    longest = room = 0
    for row in rows:
        longest = max(longest, copies[row].sum())
    for state in range(len(states.holds)):  # stored entries of the steps of one knot
        free, left = states.memory - states.holds[state], states.remaining[state]
        members = _members_before(states, state, states.together - 1) + 1
        entries = members * (free + 1) - left * (members * (members + 1) // 2)
        room += copies[:, state].max() * entries
    steps = np.empty(longest, dtype=np.int64)
    best = np.empty((states.together + 1, states.memory + 1))
    lasts = np.empty((longest, states.together + 1), dtype=np.int64)
    tables = _Tables(
        np.empty_like(best), np.empty(room), np.empty_like(steps), np.empty(longest), lasts
    )
    for row in rows:
        tau = taus[row]
        added = _steps_of(states, prices[row], copies[row], -_FAINT * tau, steps)
        reached = largest_sums(states, prices[row], added, best)
        largest = smoothed.largest[row] = best[: reached + 1].max()
        smoothed.smooth[row] = _smooth_sums(
            states, prices[row], added, tau, best, largest, reached, tables, smoothed.shares[row]
        )


class Grid(NamedTuple):
    """Evaluated completions, and the knots around each time.

    Parameters
    ----------
    completions
        Ascending.
    knots, shares
        At time t the price lies between those of two neighbouring knots, ``knots[t]`` the first
        of them, ``shares[t]`` of the way.  There are none before the first and after the last.
    """

    completions: Integers
    knots: Integers
    shares: Floats


@steering
def requests_part(
    states: States, grid: Grid, sums: Floats, starts: Flags, tau: float, weights: Floats
) -> tuple[float, float]:
    """Return the sum of least costs, the smooth one, and the weight of every completion.

    ``sums[row, state]`` is the price of a request that completes at a time of the grid.
    Starts from the last priced time on pay nothing: the first of them represents all.
    """
    weights[:, :] = 0.0
    last, completions = starts.shape[1] - 1, grid.completions
    exact, smooth = 0.0, 0.0
    for i in range(len(states.outputs)):
        output, arrival = states.outputs[i], states.arrivals[i]
        state = states.firsts[i] + output - 1
        late = max(last, arrival) + output - arrival if starts[i, last] else np.inf
        lowest, begin = late, np.searchsorted(completions, arrival + output)
        end = np.searchsorted(completions, last + output)
        for row in range(begin, end):
            if starts[i, completions[row] - output]:
                lowest = min(lowest, completions[row] - arrival + sums[row, state])
        # Averages of starts, without those that cost so much more that they hardly count.
        total = np.exp((lowest - late) / tau)
        for row in range(begin, end):
            if starts[i, completions[row] - output]:
                cost = completions[row] - arrival + sums[row, state] - lowest
                if cost < 30.0 * tau:
                    total += np.exp(-cost / tau)
        for row in range(begin, end):
            if starts[i, completions[row] - output]:
                cost = completions[row] - arrival + sums[row, state] - lowest
                if cost < 30.0 * tau:
                    weights[row, state] += np.exp(-cost / tau) / total
        exact += lowest
        smooth += lowest - tau * np.log(total)
    return exact, smooth


@steering
def fill_path_costs(states: States, grid: Grid, prices: Floats, sums: Floats) -> None:
    """Fill ``sums[row, state]`` with the prices of a run that completes then, from a state on."""
    for row in range(len(grid.completions)):
        for state in range(len(states.remaining)):
            time, price = grid.completions[row] - states.remaining[state], 0.0
            if 0 < time < len(grid.knots):
                knot, share = grid.knots[time], grid.shares[time]
                price = (1.0 - share) * prices[knot, state] + share * prices[knot + 1, state]
            if states.remaining[state]:
                price += sums[row, state - 1]
            sums[row, state] = price


@steering
def add_path_shares(states: States, grid: Grid, weights: Floats, gradient: Floats) -> None:
    """Add to each knot the weight of the runs that pass its states: the transpose of the sums."""
    for row in range(len(grid.completions)):
        for state in range(len(states.remaining) - 1, -1, -1):
            weight = weights[row, state]
            if weight == 0.0:
                continue
            if states.remaining[state]:
                weights[row, state - 1] += weight
            time = grid.completions[row] - states.remaining[state]
            if 0 < time < len(grid.knots):
                knot, share = grid.knots[time], grid.shares[time]
                gradient[knot, state] += (1.0 - share) * weight
                gradient[knot + 1, state] += share * weight

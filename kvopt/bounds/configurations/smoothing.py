"""A smooth version of the configuration bound, and its gradient.

The bound is a sum of minima over starts less a sum of maxima over configurations.  With a
temperature both become averages in which the best weighs most: least costs turn into
``-tau log sum exp(-cost / tau)``, and the dynamic program over configurations adds where it
compared.  The derivative by the price of a state is the share of requests that pass it less
the share of configurations that hold it: Claim 3.15 of docs/theory.

The same loops yield the exact values.  All of this is in floats: it steers and proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kvopt.bounds.configurations.states import Knots, States
from kvopt.kernels.compiled import steering
from kvopt.problem.arrays import Flags, Floats, Integers

_TILT = 0.8
"""Share of the largest sum that is taken out as a price of held tokens; keeps sums in range."""
_RANGE = 690.0
"""Largest exponent of e whose power a float can hold, nearly."""
_OUT_OF_REACH = -(2**60)
"""Value of unreachable entries: less than any sum of prices, and sums with it fit 64 bits."""
_LARGEST_TOTAL = 1e200
"""Limit of a sum as a multiple of its largest term; loops that reorder sums know no infinity."""
_FAINT = 12.0
"""Temperatures below zero from which on a price is left out."""


@steering
def fill_largest(
    states: States, prices: Integers, copies: Integers, best: Integers, largest: Integers
) -> None:
    """Fill in the largest price of a configuration at each knot.

    ``best[c, H]`` is a table to work in: the largest price of c states that together hold H.
    Negative entries are out of reach.  That this is the largest is Claim 3.4 of docs/theory, which
    calls the number of members A.
    """
    memory = states.memory
    highest = np.empty(best.shape[0], dtype=np.int64)  # tokens held by so many members, at most
    for row in range(len(prices)):
        best[:, :] = _OUT_OF_REACH
        best[0, 0] = 0
        highest[:] = 0
        # Each member holds at least this much, so more members hold a multiple of it.
        reached, smallest = 0, memory
        for state in range(len(states.holds)):
            if prices[row, state] > 0 and copies[row, state] > 0:
                smallest = min(smallest, states.holds[state])
        for state in states.order:
            price, hold, left = prices[row, state], states.holds[state], states.remaining[state]
            # The state fits with so many members before it, which all grow while it runs.
            limit = best.shape[0] - 2
            if left > 0:
                limit = min(limit, (memory - hold) // left - 1)
            for _ in range(copies[row, state] if price > 0 else 0):
                top = min(reached, limit)
                for c in range(top, -1, -1):  # descending, so that this copy is added at most once
                    last = min(highest[c], memory - hold - (c + 1) * left)
                    for held in range(c * smallest, last + 1):
                        into = held + hold
                        best[c + 1, into] = max(best[c + 1, into], best[c, held] + price)
                    highest[c + 1] = max(highest[c + 1], last + hold)
                if top == reached:
                    reached += 1
        largest[row] = best.max()


class _Tables(NamedTuple):
    """Arrays of the smooth dynamic program.

    Parameters
    ----------
    sums, best
        For each number of members, and then each of tokens held, the smooth and the largest sum.
    kept
        Entries to which each step has added, for the backward pass.
    limits
        For each state the members that may be there before it, at most.
    tops, weights
        For each step the most members before it, and e to its price over tau.
    ends
        For each step and number of members the end of the tokens that they hold before it.
    factors
        For each number of held tokens what their price adds back.
    """

    sums: Floats
    best: Floats
    kept: Floats
    limits: Integers
    tops: Integers
    weights: Floats
    ends: Integers
    factors: Floats


@steering
def _smooth_sums(
    states: States,
    prices: Floats,
    steps: Integers,
    tau: float,
    scale: Floats,
    tables: _Tables,
    shares: Floats,
) -> float:
    """Return the smooth largest sum, and add the share of configurations that hold a state.

    A sum over configurations of e to the price over tau would leave the range of floats.
    So a price of a held token that explains most of it is subtracted from every price, and added
    back at the end.  The backward pass needs the entries to which each step has added: only these
    are stored.  If sums leave the range nevertheless, it returns infinity.

    ``scale`` has the largest sum, and what remains of it at most after this subtraction, at
    similar prices.  It is replaced by those of these prices.
    """
    sums, best, kept, limits, tops, weights, ends, factors = tables
    memory, width, largest, bulge = states.memory, states.memory + 1, 0.0, 0.0
    # If a full cache costs the largest sum, (1 - tilt) of it remains, so the range begins there.
    tilt, shift = _TILT * scale[0] / memory, min(0.0, 0.9 * _RANGE - scale[1] / tau)
    for entry in range(len(sums)):
        sums[entry], best[entry] = 0.0, _OUT_OF_REACH
    sums[0], best[0] = np.exp(shift), 0.0
    reached, smallest = 0, states.holds[steps].min() if len(steps) else 0
    highest = np.zeros(len(sums) // width, dtype=np.int64)
    # Numbers without a sign: a place with one may count from the end, which loops would test.
    place, weight, before = np.uint64(0), 0.0, -1
    for step in range(len(steps)):
        state = steps[step]
        price, hold, left = prices[state], states.holds[state], states.remaining[state]
        if state != before:
            before, weight = state, np.exp((price - tilt * hold) / tau)
        top = min(reached, limits[state])
        tops[step], weights[step] = top, weight
        for c in range(top, -1, -1):  # descending, so that this copy is added at most once
            last = min(highest[c], memory - hold - (c + 1) * left)
            ends[step, c] = max(c * smallest, last + 1)
            into = np.uint64(width + hold)
            for source in range(
                np.uint64(c * (width + smallest)), np.uint64(c * width + ends[step, c])
            ):
                kept[place] = sums[source]
                sums[source + into] += weight * sums[source]
                best[source + into] = max(best[source + into], best[source] + price)
                place += np.uint64(1)
            highest[c + 1] = max(highest[c + 1], last + hold)
        if top == reached:
            reached += 1
    for c in range(reached + 1):
        for held in range(width):
            largest = max(largest, best[c * width + held])
    total, next_tilt = 0.0, _TILT * largest / memory
    for held in range(width):
        factors[held] = np.exp((tilt * held - largest) / tau - shift)
    for c in range(reached + 1):
        for held in range(width):
            bulge = max(bulge, best[c * width + held] - next_tilt * held)
            total += sums[c * width + held] * factors[held]
    scale[0], scale[1] = largest, bulge
    is_in_range = 0.99 < total < _LARGEST_TOTAL
    if is_in_range:
        # Backwards sums have what later steps make of each entry, as a part of the total.
        for c in range(reached + 1):
            for held in range(width):
                sums[c * width + held] = factors[held] / total
        for step in range(len(steps) - 1, -1, -1):
            state, weight, share = steps[step], weights[step], 0.0
            into = np.uint64(width + states.holds[state])
            for c in range(tops[step] + 1):
                begin, end = np.uint64(c * (width + smallest)), np.uint64(c * width + ends[step, c])
                place -= end - begin
                for source in range(begin, end):
                    gained = weight * sums[source + into]
                    share += kept[place + source - begin] * gained
                    sums[source] += gained
            shares[state] += share
    return largest + tau * np.log(total) if is_in_range else np.inf


class Smoothed(NamedTuple):
    """Largest prices of configurations at each knot, smooth and exact.

    Parameters
    ----------
    scales
        The largest sum, and a scale for sums of similar prices.
    smooth
        The smooth version of the largest sum; infinite where sums leave the range of floats.
    shares
        The share of configurations that hold each state.
    """

    scales: Floats
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
    limits = np.empty(len(states.holds), dtype=np.int64)
    for state in range(len(states.holds)):  # stored entries of the steps of one knot
        free, left = states.memory - states.holds[state], states.remaining[state]
        limits[state] = states.together - 1
        if left > 0:
            limits[state] = min(limits[state], free // left - 1)
        members = limits[state] + 1
        entries = members * (free + 1) - left * (members * (members + 1) // 2)
        room += copies[:, state].max() * entries
    steps, cells = np.empty(longest, dtype=np.int64), (states.together + 1) * (states.memory + 1)
    tables = _Tables(
        np.empty(cells),
        np.empty(cells),
        np.empty(room),
        limits,
        np.empty_like(steps),
        np.empty(longest),
        np.empty((longest, states.together + 1), dtype=np.int64),
        np.empty(states.memory + 1),
    )
    for row in rows:
        tau, scale, shares = taus[row], smoothed.scales[row], smoothed.shares[row]
        # The states that the dynamic program may add, once for every copy.
        count = 0
        for state in states.order:
            if prices[row, state] > -_FAINT * tau:
                for _ in range(copies[row, state]):
                    steps[count] = state
                    count += 1
        added = steps[:count]
        smooth = _smooth_sums(states, prices[row], added, tau, scale, tables, shares)
        if not smooth < _LARGEST_TOTAL:  # with the scale of these prices
            smooth = _smooth_sums(states, prices[row], added, tau, scale, tables, shares)
        smoothed.smooth[row] = smooth


class Grid(NamedTuple):
    """Evaluated completions, and the knots around each time.

    Parameters
    ----------
    completions
        Ascending.
    knots, shares
        At time t the price lies between those of two neighbouring knots, ``knots[t + first]`` the
        first of them, ``shares[t + first]`` of the way.  Before the first and after the last priced
        time this is a knot after all others, where prices are 0.
    first
        Rounds before time 0 in these arrays.
    """

    completions: Integers
    knots: npt.NDArray[np.uint64]
    shares: Floats
    first: int

    @classmethod
    def of(cls, states: States, knots: Knots, apart: int) -> Grid:
        """Return the grid of completions with that distance."""
        longest = int(states.outputs.max())
        places, shares = knots.between()
        places[0] = len(knots)  # no price at time 0
        # Numbers without a sign: a place with one may count from the end, which loops would test.
        around = np.pad(places, longest, constant_values=len(knots)).astype(np.uint64)
        completions = np.arange(apart, knots.last + longest, apart)
        return cls(completions, around, np.pad(shares, longest), longest)


@steering
def requests_part(
    states: States,
    grid: Grid,
    prices: Floats,
    starts: Flags,
    tau: float,
    sums: Floats,
    weights: Floats,
) -> tuple[float, float]:
    """Return the sum of least costs, the smooth one, and the weight of every completion.

    ``prices`` has a row for each state, with the knots as columns, and two more that are 0.
    ``sums[state, row]`` becomes the price of a run that completes at a time of the grid, from a
    state on.  Starts from the last priced time on pay nothing: the first of them represents all.
    """
    last, completions = starts.shape[1] - 1, grid.completions
    # A run from a state on pays what one from the state after it pays, and the price of the state.
    for state in range(len(states.remaining)):
        left = states.remaining[state]
        for row in range(len(completions)):
            time = np.uint64(completions[row] - left + grid.first)
            knot, share = grid.knots[time], grid.shares[time]
            price = (1.0 - share) * prices[state, knot] + share * prices[state, knot + np.uint64(1)]
            sums[state, row] = price + (sums[state - 1, row] if left > 0 else 0.0)
    weights[:, :] = 0.0
    exact, smooth, parts = 0.0, 0.0, np.empty(len(completions))
    for i in range(len(states.outputs)):
        output, arrival = states.outputs[i], states.arrivals[i]
        state = states.firsts[i] + output - 1
        late = max(last, arrival) + output - arrival if starts[i, last] else np.inf
        lowest, begin = late, np.searchsorted(completions, arrival + output)
        end = np.searchsorted(completions, last + output)
        # The least cost of its starts.
        for row in range(begin, end):
            if starts[i, completions[row] - output]:
                lowest = min(lowest, completions[row] - arrival + sums[state, row])
        # Averages of starts, without those that cost so much more that they hardly count.
        total = np.exp((lowest - late) / tau)
        for row in range(begin, end):
            parts[row] = 0.0
            if starts[i, completions[row] - output]:
                cost = completions[row] - arrival + sums[state, row] - lowest
                if cost < 30.0 * tau:
                    parts[row] = np.exp(-cost / tau)
                    total += parts[row]
        for row in range(begin, end):
            if parts[row] > 0.0:  # none is, and the total is 0, where prices are not finite
                weights[state, row] += parts[row] / total
        exact += lowest
        smooth += lowest - tau * np.log(total)
    return exact, smooth


@steering
def add_path_shares(states: States, grid: Grid, weights: Floats, gradient: Floats) -> None:
    """Add to each knot the weight of the runs that pass its states: the transpose of the sums."""
    for state in range(len(states.remaining) - 1, -1, -1):
        left = states.remaining[state]
        for row in range(len(grid.completions)):
            weight = weights[state, row]
            if weight > 0.0:
                if left > 0:
                    weights[state - 1, row] += weight
                time = np.uint64(grid.completions[row] - left + grid.first)
                knot, share = grid.knots[time], grid.shares[time]
                gradient[state, knot] += (1.0 - share) * weight
                gradient[state, knot + np.uint64(1)] += share * weight

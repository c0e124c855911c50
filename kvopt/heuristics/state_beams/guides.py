"""Costs of starts and rounds by prices of states, in floats: they guide and prove nothing.

With prices F_t(h, r) the total latency of a schedule is their bound, plus the reduced costs of
its starts, plus the slack of each time (Claim 7 of docs/configurations.md).  Costs of starts
are kept on a grid of rounds, once for all requests of a shape, and interpolated in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.smoothing import fill_largest
from kvopt.bounds.configurations.states import Knots, States
from kvopt.incumbent.proofs import StatePrices
from kvopt.kernels.compiled import steering
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance

_CELLS = 1000
"""Limit of the rounds of the grid of costs of starts."""


class Guide(NamedTuple):
    """An instance and its prices as arrays.

    Parameters
    ----------
    memory, most, smallest
        M, how many requests can be active together, and the least prompt.
    arrivals, prompts, outputs, firsts, shapes, twins
        Columns of requests: `firsts` as in `States`, the row in ``costs``, and the request of the
        same shape that starts before it, -1 if there is none.
    last, step
        The last priced time, and rounds from one column of ``costs`` to the next.
    costs, later
        Cost of a start of each shape that arrives at 0, and the least from that round on.
    least
        Least cost of each request, counted in the same way.
    knots, shares
        For each time the knot before it, and the share of the knot after it.
    prices
        Prices of states at each knot, and zeros after the last.
    largest, paid
        Largest price of a configuration at each time, and the sum up to then.
    """

    memory: int
    most: int
    smallest: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    firsts: Integers
    shapes: Integers
    twins: Integers
    last: int
    step: int
    costs: Floats
    later: Floats
    least: Floats
    knots: Integers
    shares: Floats
    prices: Floats
    largest: Floats
    paid: Floats


def guide_by(instance: Instance, stage: StatePrices) -> Guide:
    """Return the search data of the prices of a proof."""
    prices = np.array(stage.numerators, dtype=float) / stage.denominator
    return guide_of(instance, States.of(instance), Knots(np.array(stage.times)), prices)


def guide_of(instance: Instance, states: States, knots: Knots, prices: Floats) -> Guide:
    """Return the search data of prices at knots."""
    prices = np.maximum(prices, 0.0)
    table = np.array([(r.prompt, r.output) for r in instance], dtype=np.int64)
    unique, which = np.unique(table, axis=0, return_inverse=True)
    shapes = which.reshape(-1).astype(np.int64)
    one_of = np.zeros(len(unique), dtype=np.int64)
    one_of[shapes] = np.arange(len(instance))
    last = knots.last
    step = -(-last // _CELLS)
    cells = -(-last // step) + 3  # the last ones are of starts after all prices
    before, shares = knots.between()
    padded = np.concatenate((prices, np.zeros((1, len(states.holds)))))
    at_knots = np.append(_largest(states, prices), 0.0)
    largest = (1.0 - shares) * at_knots[before] + shares * at_knots[before + 1]
    largest[0] = 0.0
    costs = np.zeros((len(unique), cells))
    _fill_costs(states.outputs[one_of], states.firsts[one_of], before, shares, padded, step, costs)
    later = np.ascontiguousarray(np.minimum.accumulate(costs[:, ::-1], axis=1)[:, ::-1])
    cell = np.minimum(states.arrivals // step, cells - 2)
    slopes = (later[shapes, cell + 1] - later[shapes, cell]) / step
    return Guide(
        memory=instance.memory,
        most=states.most,
        smallest=int(table[:, 0].min()),
        arrivals=states.arrivals,
        prompts=np.ascontiguousarray(table[:, 0]),
        outputs=states.outputs,
        firsts=states.firsts,
        shapes=shapes,
        twins=_twins(states.arrivals, shapes),
        last=last,
        step=step,
        costs=costs,
        later=later,
        least=later[shapes, cell] + (states.arrivals - cell * step) * slopes,
        knots=before,
        shares=shares,
        prices=padded,
        largest=largest,
        paid=np.cumsum(largest),
    )


def _twins(arrivals: Integers, shapes: Integers) -> Integers:
    """Return for each request the last one of its shape before it, -1 if there is none."""
    order = np.lexsort((arrivals, shapes))
    twins = np.full(len(shapes), -1, dtype=np.int64)
    same = shapes[order[1:]] == shapes[order[:-1]]
    twins[order[1:][same]] = order[:-1][same]
    return twins


def _largest(states: States, prices: Floats) -> Floats:
    """Return the largest price of a configuration at each knot."""
    copies = np.zeros(len(states.holds), dtype=np.int64)
    for first, output in zip(states.firsts.tolist(), states.outputs.tolist(), strict=True):
        copies[first : first + output] += 1
    copies = np.minimum(copies, states.memory // (states.holds + states.lefts))
    largest, best = np.zeros(len(prices)), np.empty((states.most + 1, states.memory + 1))
    fill_largest(states, prices, np.tile(copies, (len(prices), 1)), best, largest)
    return largest


@steering
def _fill_costs(
    outputs: Integers,
    firsts: Integers,
    knots: Integers,
    shares: Floats,
    prices: Floats,
    step: int,
    costs: Floats,
) -> None:
    last = len(knots) - 1
    for shape in range(len(costs)):
        for cell in range(costs.shape[1]):
            start = cell * step
            cost = float(start + outputs[shape])
            for time in range(start + 1, min(start + outputs[shape], last) + 1):
                state = firsts[shape] + start + outputs[shape] - time
                knot, share = knots[time], shares[time]
                cost += (1.0 - share) * prices[knot, state] + share * prices[knot + 1, state]
            costs[shape, cell] = cost


@steering
def line_at(guide: Guide, row: Floats, now: int) -> tuple[float, float]:
    """Return the entry of a round, and its change from one round to the next.

    It is interpolated, and extrapolated after the last column.
    """
    cell = min(now // guide.step, len(row) - 2)
    slope: float = (row[cell + 1] - row[cell]) / guide.step
    return row[cell] + (now - cell * guide.step) * slope, slope


@steering
def fill_rows(guide: Guide, rows: Floats, filled: Integers, until: int) -> None:
    """Fill in the prices of all times up to one; a time has the row of its remainder."""
    for time in range(filled[0] + 1, until + 1):
        row = rows[time % len(rows)]
        row[:] = 0.0
        if time <= guide.last:
            knot, share = guide.knots[time], guide.shares[time]
            for state in range(len(row)):
                before, after = guide.prices[knot, state], guide.prices[knot + 1, state]
                row[state] = (1.0 - share) * before + share * after
    filled[0] = max(filled[0], until)

"""Prices on memory that say how short a batch can be, and good batches on the way to them.

A batch holds, at the time t after it starts, ``s + t`` tokens for each member of output at least
t.  Where every token at t costs ``p_t``, a candidate costs its output and what it holds, and no
batch of C members has outputs that sum up to less than the C cheapest cost, less what all the
memory costs.  Prices steer here; what is proved with them is counted again in integers.

The loop is written for a compiler, and runs without one where few wait.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvopt.policies.phase1.batch import Integers

Floats = npt.NDArray[np.float64]


def ascend(
    prompts: Integers,
    outputs: Integers,
    memory: int,
    prices: Floats,
    sizes: tuple[int, int],
    known: tuple[int, int],
    steps: int,
    best_prices: Floats,
    met: Integers,
) -> None:
    """Find better prices, and sum of outputs and size of the best batch that was met.

    Parameters
    ----------
    prompts, outputs
        Of the candidates, in tie order.
    memory
        Tokens that may be held.
    prices
        To begin with: at each candidate's output, on the first candidate of that output.
    sizes
        The least and the largest size for which prices are wanted.
    known
        Sum of outputs and size of a batch that is known, both 0 for none.
    steps
        How often prices are changed.
    best_prices, met
        Where the answers go.
    """
    count, (total, size), best_value = len(prompts), known, -np.inf
    prices = prices.copy()
    costs, excess, loads = np.empty(count), np.empty(count), np.empty(count, np.int64)
    for step in range(steps):
        paid = timed = 0.0
        for place in range(count):
            paid += prices[place]
            timed += prices[place] * outputs[place]
            costs[place] = outputs[place] + prompts[place] * paid + timed
        order = np.argsort(costs)
        if step % 4 == 0:  # take the cheapest that fit
            loads[:] = 0
            taken = length = 0
            for place in order:
                fits = True
                for earlier in range(place + 1):
                    if loads[earlier] + prompts[place] + outputs[earlier] > memory:
                        fits = False
                        break
                if not fits:
                    continue
                for earlier in range(place + 1):
                    loads[earlier] += prompts[place] + outputs[earlier]
                length += outputs[place]
                taken += 1
                if size == 0 or length * size**2 < total * taken**2:
                    total, size = length, taken
        worth = total / size**2  # then the size that could beat it by most
        value, likely, cost, shortest = np.inf, 0, -memory * paid, 0
        for number in range(1, sizes[1] + 1):
            cost += costs[order[number - 1]]
            shortest += outputs[number - 1]
            reach = worth * number**2
            if number >= sizes[0] and shortest <= reach and cost - reach < value:
                value, likely = cost - reach, number
        if value > best_value:
            best_value = value
            best_prices[:] = prices
        chosen = np.zeros(count, np.bool_)
        chosen[order[:likely]] = True
        held = alive = 0
        steepness = 0.0
        for place in range(count - 1, -1, -1):
            if chosen[place]:
                held += prompts[place]
                alive += 1
            first = place == 0 or outputs[place - 1] < outputs[place]
            excess[place] = held + alive * outputs[place] - memory if first else 0.0
            if excess[place] < 0 and prices[place] == 0:
                excess[place] = 0.0
            steepness += excess[place] ** 2
        if steepness == 0 or value > 0:
            break
        prices = np.maximum(prices - value / steepness * excess, 0.0)
    met[0], met[1] = total, size

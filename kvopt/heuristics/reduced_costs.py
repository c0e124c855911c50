"""Reduced costs of starts: what prices say that a start costs above the cheapest one.

Prices of tokens (`kvopt.bounds.prices`) and of slots (`kvopt.bounds.slots`) are summed up once, so
that the cost of any start is a difference of sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.fluid import fluid_prices
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.scan import Scanner, Steps
from kvopt.bounds.slots import prices_at_all_times, steps_of
from kvopt.kernels.arrays import Floats, Integers
from kvopt.kernels.compiled import compiled
from kvopt.model.instance import Instance
from kvopt.search.proofs import Prices, Proof, SlotPrices


class Worth(NamedTuple):
    """Prices of tokens and of slots, summed up.

    Parameters
    ----------
    paid, moment
        Sums of ``p_t`` and of ``t p_t`` up to each time.
    least, cheapest
        Least cost of each request, and the first start that has it.
    steps, stairs
        Tokens from which on a request pays more, and sums of that up to each time, a row for each.
    slots
        Sums of the prices of all slots.
    """

    paid: Floats
    moment: Floats
    least: Floats
    cheapest: Integers
    steps: Integers
    stairs: Floats
    slots: Floats


def worth_nothing(count: int) -> Worth:
    """Return that nothing has a price."""
    none, steps = np.zeros(1), np.zeros(0, dtype=np.int64)
    least, cheapest = np.zeros(count), np.zeros(count, dtype=np.int64)
    return Worth(none, none, least, cheapest, steps, np.zeros((0, 1)), none)


def worth_of(
    instance: Instance, known: Proof | None, threads: int = 1, share: float = 1.0
) -> Worth:
    """Return known prices, with what they say about each request.

    Where none are known they are those of a fluid that fills so large a share of the memory.
    """
    steps, slots = Steps.none(), np.zeros(0)
    if isinstance(known, SlotPrices):
        counts = [count for count, _ in known.slots]
        prices, rows = (each / known.prices.denominator for each in prices_at_all_times(known))
        steps, slots = steps_of(instance.memory, counts, rows), np.array(counts) @ rows
    elif isinstance(known, Prices):
        prices = np.array(known.numerators, dtype=float) / known.denominator
    else:
        prices = fluid_prices(instance.pooled(), share)
    costs, starts = Scanner(Kinds.of(instance), threads).least_costs_with(steps, prices, 1)
    shapes = [(r.arrival, r.prompt, r.output) for r in instance]
    which = np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1)  # kinds ascend too
    times = np.arange(1, len(prices) + 1)
    paid, moment = (np.concatenate(([0.0], np.cumsum(part))) for part in (prices, prices * times))
    return Worth(
        paid,
        moment,
        np.asarray(costs, dtype=float)[which],
        starts[which],
        steps.thresholds,
        np.pad(steps.prices, ((0, 0), (1, 0))).cumsum(axis=1),
        np.pad(slots, (1, 0)).cumsum(),
    )


@compiled
def cost_of_start(
    worth: Worth, i: int, start: int, waiting: int, prompt: int, output: int
) -> float:
    """Return the reduced cost of a start of a request that has waited so many rounds."""
    held = tokens_of(worth.paid, worth.moment, start, prompt, output)
    held += slots_of(worth.steps, worth.stairs, start, prompt, output)
    return float(waiting + output + held - worth.least[i])


@compiled
def tokens_of(paid: Floats, moment: Floats, start: int, prompt: int, output: int) -> float:
    """Return what a request that starts at a time pays for tokens."""
    last = len(paid) - 1
    begin, end = min(start, last), min(start + output, last)
    return float((prompt - start) * (paid[end] - paid[begin]) + moment[end] - moment[begin])


@compiled
def slots_of(steps: Integers, stairs: Floats, start: int, prompt: int, output: int) -> float:
    """Return what a request that starts at a time pays for slots."""
    last = stairs.shape[1] - 1
    return slots_between(steps, stairs, prompt - start, min(start, last), min(start + output, last))


@compiled
def slots_between(steps: Integers, stairs: Floats, offset: int, begin: int, end: int) -> float:
    """Return what a request that holds ``offset + t`` pays for slots between two rounds."""
    paid = 0.0
    for step in range(len(steps)):
        reached = max(begin, steps[step] - offset - 1)
        if reached >= end:
            break
        paid += stairs[step, end] - stairs[step, reached]
    return paid

"""Reduced costs of starts: the cost of a start at given prices less that of the cheapest one.

Prices of tokens are summed up once, so that the cost of any start is a difference of sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.kinds import Kinds
from kvopt.bounds.scan import Scanner
from kvopt.kernels.compiled import borrowing
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance


class StartPrices(NamedTuple):
    """Token prices, summed up, and the cheapest start of each request.

    Parameters
    ----------
    paid, moment
        Sums of ``p_t`` and of ``t p_t`` up to each time t, where ``p_t`` is the price of a token.
    costs, cheapest
        Minimum cost of each request, and the first start that has it.
    """

    paid: Floats
    moment: Floats
    costs: Floats
    cheapest: Integers


def start_prices(instance: Instance, prices: Floats, threads: int = 1) -> StartPrices:
    """Return prices of a token at the times from 1 on, with data for each request."""
    costs, starts, _ = Scanner(Kinds.of(instance), threads).least_costs(prices, 1)
    shapes = [(r.arrival, r.prompt, r.output) for r in instance]
    which = np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1)  # kinds ascend too
    return StartPrices(*summed(prices), np.asarray(costs, dtype=float)[which], starts[which])


def summed(prices: Floats) -> tuple[Floats, Floats]:
    """Return the sums of ``p_t`` and of ``t p_t`` up to each time from 0 on."""
    times = np.arange(1, len(prices) + 1)
    paid, moment = (np.concatenate(([0.0], np.cumsum(part))) for part in (prices, prices * times))
    return paid, moment


@borrowing
def tokens_of(
    paid: Floats, moment: Floats, start: int, prompt: int, output: int, after: int = 0
) -> float:
    """Return the payment of a request that starts at a time, for its tokens after another time."""
    last = len(paid) - 1
    end = min(start + output, last)
    begin = min(max(start, after), end)
    return float((prompt - start) * (paid[end] - paid[begin]) + moment[end] - moment[begin])

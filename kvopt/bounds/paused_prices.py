"""What prices on memory prove where requests may pause: exact integers, nothing compiled.

The bound is the one of `kvopt.bounds.prices` with another minimum: request i may be active at any
``o_i`` times ``t_1 < t_2 < ...`` after its arrival, and costs

    t_o - a_i + sum_{j=1..o_i} p_{t_j} (s_i + j).

Let U be the least cost without a pause.  Nothing that completes after ``a_i + U`` is cheaper, nor
has to be looked at what completes after ``max(a_i, T) + o_i``, with T the time of the last price:
tokens after T are free and may as well be produced in a row.  Where prices do not rise from
``a_i + 1`` to the end of this window, U itself is the least cost: active times can be moved later
until they are the last ones, and none of them gets dearer.  ``docs/pausing.md`` has the proofs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise, repeat
from operator import add, mul
from typing import TYPE_CHECKING

import numpy as np

from kvopt.bounds.kinds import Kind
from kvopt.bounds.prices import Sums, fits_int64, least_cost
from kvopt.incumbent.proofs import Prices
from kvopt.problem.instance import Instance

if TYPE_CHECKING:
    from kvopt.bounds.paused_scan import PausedScanner


def paused_price_bound(
    instance: Instance, prices: Prices, scanner: PausedScanner | None = None
) -> int:
    """Return the lower bound that prices prove for schedules with pauses, rounded up."""
    return -(-paused_price_value(instance, prices, scanner) // prices.denominator)


def paused_price_value(
    instance: Instance, prices: Prices, scanner: PausedScanner | None = None
) -> int:
    """Return the bound times the denominator, exactly.

    A scanner of the instance makes it fast where 64 bits are enough.
    """
    if scanner is not None and fits_int64(instance, prices):
        least = scanner.least_sum(prices)
    else:
        kinds = Counter(request.kind for request in instance)
        costs = PausedCosts(instance, prices)
        least = sum(count * costs.least(kind) for kind, count in kinds.items())
    return least - instance.total_memory * sum(prices.numerators)


class PausedCosts:
    """Least costs of requests at given prices, in units of which the denominator makes a round."""

    def __init__(self, instance: Instance, prices: Prices) -> None:
        kind = np.int64 if fits_int64(instance, prices) else object
        longest = max((request.output for request in instance), default=0)
        numerators = np.array(prices.numerators, dtype=kind)
        self._sums = Sums.of(numerators, prices.denominator, longest)
        self._prices, self._unit = prices.numerators, prices.denominator
        self._last = len(self._prices)
        pairs = enumerate(pairwise(self._prices), 1)
        self._rises = [time for time, (price, after) in pairs if after > price]

    def least(self, kind: Kind) -> int:
        """Return the least cost of a request that may pause."""
        arrival, _, output = kind
        if arrival >= self._last:
            return self._unit * output
        best = least_cost(self._sums, kind, self._unit)
        window = min(best // self._unit, self._last - arrival + output)
        if self._falls(arrival + 1, arrival + window):
            return best
        return min(best, self._with_pauses(kind, window))

    def _falls(self, first: int, end: int) -> bool:
        """Whether no price from the first to the end is above the one before it."""
        place = bisect_left(self._rises, first)
        return place == len(self._rises) or self._rises[place] >= end

    def _with_pauses(self, kind: Kind, window: int) -> int:
        """Return the least cost of what completes within so many rounds after the arrival.

        ``least[x]`` is the least price of the first j tokens, the j-th of them at most x rounds
        later than it could be.
        """
        arrival, prompt, output = kind
        spare = window - output
        prices = list(self._prices[arrival : arrival + window])
        prices += repeat(0, window - len(prices))
        least: list[int] = [0] * (spare + 1)
        for j in range(1, min(output, self._last - arrival + 1)):
            paid = map(mul, prices[j - 1 : j + spare], repeat(prompt + j))
            least = list(accumulate(map(add, paid, least), min))
        ends = map(mul, prices[output - 1 :], repeat(prompt + output))
        waits = range(output * self._unit, (window + 1) * self._unit, self._unit)
        totals: Iterator[int] = map(add, map(add, ends, least), waits)
        return min(totals)

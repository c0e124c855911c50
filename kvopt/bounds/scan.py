"""The cheapest start of every kind of request at given prices: the inner loop of the bounds.

With prefix sums P of the prices p_t and Q of t p_t, a request that starts at k costs

    D (k + o - a) + s (P[k+o] - P[k]) + (Q[k+o] - Q[k]) - k (P[k+o] - P[k])

where D is the unit that prices are counted in.  The sums stay constant beyond the last priced
time T, and k runs from a to max(a, T), inclusive: a later start pays for no token and waits
longer.  Since prices are not negative a start at k costs at least D (k + o - a), so the
loop may end once that alone exceeds the best cost.  Outputs longer than T are cut to T here:
what they hold after T costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from kvopt.bounds.kinds import Integers, Kinds
from kvopt.compiled import steering

Numbers = npt.NDArray[Any]
"""float64 to search for prices, int64 to prove what they give."""

_BLOCK = 256
_SLICE = 10**9
"""Costs that are evaluated between two questions whether to stop: half a second at most."""


class Interrupted(Exception):
    """Raised when a scan was asked to stop before its end."""


@steering
def _least(
    sums: Numbers, weighted: Numbers, unit: Any, s: Any, o: int, k: int, end: int, stride: int
) -> Any:
    """Return the least cost over every so many starts of ``k .. end - 1``, less ``D (o - a)``."""
    paid = sums[k + o] - sums[k]
    least = unit * k + (s - k) * paid + (weighted[k + o] - weighted[k])
    for start in range(k + stride, end, stride):
        paid = sums[start + o] - sums[start]
        cost = unit * start + (s - start) * paid + (weighted[start + o] - weighted[start])
        least = min(least, cost)
    return least


@steering
def _scan(
    arrivals: Integers,
    prompts: Integers,
    outputs: Integers,
    sums: Numbers,
    weighted: Numbers,
    last: int,
    unit: Any,
    stride: int,
    costs: Numbers,
    starts: Integers,
) -> None:
    """Find the least cost and the first start that has it, block by block."""
    for i in range(len(arrivals)):
        a, s, o = arrivals[i], prompts[i], min(outputs[i], last)
        if a >= last:
            costs[i], starts[i] = unit * outputs[i], a
            continue
        end = last + 1
        width = _BLOCK * stride
        best, block = _least(sums, weighted, unit, s, o, a, min(a + width, end), stride), a
        k = a + width
        while k < end and unit * k < best:
            cost = _least(sums, weighted, unit, s, o, k, min(k + width, end), stride)
            if cost < best:
                best, block = cost, k
            k += width
        start = block
        while _least(sums, weighted, unit, s, o, start, start + 1, 1) > best:
            start += stride
        costs[i] = best + unit * (outputs[i] - a)
        starts[i] = start


class Scanner:
    """Evaluates price vectors for the requests of one instance.

    Parameters
    ----------
    kinds
        The requests.
    threads
        Threads that share the work.
    should_stop
        Asked at least twice a second; `Interrupted` is raised when it turns true.
    """

    def __init__(
        self, kinds: Kinds, threads: int = 1, should_stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.kinds = kinds
        self._threads = threads
        self._should_stop = should_stop

    def least_costs(self, prices: Numbers, unit: int, stride: int = 1) -> tuple[Numbers, Integers]:
        """Return the least cost of every kind and its first cheapest start.

        With a stride only every so many starts after the arrival are tried: no bound then.
        """
        last = len(prices)
        sums = _prefix(prices)
        weighted = _prefix(prices * np.arange(1, last + 1, dtype=prices.dtype))
        costs = np.empty(len(self.kinds), dtype=prices.dtype)
        starts = np.empty(len(self.kinds), dtype=np.int64)
        one = prices.dtype.type(unit)

        def work(part: slice) -> None:
            kinds = self.kinds
            _scan(
                kinds.arrivals[part],
                kinds.prompts[part],
                kinds.outputs[part],
                sums,
                weighted,
                last,
                one,
                stride,
                costs[part],
                starts[part],
            )

        self._in_slices(work, -(-last // stride))
        return costs, starts

    def _in_slices(self, work: Callable[[slice], None], last: int) -> None:
        """Do the work in slices, in turn or on several threads when there is much of it."""
        size = max(1, _SLICE // (last + _BLOCK))
        if len(self.kinds) * last > _SLICE // 20:
            size = min(size, -(-len(self.kinds) // self._threads))
        slices = [slice(first, first + size) for first in range(0, len(self.kinds), size)]
        if len(slices) == 1 or self._threads == 1:
            for part in slices:
                self._ask()
                work(part)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            for first in range(0, len(slices), self._threads):
                self._ask()
                list(pool.map(work, slices[first : first + self._threads]))

    def _ask(self) -> None:
        if self._should_stop():
            raise Interrupted


def _prefix(values: Numbers) -> Numbers:
    """Return prefix sums from 0, constant beyond the last value for as long again."""
    sums = np.zeros(2 * len(values) + 1, dtype=values.dtype)
    np.cumsum(values, out=sums[1 : len(values) + 1])
    sums[len(values) + 1 :] = sums[len(values)]
    return sums

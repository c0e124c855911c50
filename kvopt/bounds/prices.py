"""Prices on memory prove a lower bound, whatever they are and wherever they come from.

Charge ``p_t >= 0`` for each token held at time t and drop the memory limit.  Every feasible
schedule then pays at most ``M sum_t p_t`` for tokens, so

    L(p) = sum_i min_{k >= a_i} [k + o_i - a_i + sum_{j=1..o_i} p_{k+j} (s_i + j)] - M sum_t p_t

is at most the total latency of any schedule.  With ``p_t = q_t / D`` for integers everything
below is exact.  Beyond the last priced time a later start only costs more, so no horizon has
to be trusted: k runs from a_i to that time, inclusive.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kvopt.bounds.kinds import Kinds
from kvopt.model.instance import Instance
from kvopt.search.proofs import CheckedBound, Prices

if TYPE_CHECKING:
    from kvopt.bounds.scan import Scanner

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[Any]
"""int64 where nothing can overflow, else Python integers."""

_FEW_COSTS = 10_000_000
"""Starts up to which costs are looked at without compiled code, in a tenth of a second."""


def rounded_prices(values: Sequence[float] | Floats, denominator: int) -> Prices:
    """Round floats to prices; what is not a positive number becomes 0."""
    scaled = np.nan_to_num(np.asarray(values, dtype=float) * denominator, posinf=0.0)
    numerators = np.maximum(np.rint(scaled), 0.0)
    kept = np.flatnonzero(numerators)
    last = int(kept[-1]) + 1 if len(kept) else 0
    return Prices(tuple(int(number) for number in numerators[:last]), denominator)


def denominator_for(instance: Instance, values: Floats) -> int:
    """Return the finest power of two, at most 2^30, at which 64 bits hold every cost."""
    most = _largest_cost(instance, len(values), values.sum(), values.max(initial=0.0), 1.0)
    return 1 << int(min(max(math.log2(2.0**60 / most), 0.0), 30.0))


def price_bound(instance: Instance, prices: Prices, scanner: Scanner | None = None) -> int:
    """Return the lower bound that prices prove, rounded up."""
    return -(-price_value(instance, prices, scanner) // prices.denominator)


def price_value(instance: Instance, prices: Prices, scanner: Scanner | None = None) -> int:
    """Return ``L(p)`` times the denominator, exactly.

    A scanner of the instance makes it fast where 64 bits are enough; without one nothing
    has to be compiled.
    """
    fits = _fits_int64(instance, prices)
    if scanner is not None and fits:
        numerators = np.array(prices.numerators, dtype=np.int64)
        costs, _ = scanner.least_costs(numerators, prices.denominator)
        least = int(sum(map(mul, scanner.kinds.counts.tolist(), costs.tolist())))
    else:
        kinds = Counter((r.arrival, r.prompt, r.output) for r in instance)
        longest = max((output for _, _, output in kinds), default=0)
        table = _Table(prices, longest, np.int64 if fits else object)
        least = sum(count * table.least_cost(*kind) for kind, count in kinds.items())
    return least - instance.memory * sum(prices.numerators)


def bound_by(instance: Instance, prices: Prices, threads: int = 1) -> CheckedBound:
    """Return what prices prove that were found before; many costs are looked at compiled."""
    scanner = None
    if len(instance) * len(prices.numerators) > _FEW_COSTS:
        from kvopt.bounds.scan import Scanner  # it loads numba

        scanner = Scanner(Kinds.of(instance), threads)
    return CheckedBound(price_bound(instance, prices, scanner), "prices", prices)


def _fits_int64(instance: Instance, prices: Prices) -> bool:
    """Whether no cost of a start comes near 2^63."""
    numbers = prices.numerators
    total, largest = sum(numbers), max(numbers, default=0)
    return bool(_largest_cost(instance, len(numbers), total, largest, prices.denominator) < 2**62)


def _largest_cost(instance: Instance, last: int, total: Any, largest: Any, unit: Any) -> Any:
    """Return what the cost of a start stays below: its latency, and the price of its tokens."""
    longest = max((r.output for r in instance), default=0)
    peak = max((r.peak for r in instance), default=0)
    paid = min(total, largest * longest)
    return unit * (last + longest + 1) + peak * paid


class _Table:
    """Sums of the prices, as in `kvopt.bounds.scan`, where nothing has to be compiled.

    In 64 bits sums may overflow; costs, which do not, are right modulo 2^64 and so in full.
    """

    def __init__(self, prices: Prices, longest: int, kind: type) -> None:
        self.denominator = prices.denominator
        self.last = len(prices.numerators)
        padded: Integers = np.zeros(self.last + min(longest, self.last), dtype=kind)
        padded[: self.last] = prices.numerators
        self.paid = self._prefix(padded)
        self.held = self._prefix(self.paid)[:-1]
        waits: Integers = prices.denominator * np.arange(len(self.held), dtype=kind)
        self.begun: Integers = self.held + waits

    @staticmethod
    def _prefix(values: Integers) -> Integers:
        return np.concatenate((np.zeros(1, dtype=values.dtype), np.cumsum(values)))

    def least_cost(self, arrival: int, prompt: int, output: int) -> int:
        """Return the least cost of a request over all its starts, times the denominator."""
        if arrival >= self.last:
            return self.denominator * output
        active = min(output, self.last)  # nothing is paid after that
        now = slice(arrival, self.last + 1)
        then = slice(arrival + active, self.last + active + 1)
        costs = self.begun[now] - prompt * self.paid[now]
        costs += (prompt + active) * self.paid[then] - self.held[then]
        return int(costs.min()) + self.denominator * (output - arrival)

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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kvopt.bounds.kinds import Kind, Kinds
from kvopt.incumbent.proofs import CheckedBound, Prices
from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.instance import Instance

if TYPE_CHECKING:
    from kvopt.bounds.scan import Scanner

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
    return finest_denominator(
        _largest_cost(instance, len(values), values.sum(), values.max(initial=0.0), 1.0)
    )


def finest_denominator(most: float) -> int:
    """Return the finest power of two, at most 2^30, at which 64 bits hold a cost of so much."""
    return 1 << int(min(max(math.log2(2.0**60 / most), 0.0), 30.0))


def price_bound(instance: Instance, prices: Prices, scanner: Scanner | None = None) -> int:
    """Return the lower bound that prices prove, rounded up."""
    return -(-price_value(instance, prices, scanner) // prices.denominator)


def price_value(instance: Instance, prices: Prices, scanner: Scanner | None = None) -> int:
    """Return ``L(p)`` times the denominator, exactly.

    A scanner of the instance makes it fast where 64 bits are enough; without one nothing
    has to be compiled.
    """
    fits = fits_int64(instance, prices)
    if scanner is not None and fits:
        numerators = np.array(prices.numerators, dtype=np.int64)
        costs, _ = scanner.least_costs(numerators, prices.denominator)
        least = int(sum(map(mul, scanner.kinds.counts.tolist(), costs.tolist())))
    else:
        kinds, unit = Counter(request.kind for request in instance), prices.denominator
        longest = max((output for _, _, output in kinds), default=0)
        numerators = np.array(prices.numerators, dtype=np.int64 if fits else object)
        sums = Sums.of(numerators, unit, longest)
        least = sum(count * least_cost(sums, kind, unit) for kind, count in kinds.items())
    return least - instance.total_memory * sum(prices.numerators)


def bound_by(instance: Instance, prices: Prices, threads: int = 1) -> CheckedBound:
    """Return what prices prove that were found before; many costs are looked at compiled."""
    scanner = None
    if len(instance) * len(prices.numerators) > _FEW_COSTS:
        from kvopt.bounds.scan import Scanner  # it loads numba

        scanner = Scanner(Kinds.of(instance), threads)
    return CheckedBound(price_bound(instance, prices, scanner), "prices", prices)


def fits_int64(instance: Instance, prices: Prices) -> bool:
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


class Sums(NamedTuple):
    """Sums of prices in units of which D make a round, as far as an output may be active.

    Sums in 64 bits may overflow; costs, which do not, are right modulo 2^64 and so in full.

    Parameters
    ----------
    last
        Time of the last price.
    prices
        The prices ``p_t``, with zeros after them.
    paid, held
        ``P_k = p_1 + ... + p_k`` and ``W_k = P_0 + ... + P_{k-1}``.
    begun
        ``D k + W_k``.
    """

    last: int
    prices: Numbers
    paid: Numbers
    held: Numbers
    begun: Numbers

    @classmethod
    def of(cls, prices: Numbers, unit: int, longest: int) -> Sums:
        """Sum prices up for outputs of at most that length."""
        kind, last = prices.dtype.type, len(prices)
        padded = np.concatenate((prices, np.zeros(min(longest, last), dtype=kind)))
        paid = _prefix(padded)
        held = _prefix(paid)[:-1]
        return cls(last, padded, paid, held, held + kind(unit) * np.arange(len(held), dtype=kind))


def _prefix(values: Numbers) -> Numbers:
    """Return the sums of the first 0, 1, 2, ... values."""
    sums: Numbers = np.zeros(len(values) + 1, dtype=values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums


def least_cost(sums: Sums, kind: Kind, unit: int) -> int:
    """Return the least cost of a request over all its starts, in units of prices."""
    arrival, _, output = kind
    if arrival >= sums.last:
        return unit * output
    return int(start_costs(sums, kind).min()) + unit * (output - arrival)


def start_costs(sums: Sums, kind: Kind) -> Numbers:
    """Return the costs of the starts from the arrival to the last price, less output - arrival."""
    last, (arrival, prompt, output) = sums.last, kind
    active = min(output, last)  # nothing is paid after that
    now = slice(arrival, last + 1)
    then = slice(arrival + active, last + active + 1)
    costs: Numbers = sums.begun[now] - prompt * sums.paid[now]
    costs += (prompt + active) * sums.paid[then] - sums.held[then]
    return costs

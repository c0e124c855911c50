"""Any prices on memory prove a lower bound, whatever method found them.

Charge ``p_t >= 0`` for each token held at time t and drop the memory limit.  Every feasible
schedule then pays at most ``M sum_t p_t`` for tokens, so

    L(p) = sum_i min_{k >= a_i} [k + o_i - a_i + sum_{j=1..o_i} p_{k+j} (s_i + j)] - M sum_t p_t

is at most the total latency of any schedule, in which a weight w multiplies latencies.  With
``p_t = q_t / D`` for integers everything below is exact.  Beyond the last priced time a later start
only costs more, so no horizon has to be trusted: k runs from a_i to that time, inclusive.

Where memory is given out in blocks of B tokens, a request that holds h tokens takes and pays for
``B ceil(h / B)`` of the ``B floor(M / B)`` tokens of all blocks.  That is never a lower bound at
the same prices.  Requests that may pause have another minimum, see `kvopt.bounds.pauses`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kvopt.bounds.kinds import Kind, Kinds, begun_blocks, strided_sums
from kvopt.incumbent.proofs import BlockPrices, CheckedBound, Prices
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.instance import Instance

if TYPE_CHECKING:
    from kvopt.bounds.scan import Scanner

_FEW_COSTS = 10_000_000
"""Starts up to which costs are evaluated without compiled code, in a tenth of a second."""


def rounded_prices(values: Sequence[float] | Floats, denominator: int) -> Prices:
    """Round floats to prices; anything but a positive number becomes 0."""
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


def price_bound(
    instance: Instance, prices: Prices, scanner: Scanner | None = None, *, pauses: bool = False
) -> int:
    """Return the lower bound that prices prove, rounded up."""
    return -(-price_value(instance, prices, scanner, pauses=pauses) // prices.denominator)


def price_value(
    instance: Instance, prices: Prices, scanner: Scanner | None = None, *, pauses: bool = False
) -> int:
    """Return the bound of prices times the denominator, exactly.

    Parameters
    ----------
    instance, prices
        The problem, and the prices of tokens.
    scanner
        Compiled loops for costs that fit into 64 bits; without one nothing is compiled.
    pauses
        Whether the bound covers schedules with pauses; a scanner knows that itself.
    """
    fits = fits_int64(instance, prices)
    numerators = np.array(prices.numerators, dtype=np.int64 if fits else object)
    kinds = Kinds.of(instance) if scanner is None else scanner.kinds
    if scanner is not None and fits:
        costs, _ = scanner.least_costs(numerators, prices.denominator)
    else:
        sums = Sums.of(numerators, prices.denominator, kinds)
        weights = {weight: sums.of_weight(weight) for weight, _ in kinds.by_weight()}
        rows = zip(kinds.weights.tolist(), kinds.rows(), strict=True)
        costs = np.array(
            [least_cost(weights[weight], kind) for weight, kind in rows], dtype=numerators.dtype
        )
        if scanner.pauses if scanner is not None else pauses:
            from kvopt.bounds.pauses import lower_with_pauses

            lower_with_pauses(costs, kinds, sums)
    least: int = sum(map(mul, kinds.counts.tolist(), costs.tolist()))
    rented = instance.used_workers * instance.blocks * instance.block_size
    return least - rented * sum(prices.numerators)


def bound_by(instance: Instance, prices: Prices, threads: int = 1) -> CheckedBound:
    """Evaluate prices that were found before; many costs are computed in compiled loops."""
    scanner = None
    if len(instance) * len(prices.numerators) > _FEW_COSTS:
        from kvopt.bounds.scan import Scanner  # it loads numba

        scanner = Scanner(Kinds.of(instance), threads)
    return CheckedBound(
        price_bound(instance, prices, scanner), "prices", proof_of(instance, prices)
    )


def proof_of(instance: Instance, prices: Prices) -> Prices | BlockPrices:
    """Return prices as a proof that records whether whole blocks are paid for."""
    return prices if instance.block_size == 1 else BlockPrices(prices)


def fits_int64(instance: Instance, prices: Prices) -> bool:
    """Whether loops may add up costs of starts."""
    numbers = prices.numerators
    total, largest = sum(numbers), max(numbers, default=0)
    return fits(_largest_cost(instance, len(numbers), total, largest, prices.denominator))


def _largest_cost(instance: Instance, last: int, total: Any, largest: Any, unit: Any) -> Any:
    """Return an upper limit on the cost of a start: its latency and its payment."""
    longest = max((r.output for r in instance), default=0)
    unit = unit * max((r.weight for r in instance), default=1)
    peak = max((r.peak for r in instance), default=0) + instance.block_size - 1
    paid = min(total, largest * longest)
    return unit * (last + longest + 1) + peak * paid


class Sums(NamedTuple):
    """Sums of prices in units of 1 / D rounds, up to the last time of an active request.

    Sums in 64 bits may overflow; costs, which do not, are right modulo 2^64 and so in full.

    Parameters
    ----------
    last
        Time of the last price.
    unit, block
        D, and the tokens B of a block.
    prices
        The prices ``p_t``, with zeros after them.
    paid, held
        ``P_k = p_1 + ... + p_k`` and ``W_k = B (P_{k-B} + P_{k-2B} + ...)``.
    begun
        ``D k + W_k``.
    """

    last: int
    unit: Any
    block: int
    prices: Numbers
    paid: Numbers
    held: Numbers
    begun: Numbers

    @classmethod
    def of(cls, prices: Numbers, unit: int, kinds: Kinds) -> Sums:
        """Sum prices up, of requests of some kinds."""
        kind, last, block = prices.dtype.type, len(prices), kinds.block
        padded = np.concatenate((prices, np.zeros(min(kinds.longest, last), dtype=kind)))
        before: Numbers = np.zeros(block + 1 + len(padded), dtype=kind)
        paid = before[block:]
        np.cumsum(padded, out=paid[1:])
        held = strided_sums(before, block)
        held *= kind(block)
        begun = held + kind(unit) * np.arange(len(held), dtype=kind)
        return cls(last, kind(unit), block, padded, paid, held, begun)

    def of_weight(self, weight: int) -> Sums:
        """Return the sums for requests of a weight w: each round of latency costs w D."""
        if weight == 1:
            return self
        kind = self.prices.dtype.type
        begun = self.begun + kind(weight - 1) * self.unit * np.arange(len(self.begun), dtype=kind)
        return self._replace(unit=kind(weight) * self.unit, begun=begun)


def least_cost(sums: Sums, kind: Kind) -> int:
    """Return the least cost of a request over all its starts, in units of prices."""
    arrival, _, output = kind
    if arrival >= sums.last:
        return int(sums.unit) * output
    return int(start_costs(sums, kind).min())


def start_costs(sums: Sums, kind: Kind) -> Numbers:
    """Return the costs of the starts from the arrival to the last price.

    A request that starts at k and begins blocks as `begun_blocks` says costs

        D (k + o - a) + (s + final) P_{k+o} - (s + first) P_k - (W_{k+final} - W_{k+first}).
    """
    last, (arrival, prompt, output) = sums.last, kind
    active = min(output, last)  # nothing is paid after that
    first, final = begun_blocks(prompt, active, sums.block)

    def after(sums: Numbers, rounds: int) -> Numbers:
        return sums[arrival + rounds : last + rounds + 1]

    costs: Numbers = after(sums.begun, first) - (prompt + first) * after(sums.paid, 0)
    costs += (prompt + final) * after(sums.paid, active) - after(sums.held, final)
    costs += sums.unit * (output - arrival - first)
    return costs

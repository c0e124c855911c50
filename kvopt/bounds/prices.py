"""Any prices of resources prove a lower bound, whatever method found them.

Charge ``p_t >= 0`` for each token held at time t and drop the memory limit.  Every feasible
schedule then pays at most ``M sum_t p_t`` for tokens, so

    L(p) = sum_i min_{k >= a_i} [k + o_i - a_i + sum_{j=1..o_i} p_{k+j} (s_i + j)] - M sum_t p_t

is at most the total latency of any schedule, in which a weight w multiplies latencies.  With
``p_t = q_t / D`` for integers everything below is exact.  Beyond the last priced time a later start
only costs more, so no horizon has to be trusted: k runs from a_i to that time, inclusive.

Where memory is given out in blocks of B tokens, a request that holds h tokens takes and pays for
``B ceil(h / B)`` of the ``B floor(M / B)`` tokens of all blocks.  At the same
prices this bound is never lower.  Slots (`kvopt.bounds.slots`) are paid for in the same way: their
prices are steps in the number of tokens.  Shares of prefixes (`kvopt.bounds.shared_prices`) are
further tokens.

*Pauses.*  Request i may then be active at any ``o_i`` times ``t_1 < t_2 < ...`` after its arrival,
and costs

    t_o - a_i + sum_{j=1..o_i} p_{t_j} (s_i + j).

Let U be the least cost without a pause.  Nothing that completes after ``a_i + U`` is cheaper.
Completions after ``max(a_i, T) + o_i``, with T the time of the last price, need no look either:
tokens after T are free and may be produced in a row.  Where prices do not rise from
``a_i + 1`` to the end of this window, U itself is the least cost: active times can be moved later
until they are the last ones, and none of them gets dearer.  This needs only
that the memory of a request never shrinks while it runs, which is true of whole blocks too.
``docs/theory`` has the proofs.  Elsewhere a dynamic program over tokens and times finds the
least cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kvopt.bounds.kinds import Kind, Kinds, begun_blocks, strided_sums
from kvopt.incumbent.proofs import CheckedBound, Prefixes, PriceProof, Slots, token_prices
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.instance import Instance

if TYPE_CHECKING:
    from kvopt.bounds.scan import Scanner

_FEW_COSTS = 10_000_000
"""Starts up to which costs are evaluated without compiled code, in a tenth of a second."""


def rounded_prices(
    values: Sequence[float] | Floats, denominator: int, others: Sequence[Slots | Prefixes] = ()
) -> PriceProof:
    """Round floats to prices of tokens; anything but a positive number becomes 0."""
    numerators = rounded(values, denominator)
    kept = np.flatnonzero(numerators)
    last = int(kept[-1]) + 1 if len(kept) else 0
    return token_prices([int(number) for number in numerators[:last]], denominator, others)


def rounded(values: Sequence[float] | Floats, denominator: int) -> Floats:
    """Return the nearest multiples of 1 / D, times D; anything but a positive number becomes 0."""
    scaled = np.nan_to_num(np.asarray(values, dtype=float) * denominator, posinf=0.0)
    numerators: Floats = np.maximum(np.rint(scaled), 0.0)
    return numerators


def denominator_for(kinds: Kinds, values: Floats, bits: float = 30.0) -> int:
    """Return the finest power of two of so many bits at which 64 bits hold every cost."""
    cost = _largest_cost(kinds, len(values), values.sum(), values.max(initial=0.0), 1.0)
    return finest_denominator(cost, bits)


def finest_denominator(cost: float, bits: float = 30.0) -> int:
    """Return the finest power of two, at most one of so many bits, at which 64 bits hold a cost."""
    return 1 << int(min(max(math.log2(2.0**60 / max(cost, 1.0)), 0.0), bits))


def price_bound(
    instance: Instance, proof: PriceProof, scanner: Scanner | None = None, *, pauses: bool = False
) -> int:
    """Return the lower bound that prices prove, rounded up."""
    return -(-price_value(instance, proof, scanner, pauses=pauses) // proof.unit)


def price_value(
    instance: Instance, proof: PriceProof, scanner: Scanner | None = None, *, pauses: bool = False
) -> int:
    """Return the bound of prices times the unit of the proof, exactly.

    Parameters
    ----------
    instance, proof
        The problem, and the prices of resources.
    scanner
        Compiled loops for costs that fit into 64 bits; without one nothing is compiled.  Shares of
        prefixes need theirs.
    pauses
        Whether the bound covers schedules with pauses; a scanner knows that itself.
    """
    kinds = Kinds.of(instance) if scanner is None else scanner.kinds
    costs, paid = payments(instance, proof, kinds, scanner, pauses=pauses)
    lowest: int = sum(map(mul, kinds.counts.tolist(), costs.tolist()))
    return lowest - paid


def payments(
    instance: Instance,
    proof: PriceProof,
    kinds: Kinds,
    scanner: Scanner | None = None,
    *,
    pauses: bool = False,
) -> tuple[Numbers, int]:
    """Return the least cost of every kind and the price of all capacities, times the unit."""
    slots = [slot for slot in proof.resources if isinstance(slot, Slots)]
    numerators = proof.numerators
    last = max([len(numerators), *(slot.times[-1] for slot in slots)])
    tokens = np.zeros(last, dtype=np.int64 if fits_int64(kinds, proof) else object)
    tokens[: len(numerators)] = numerators
    lines = [line_of(slot, last, tokens.dtype) for slot in slots]
    steps = steps_of(instance.memory, [slot.capacity for slot in slots], lines) if slots else None
    if scanner is None:
        costs = exact_costs(kinds, tokens, proof.denominator, steps, pauses=pauses)
    else:
        costs = scanner.integer_costs(tokens, proof, steps)
    rent: int = instance.blocks * instance.block_size * sum(numerators)
    rent += sum(slot.capacity * sum(line.tolist()) for slot, line in zip(slots, lines, strict=True))
    return costs, instance.used_workers * rent * (proof.unit // proof.denominator)


def exact_costs(
    kinds: Kinds, tokens: Numbers, unit: int, steps: PriceSteps | None, *, pauses: bool
) -> Numbers:
    """Return the least cost of every kind, without compiled code."""
    sums = Sums.of(tokens, unit, kinds)
    stairs = list[tuple[int, Numbers]]()
    if steps is not None:
        stairs += zip(steps.thresholds.tolist(), steps.sums(len(sums.prices)), strict=True)
    weights = {weight: sums.of_weight(weight) for weight, _ in kinds.by_weight()}
    rows = zip(kinds.weights.tolist(), kinds.rows(), kinds.last_starts.tolist(), strict=True)
    costs: Numbers = np.array(
        [least_cost(weights[weight], kind, latest, stairs) for weight, kind, latest in rows],
        dtype=tokens.dtype,
    )
    if pauses:
        _lower_with_pauses(costs, kinds, sums)
    return costs


def bound_by(instance: Instance, prices: PriceProof, threads: int = 1) -> CheckedBound:
    """Evaluate prices of tokens known before; many costs are computed in compiled loops."""
    scanner = None
    if len(instance) * len(prices.numerators) > _FEW_COSTS:
        from kvopt.bounds.scan import Scanner  # it loads numba

        scanner = Scanner(Kinds.of(instance), threads)
    return CheckedBound(price_bound(instance, prices, scanner), "prices", prices)


def fits_int64(kinds: Kinds, proof: PriceProof) -> bool:
    """Whether loops may add up costs of starts."""
    numbers, last = proof.numerators, len(proof.numerators)
    total, largest = sum(numbers), max(numbers, default=0)
    slots = [slot for slot in proof.resources if isinstance(slot, Slots)]
    for slot in slots:
        last = max(last, slot.times[-1])
    cost = _largest_cost(kinds, last, total, largest, proof.denominator)
    for slot in slots:  # a price between two times passes both by a rounded step in each round
        steepest = max(map(int.__sub__, slot.times[1:], slot.times))
        cost += slot.capacity * (max(slot.numerators) + steepest) * kinds.longest
    return fits(cost * (proof.unit // proof.denominator))


def _largest_cost(kinds: Kinds, last: int, total: Any, largest: Any, unit: Any) -> Any:
    """Return an upper limit on the cost of a start: its latency and its payment."""
    unit = unit * int(kinds.weights.max(initial=0))
    peak = int((kinds.prompts + kinds.outputs).max(initial=0)) + kinds.block - 1
    paid = min(total, largest * kinds.longest)
    return unit * (last + kinds.longest + 1) + peak * paid


class PriceSteps(NamedTuple):
    """Price of an active request at each time for holding at least a number of tokens.

    Parameters
    ----------
    thresholds
        These numbers, ascending.
    prices
        In a row for each, at the times ``1, 2, ...``: as many as prices of tokens.
    """

    thresholds: Integers
    prices: Numbers

    def sums(self, length: int) -> Numbers:
        """Return prices summed up to each of so many times, a row for each threshold."""
        count, last = self.prices.shape
        paid: Numbers = np.zeros((count, length + 1), dtype=self.prices.dtype)
        np.cumsum(self.prices, axis=1, out=paid[:, 1 : last + 1])
        paid[:, last + 1 :] = paid[:, last : last + 1]
        return paid


def thresholds(memory: int, slots: int) -> list[int]:
    """Return from how many tokens on a request needs one slot, two slots and so on.

    Examples
    --------
    >>> thresholds(memory=100, slots=1), thresholds(memory=100, slots=2)
    ([51], [34, 68])
    """
    return [-(-number * (memory + 1) // (slots + 1)) for number in range(1, slots + 1)]


def steps_of(memory: int, slots: Sequence[int], lines: Sequence[Numbers]) -> PriceSteps:
    """Return the payments of requests for slots, for prices of each number at all times."""
    rows: dict[int, Numbers] = {}
    for count, line in zip(slots, lines, strict=True):
        for threshold in thresholds(memory, count):
            rows[threshold] = rows[threshold] + line if threshold in rows else line
    order = sorted(rows)
    return PriceSteps(np.array(order, dtype=np.int64), np.array([rows[tokens] for tokens in order]))


def line_of(slots: Slots, last: int, kind: Any = np.int64) -> Numbers:
    """Return the prices of a slot at the times ``1 .. last``; in between they change evenly.

    The change in each round is rounded up, so a price is never negative.

    Examples
    --------
    >>> line_of(Slots(1, (2, 5), (0, 8)), last=7).tolist()
    [0, 0, 3, 6, 9, 0, 0]
    """
    prices: Numbers = np.zeros(last, dtype=kind)
    pairs = pairwise(zip(slots.times, slots.numerators, strict=True))
    for (begin, value), (end, after) in pairs:
        step, rounds = -((value - after) // (end - begin)), np.arange(begin + 1, end + 1)
        inside = rounds[(rounds >= 1) & (rounds <= last)]
        prices[inside - 1] = value + (inside - begin).astype(kind) * step
    return prices


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
        # Entry k is P_{k-B}, 0 up to k = B: sums of every B-th entry are W_k / B.
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
        unit = kind(weight) * self.unit
        begun = self.held + unit * np.arange(len(self.begun), dtype=kind)
        return self._replace(unit=unit, begun=begun)


def least_cost(
    sums: Sums, kind: Kind, latest: int, stairs: Sequence[tuple[int, Numbers]] = ()
) -> int:
    """Return the least cost of a request over its starts up to the latest, in units of prices.

    Stairs are thresholds, with sums of `PriceSteps`.
    """
    arrival, prompt, output = kind
    if arrival >= sums.last:  # no token has a price: it starts as it arrives
        return int(sums.unit) * output
    costs, active = start_costs(sums, kind), min(output, sums.last)
    for threshold, paid in stairs:
        unpaid = max(threshold - prompt - 1, 0)  # rounds before it reaches the threshold
        if unpaid < active:
            costs += paid[arrival + active : sums.last + active + 1]
            costs -= paid[arrival + unpaid : sums.last + unpaid + 1]
    return int(costs[: latest - arrival + 1].min())


def start_costs(sums: Sums, kind: Kind) -> Numbers:
    """Return the costs of the starts from the arrival to the last price.

    A request that starts at k and begins blocks as `begun_blocks` says costs

        D (k + o - a) + (s + final) P_{k+o} - (s + first) P_k - (W_{k+final} - W_{k+first}).

    This sums by parts: all that it holds at the end pays from k to k + o, and a block that begins
    after g tokens gets back B (P_{k+g} - P_k), for g = first, first + B, ... below final.
    """
    last, (arrival, prompt, output) = sums.last, kind
    active = min(output, last)  # nothing is paid after that
    first, final = begun_blocks(prompt, active, sums.block)

    def after(line: Numbers, rounds: int) -> Numbers:
        return line[arrival + rounds : last + rounds + 1]

    costs: Numbers = after(sums.begun, first) - (prompt + first) * after(sums.paid, 0)
    costs += (prompt + final) * after(sums.paid, active) - after(sums.held, final)
    costs += sums.unit * (output - arrival - first)
    return costs


def windows_with_pauses(kinds: Kinds, costs: Numbers, prices: Numbers, unit: int) -> Integers:
    """Return the rounds after each arrival in which pauses may pay, 0 if they cannot.

    Costs are those of runs.  Some cheapest times end within these rounds (Claim 4.2): later the
    wait alone costs more, or nothing has a price.  Unless prices rise there a run is as cheap
    (Claim 4.1).
    """
    last = len(prices)
    rises = np.append(np.flatnonzero(prices[1:] > prices[:-1]) + 1, 2**62)
    limits = (costs // (unit * kinds.weights.astype(costs.dtype))).astype(np.int64) + 1
    spans = np.minimum(limits, last - kinds.arrivals + kinds.outputs)
    following = rises[np.searchsorted(rises[:-1], kinds.arrivals + 1)]
    pays = (kinds.arrivals < last) & (following < kinds.arrivals + spans)
    return np.where(pays, spans, 0)


def _lower_with_pauses(costs: Numbers, kinds: Kinds, sums: Sums) -> None:
    """Lower costs of runs to those with pauses; exact, and nothing compiled."""
    prices, unit = sums.prices[: sums.last], sums.unit
    windows = windows_with_pauses(kinds, costs, prices, unit)
    for i in np.flatnonzero(windows):
        arrival, window, output = (int(x[i]) for x in (kinds.arrivals, windows, kinds.outputs))
        spare = window - output
        window_prices: Numbers = np.zeros(window, dtype=prices.dtype)
        window_prices[: sums.last - arrival] = prices[arrival : arrival + window]
        tokens = np.arange(kinds.prompts[i] + 1, kinds.prompts[i] + output + 1)
        held = (-(-tokens // kinds.block) * kinds.block).astype(prices.dtype)
        # The least price of the first tokens, each at most so many rounds later than it could be.
        lowest = np.zeros(spare + 1, dtype=prices.dtype)
        for j in range(min(output - 1, sums.last - arrival)):
            lowest = np.minimum.accumulate(lowest + held[j] * window_prices[j : j + spare + 1])
        waits = np.arange(output, window + 1, dtype=prices.dtype)
        weight = int(kinds.weights[i])
        lowest += held[-1] * window_prices[output - 1 :] + weight * unit * waits
        costs[i] = min(costs[i], lowest.min())

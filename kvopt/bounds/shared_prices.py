"""Prices of tokens and of shared blocks: users split the price of a block in each interval.

Let p_t be the price of a token, and l_ivx >= 0 the share of node v that its user i pays for in
interval x of time.  Shares of users that can be active together then sum to 1 at most: these are
the K largest of users that have arrived by the end of the interval, with K of `users_together`.  So
at each time active requests pay for no more tokens than memory has, and

    L = sum_i min_{k >= a_i} [k + o_i - a_i + sum_j p_{k+j} (u_i + j + sum_v l_ivx w_v)]
        - M sum_t p_t

is at most the total latency of any schedule.  A turn of a session pays for all of its shared
blocks until the next turn arrives, and shares may change later.

L is concave in prices, and in shares at given prices.  Prices rise as those of
`kvopt.bounds.lagrangian` do; shares grow by a factor with the payment of a user for the whole node,
and are scaled down to their limit.  Floats only steer: bounds are evaluated in integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from kvopt.bounds.gradient_ascent import Ascent, Point
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import (
    STEPS,
    ConcaveInPrices,
    checked_prices,
    first_prices,
    priced_rounds,
    rising_prices,
)
from kvopt.bounds.prefix_shares import shared_out, users_together
from kvopt.bounds.prices import PriceSteps, finest_denominator, fits_int64, rounded_prices
from kvopt.bounds.scan import Scanner
from kvopt.errors import TooLarge
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import CheckedBound, Prefixes, PriceProof
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats, Integers, Numbers, columns_of
from kvopt.problem.instance import Instance

_INTERVALS, _BEND = 96, 1.6
"""Number of intervals of time, and the power by which early ones are shorter."""
_STEP = 16
"""An ascent evaluates one of so many starts, and then those around the cheapest.

Twelve steps for 3,000 requests take 0.70 s of processor time, and 0.80 s with all starts.
"""
_UNIT = 1024
"""Parts of 1 that shares are rounded down to."""
_FACTOR, _KEPT = 2.0, 0.95
"""Logarithm of the factor by which shares grow with the first step of prices, and weight of the
steps before."""
_LOWEST = 1e-4
"""Share that may still grow."""


@compiled
def _cheapest(
    users: tuple[Integers, Integers],
    levels: Numbers,
    borders: Integers,
    interval: Integers,
    paid: Numbers,
    moment: Numbers,
    scale: Any,
    unit: Any,
    step: int,
    costs: Numbers,
    starts: Integers,
) -> None:
    """Find the least cost of each request over one start of so many, and then those around it.

    A start at k waits, pays for its j-th token at k + j, and in interval x for ``level[x]`` tokens
    at each time; ``before[x] + level[x] paid[k]`` is that up to k.  No price is negative, so later
    starts lose once the wait alone costs as much.  Bounds have a step of 1.  Sums of integers may
    pass 64 bits, costs do not: they are right modulo 2^64.
    """
    (arrivals, outputs), number, last = users, costs.dtype.type, len(paid) - 1
    before: Any = np.zeros(levels.shape[1], dtype=costs.dtype)
    for i in range(len(arrivals)):
        level, sums = levels[i], number(0)
        for x in range(len(level)):
            before[x] = sums - level[x] * paid[borders[x]]
            sums += level[x] * (paid[borders[x + 1]] - paid[borders[x]])
        a, o = arrivals[i], outputs[i]
        best, start, apart = scale * number(max(a, last) - a), max(a, last), step
        # First one start of so many, then those around the cheapest; with a step of 1 all of them.
        begin, end = a, last
        while True:
            for k in range(begin, end, apart):
                wait = scale * number(k - a)
                if wait >= best:
                    break
                e = min(k + o, last)
                x, y = interval[k], interval[e]
                tokens = moment[e] - moment[k] - number(k) * (paid[e] - paid[k])
                cost = wait + unit * tokens + before[y] + level[y] * paid[e]
                cost -= before[x] + level[x] * paid[k]
                if cost < best:
                    best, start = cost, k
            if apart == 1:
                break
            begin, end, apart = max(a, start - step + 1), min(last, start + step), 1
        costs[i], starts[i] = best + scale * number(o), start


class PrefixScanner(Scanner):
    """Evaluates prices of tokens with shares that follow them, and remembers the best of both.

    Each evaluation takes a step of the shares.  Rows of these are nodes of requests, in order of
    requests and from the root, except nodes of all requests.

    Parameters
    ----------
    instance
        The problem, of which the nodes of all requests are left out.
    borders
        Times between which shares are constant.
    """

    def __init__(self, instance: Instance, borders: Integers) -> None:
        forest, ones = instance.forest, np.ones(len(instance), dtype=np.int64)
        super().__init__(Kinds(*columns_of(instance.requests), ones, ones))
        rows = ((i, v) for i, path in enumerate(forest.paths) for v in path)
        owners, nodes = zip(*rows, strict=True)
        self._owners, self._nodes = np.array(owners), np.array(nodes)
        self._by_node = np.argsort(self._nodes, kind="stable")
        self._private, self._weights = np.array(forest.private), np.array(forest.weights)
        self._limits = users_together(instance)
        self._borders, last = borders, int(borders[-1])
        self._interval = np.maximum(np.searchsorted(borders, np.arange(last + 1)) - 1, 0)
        self.factor, self.value = 0.0, -np.inf
        self.shares = self._within_limits(np.ones((len(owners), len(borders) - 1)))
        self._mean_paid_parts = np.zeros_like(self.shares)
        self.best = np.zeros(last), self.shares

    def _within_limits(self, shares: Floats) -> Floats:
        """Return shares scaled to the largest that can be paid together."""
        is_there = self.kinds.arrivals[self._owners][:, None] < self._borders[1:]
        shares = np.where(is_there, shares, 0.0)
        sums: Floats = np.zeros((len(self._weights), shares.shape[1]))
        distinct, first = np.unique(self._nodes[self._by_node], return_index=True)
        sums[distinct] = np.add.reduceat(shares[self._by_node], first)
        for node in np.flatnonzero(np.bincount(self._nodes) > self._limits):
            ascending = np.sort(shares[self._nodes == node], axis=0)
            sums[node] = ascending[-self._limits[node] :].sum(axis=0)
        scaled: Floats = shares / np.maximum(sums, 1e-300)[self._nodes]
        return scaled

    def _levels(self, shares: Numbers, unit: Any) -> Numbers:
        """Return the prompt tokens that each request pays for in each interval, times the unit."""
        levels: Numbers = np.zeros((len(self.kinds), shares.shape[1]), dtype=shares.dtype)
        levels += (unit * self._private).astype(shares.dtype)[:, None]
        distinct, first = np.unique(self._owners, return_index=True)
        levels[distinct] += np.add.reduceat(self._weights[self._nodes][:, None] * shares, first)
        return levels

    def _cheapest(
        self, prices: Numbers, levels: Numbers, scale: Any, unit: Any, step: int
    ) -> tuple[Numbers, Integers, Numbers]:
        """Return least costs and cheapest starts, and sums of prices."""
        kinds, kind = self.kinds, prices.dtype
        paid, moment = np.zeros((2, len(prices) + 1), dtype=kind)
        np.cumsum(prices, out=paid[1:])
        np.cumsum(prices * np.arange(1, len(prices) + 1, dtype=kind), out=moment[1:])
        costs: Numbers = np.zeros(len(kinds), dtype=kind)
        starts = np.zeros(len(costs), dtype=np.int64)
        _cheapest(
            (kinds.arrivals, kinds.outputs),
            levels,
            self._borders,
            self._interval,
            paid,
            moment,
            kind.type(scale),
            kind.type(unit),
            step,
            costs,
            starts,
        )
        return costs, starts, paid

    def lagrangian(self, prices: Floats, memory: int) -> tuple[float, Integers, Floats]:
        """Take a step of the shares; return the value, cheapest starts, and tokens over the memory.

        Each share grows by the mean part of what its interval costs that falls into the run of
        its user.  Starts are sampled, so the value may be too high: it only steers.
        """
        grown = np.maximum(self.shares, _LOWEST) * np.exp(self.factor * self._mean_paid_parts)
        self.shares = self._within_limits(grown)
        levels = self._levels(self.shares, 1.0)
        costs, starts, paid = self._cheapest(prices, levels, 1.0, 1.0, _STEP)
        load, gained = self._use(starts, levels, paid)
        whole = np.maximum(np.diff(paid[self._borders]), 1e-9)
        self._mean_paid_parts = _KEPT * self._mean_paid_parts + (1 - _KEPT) * gained / whole
        value = float(costs.sum() - memory * paid[-1])
        if value > self.value:
            self.value, self.best = value, (prices, self.shares)
        return value, starts, load - memory

    def _use(self, starts: Integers, levels: Floats, paid: Floats) -> tuple[Floats, Floats]:
        """Return the tokens held at each time, and the payments of users for a token of a node."""
        kinds, borders, last = self.kinds, self._borders, len(paid) - 1
        ends = np.minimum(starts + kinds.outputs, last)
        # The part of each run in each interval.
        begin, end = (np.clip(x[:, None], borders[:-1], borders[1:]) for x in (starts, ends))
        change = np.bincount(begin.ravel(), levels.ravel(), last + 1)
        change -= np.bincount(end.ravel(), levels.ravel(), last + 1)
        decoded = replace(kinds, prompts=0 * kinds.prompts).loads(starts, last)
        return change.cumsum()[:last] + decoded, (paid[end] - paid[begin])[self._owners]

    def rounded(self, _: Floats) -> PriceProof:
        """Return the best prices and shares in integers."""
        values, shares = self.best
        longest = float(self.kinds.longest)
        paid = min(values.sum(), values.max(initial=0.0) * longest)
        tokens = float(self._levels(shares, 1.0).max(initial=0.0)) + longest
        largest = _UNIT * (len(values) + longest + 1 + tokens * paid)
        rows = np.floor(shares * _UNIT).astype(np.int64).tolist()
        prefixes = Prefixes(_UNIT, tuple(self._borders.tolist()), tuple(map(tuple, rows)))
        return rounded_prices(values, finest_denominator(largest), [prefixes])

    def integer_costs(self, prices: Numbers, proof: PriceProof, _: PriceSteps | None) -> Numbers:
        """Return the least cost of every request in integers, times the unit of the proof."""
        (prefixes,) = (shares for shares in proof.resources if isinstance(shares, Prefixes))
        unit = prefixes.denominator
        levels = self._levels(np.array(prefixes.numerators, dtype=np.int64), unit)
        paying = replace(self.kinds, prompts=-(-levels.max(axis=1) // unit))
        if not fits_int64(paying, proof):
            raise TooLarge("costs at these prices and shares may need more than 64 bits")
        padded = np.zeros(int(self._borders[-1]), dtype=np.int64)
        padded[: len(prices)] = prices
        return self._cheapest(padded, levels, proof.unit, unit, 1)[0]


class _WithShares(ConcaveInPrices):
    """Prices whose shares grow with their steps, from the best shares if from the best prices."""

    def __init__(self, scanner: PrefixScanner, memory: int) -> None:
        self._scanner = scanner
        super().__init__(scanner.at(memory), 1.0 / memory)

    def moved(self, point: Point, directions: Point, step: float) -> Point:
        """Return the next prices; the shares follow when they are evaluated."""
        self._scanner.factor = _FACTOR * step / STEPS.length
        if point[0] is self._scanner.best[0]:
            self._scanner.shares = self._scanner.best[1]
        return super().moved(point, directions, step)


def shared_price_bounds(
    instance: Instance, budget: Budget, limits: Limits
) -> Iterator[CheckedBound]:
    """Yield better and better bounds of prices with shares of nodes, while time is left."""
    plain, instance = shared_out(instance), instance.without_common_prefix()
    priced_rounds(plain, budget, limits)
    prices = first_prices(plain.pooled())
    last = len(prices)
    borders = np.unique((np.linspace(0, 1, _INTERVALS + 1) ** _BEND * last).astype(np.int64))
    scanner = PrefixScanner(instance, borders)
    ascent = Ascent(_WithShares(scanner, instance.total_memory), (prices,), STEPS)
    for best in rising_prices(ascent, budget):
        yield checked_prices(instance, "prices of shared blocks", scanner, best)

"""Prices of tokens and of shared blocks: users split the price of a block in each interval.

Let p_t be the price of a token, and l_ivx >= 0 the share of node v that its user i pays for in
interval x of time.  Shares of users that can be active together then sum to 1 at most: these are
the K largest of users that have arrived by the end of the interval, with K of `most_together`.  So
at each time active requests pay for no more tokens than memory has, and

    L = sum_i min_{k >= a_i} [k + o_i - a_i + sum_j p_{k+j} (u_i + j + sum_v l_ivx w_v)]
        - M sum_t p_t

is at most the total latency of any schedule.  A turn of a session pays for all of its shared
blocks until the next turn arrives, and shares may change later.

L is concave in prices, and in shares at given prices.  Prices climb as those of
`kvopt.bounds.lagrangian` do; shares grow by a factor with the payment of a user for the whole node,
and are scaled down to their limit.  Floats only steer: offers are evaluated in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kvopt.bounds.lagrangian import Ascent, Pace, ascend, first_prices, refuse_long
from kvopt.bounds.prices import finest_denominator, rounded_prices
from kvopt.bounds.shares import most_together, shared_out
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import SharedPrices
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.instance import Instance

_INTERVALS, _BEND = 96, 1.6
"""Number of intervals of time, and the power by which early ones are shorter."""
_STEP = 16
"""An ascent evaluates one of so many starts, and then those around the cheapest."""
_UNIT = 1024
"""Parts of 1 that shares are rounded down to."""
_FACTOR, _NEAR, _KEPT = 2.0, 0.002, 0.95
"""Logarithm of the factor by which shares grow, aim as a share of the value below which it falls,
and weight of the steps before."""
_PACE = Pace(stages=((40, 0.01),), largest=1e-9)
_LEAST = 1e-4
"""Share that may still grow."""


@dataclass(frozen=True)
class Users:
    """Requests and their shared nodes, except those of all requests; a row is a node of a request.

    Parameters
    ----------
    memory
        M, of each worker in use.
    arrivals, outputs, private
        Columns of requests.
    owners, nodes
        The request and the node of each row, in order of requests, from the root.
    weights, most
        Tokens of each node, and how many of its users can be active together.
    borders
        Times between which shares are constant.
    """

    memory: int
    arrivals: Integers
    outputs: Integers
    private: Integers
    owners: Integers
    nodes: Integers
    weights: Integers
    most: Integers
    borders: Integers

    @classmethod
    def of(cls, instance: Instance, borders: Integers) -> Users:
        """Return the requests of an instance."""
        instance = instance.without_common_prefix()
        forest, most = instance.forest, most_together(instance)
        owners, nodes = zip(
            *((i, v) for i, path in enumerate(forest.paths) for v in path), strict=True
        )
        return cls(
            memory=instance.total_memory,
            arrivals=np.array([request.arrival for request in instance]),
            outputs=np.array([request.output for request in instance]),
            private=np.array(forest.private),
            owners=np.array(owners),
            nodes=np.array(nodes),
            weights=np.array(forest.weights),
            most=np.array(most),
            borders=borders,
        )

    def within_limits(self, shares: Floats) -> Floats:
        """Return shares scaled to the largest that can be paid together."""
        is_there = self.arrivals[self.owners][:, None] < self.borders[1:]
        shares = np.where(is_there, shares, 0.0)
        sums: Floats = np.zeros((len(self.weights), shares.shape[1]))
        np.add.at(sums, self.nodes, shares)
        for node in np.flatnonzero(np.bincount(self.nodes) > self.most):
            own = np.sort(shares[self.nodes == node], axis=0)
            sums[node] = own[-self.most[node] :].sum(axis=0)
        return shares / np.maximum(sums, 1e-300)[self.nodes]

    def levels(self, shares: Numbers, unit: Any) -> Numbers:
        """Return the prompt tokens that each request pays for in each interval, times the unit."""
        found: Numbers = np.zeros((len(self.private), len(self.borders) - 1), dtype=shares.dtype)
        found += (unit * self.private).astype(shares.dtype)[:, None]
        np.add.at(found, self.owners, self.weights[self.nodes][:, None] * shares)
        return found


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

    Sums of integers may pass 64 bits, costs do not: they are right modulo 2^64.
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


@compiled
def _used(
    starts: Integers,
    outputs: Integers,
    levels: Floats,
    interval: Integers,
    paid: Floats,
    first_rows: Integers,
    load: Floats,
    gained: Floats,
) -> None:
    """Sum up the tokens held at each time, and the payments of users for a token of a node."""
    last = len(paid) - 1
    for i in range(len(starts)):
        for t in range(starts[i] + 1, min(starts[i] + outputs[i], last) + 1):
            load[t - 1] += levels[i, interval[t]] + t - starts[i]
            for row in range(first_rows[i], first_rows[i + 1]):
                gained[row, interval[t]] += paid[t] - paid[t - 1]


class _Shares:
    """Shares that follow prices: each evaluation takes a step of them; remembers the best."""

    def __init__(self, users: Users, last: int) -> None:
        self.users, self.factor, self.value = users, 0.0, -np.inf
        self.shares = users.within_limits(np.ones((len(users.owners), len(users.borders) - 1)))
        self._interval = np.maximum(np.searchsorted(users.borders, np.arange(last + 1)) - 1, 0)
        self._rows = np.searchsorted(users.owners, np.arange(len(users.arrivals) + 1))
        self._towards = np.zeros_like(self.shares)
        self.best = np.zeros(last), self.shares

    def cheapest(
        self, prices: Numbers, shares: Numbers, scale: Any, unit: Any, step: int
    ) -> tuple[Numbers, Integers, Numbers, Numbers]:
        """Return least costs and cheapest starts, sums of prices, and levels."""
        users, kind = self.users, prices.dtype
        levels = users.levels(shares, unit)
        paid, moment = np.zeros((2, len(prices) + 1), dtype=kind)
        np.cumsum(prices, out=paid[1:])
        np.cumsum(prices * np.arange(1, len(prices) + 1, dtype=kind), out=moment[1:])
        costs: Numbers = np.zeros(len(users.arrivals), dtype=kind)
        starts = np.zeros(len(costs), dtype=np.int64)
        _cheapest(
            (users.arrivals, users.outputs),
            levels,
            users.borders,
            self._interval,
            paid,
            moment,
            kind.type(scale),
            kind.type(unit),
            step,
            costs,
            starts,
        )
        return costs, starts, paid, levels

    def __call__(self, prices: Floats) -> tuple[float, Integers, Floats]:
        """Return the value of prices, the cheapest starts, and tokens above the memory."""
        users = self.users
        grown = np.maximum(self.shares, _LEAST) * np.exp(self.factor * self._towards)
        self.shares = users.within_limits(grown)
        costs, starts, paid, levels = self.cheapest(prices, self.shares, 1.0, 1.0, _STEP)
        load, gained = np.full(len(prices), -float(users.memory)), np.zeros_like(self.shares)
        _used(starts, users.outputs, levels, self._interval, paid, self._rows, load, gained)
        whole = np.maximum(np.diff(paid[users.borders]), 1e-9)
        self._towards = _KEPT * self._towards + (1 - _KEPT) * gained / whole
        value = float(costs.sum() - users.memory * paid[-1])
        if value > self.value:
            self.value, self.best = value, (prices, self.shares)
        return value, starts, load

    def proof(self) -> tuple[int, SharedPrices]:
        """Return the bound of the best prices, in integers, and its proof."""
        values, shares = self.best
        users, last = self.users, len(values)
        most = float(users.levels(shares, 1.0).max(initial=0.0) + users.outputs.max())
        longest = float(users.outputs.max())
        paid = min(values.sum(), values.max(initial=0.0) * longest)
        denominator = finest_denominator(_UNIT * (last + longest + 1 + most * paid))
        prices = rounded_prices(values, denominator)
        numerators = np.zeros(last, dtype=np.int64)
        numerators[: len(prices.numerators)] = prices.numerators
        parts = np.floor(shares * _UNIT).astype(np.int64)
        costs, *_ = self.cheapest(numerators, parts, _UNIT * denominator, _UNIT, 1)
        total = sum(costs.tolist()) - users.memory * _UNIT * sum(prices.numerators)
        rows = tuple(map(tuple, parts.tolist()))
        proof = SharedPrices(prices, tuple(users.borders.tolist()), _UNIT, rows)
        return -(-total // (_UNIT * denominator)), proof


class _Climb(Ascent):
    """Ascent that restores shares together with prices; their steps shrink with its aim."""

    def __init__(self, shares: _Shares, prices: Floats) -> None:
        self._shares = shares
        super().__init__(shares, prices, pace=_PACE)

    def step(self) -> bool:
        """Take one step of prices and shares."""
        size = max(abs(self.value), 1.0)
        self._shares.factor = _FACTOR * min(1.0, self._aim / (_NEAR * size))
        return super().step()

    def _from_the_best(self) -> None:
        super()._from_the_best()
        self._shares.shares = self._shares.best[1]


def offer_shared_prices(search: Search, budget: Budget) -> None:
    """Offer better and better prices with shares of nodes, while time is left."""
    plain = shared_out(search.instance)
    refuse_long(search, plain)
    prices = first_prices(plain.pooled())
    last = len(prices)
    borders = np.unique((np.linspace(0, 1, _INTERVALS + 1) ** _BEND * last).astype(np.int64))
    shares = _Shares(Users.of(search.instance, borders), last)

    def offer(_: Floats) -> None:
        value, proof = shares.proof()
        sure = sum((request.weight - 1) * request.output for request in search.instance)
        search.offer_checked(value + sure, "prices of shared blocks", proof)

    ascend(_Climb(shares, prices), offer, budget)

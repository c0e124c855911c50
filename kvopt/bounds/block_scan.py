"""The cheapest start of every kind of request at given prices, where whole blocks are paid.

A request that holds h tokens pays for ``H = B ceil(h / B)``.  With the sums P_k of the prices
p_1 .. p_k, what it pays from start k on is

    sum_{j=1..o} p_{k+j} H_j  =  H_o P_{k+o} - H_1 P_k - B sum P_{k+j},

the last sum over those j = 1 .. o - 1 after which a block begins, ``s + j`` divisible by B.  They
are B apart, so with ``S_x = P_x + S_{x-B}`` it is a difference of two numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import Sums
from kvopt.bounds.scan import Scanner
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Integers, Numbers


@compiled
def _add_strides(paid: Numbers, block: int, sums: Numbers) -> None:
    """Write the sums S_x of every B-th of P_0 .. P_x to position x + B; B zeros come before."""
    for x in range(len(paid)):
        sums[x + block] = sums[x] + paid[x]


@compiled
def _scan_blocks(
    arrivals: Integers, prompts: Integers, outputs: Integers, block: int, paid: Numbers,
    strided: Numbers, last: int, unit: Any, costs: Numbers, starts: Integers,
) -> None:  # fmt: skip
    """Find the least cost and the first start that has it; starts hold a guess of it."""
    sizes = np.empty(4, dtype=costs.dtype)  # which turns integers into the type of costs
    for i in range(len(arrivals)):
        a, s, o = arrivals[i], prompts[i], min(outputs[i], last)
        if a >= last:
            costs[i], starts[i] = paid[0], a
            continue
        sizes[0], sizes[1] = (s + block) // block * block, (s + o + block - 1) // block * block
        sizes[2] = block
        low, high, size = sizes[0], sizes[1], sizes[2]
        first = block - s % block  # the token that fills the first block
        final = first + (o - 1 - first) // block * block + block if first < o else first
        begin, end = min(max(starts[i], a), last), last + 1
        best, at = paid[0], -1
        for step in range(2):  # the guess, and then all that can be as cheap
            for k in range(begin, begin + 1 if step == 0 else end):
                sizes[3] = k - a
                wait = unit * sizes[3]
                if at >= 0 and wait > best:
                    break
                blocks = strided[k + final] - strided[k + first]
                cost = wait + high * paid[k + o] - low * paid[k] - size * blocks
                if at < 0 or cost < best or (cost == best and k < at):
                    best, at = cost, k
            begin = a
        costs[i], starts[i] = best, at


class BlockScanner(Scanner):
    """Evaluates price vectors where whole blocks are paid for.

    Parameters
    ----------
    kinds, threads, should_stop
        As of `Scanner`.
    block
        Tokens of a block.
    """

    def __init__(
        self,
        kinds: Kinds,
        block: int,
        threads: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(kinds, threads, should_stop)
        self._block = block

    def least_costs(self, prices: Numbers, unit: int) -> tuple[Numbers, Integers]:
        """Return the least cost of every kind and its first cheapest start.

        As in `Scanner`, sums of integers may pass 64 bits, costs may not.
        """
        kinds, last = self.kinds, len(prices)
        kind = np.dtype(np.float64 if prices.dtype.kind == "f" else np.uint64)
        paid = Sums.of(prices.astype(kind, copy=False), unit, kinds.longest).paid
        strided: Numbers = np.zeros(len(paid) + self._block, dtype=paid.dtype)
        _add_strides(paid, self._block, strided)
        costs: Numbers = np.empty(len(kinds), dtype=kind)
        starts = self._guesses.copy()

        def work(part: slice) -> None:
            _scan_blocks(
                kinds.arrivals[part], kinds.prompts[part], kinds.outputs[part], self._block,
                paid, strided, last, kind.type(unit), costs[part], starts[part],
            )  # fmt: skip

        self._in_slices(work, last)
        self._guesses = starts
        return costs.astype(prices.dtype) + prices.dtype.type(unit) * kinds.outputs, starts

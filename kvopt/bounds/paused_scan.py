"""The cheapest active times of every kind of request at given prices, where it may pause.

A dynamic program over tokens and times, for the windows of `kvopt.bounds.paused_prices` in which
prices rise; elsewhere the scan of `kvopt.bounds.scan` says it all.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from kvopt.bounds.block_scan import BlockScanner
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.scan import Interrupted, Scanner
from kvopt.errors import TooLarge
from kvopt.incumbent.proofs import Prices
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats, Integers, Numbers

_LARGEST_TABLE = 2**30
"""Bytes that the table of tokens and times may take, in each thread."""
_SLICE = 3 * 10**8
"""Steps of the dynamic program between two questions whether to stop: half a second at most."""
_FEW = 10**6
"""Steps up to which threads are not worth their start."""


@compiled
def _windows(
    arrivals: Integers, outputs: Integers, costs: Numbers, prices: Numbers, unit: Any, last: int,
    windows: Integers,
) -> None:  # fmt: skip
    """Fill in the rounds after each arrival in which pauses may pay, 0 where they cannot."""
    rises = np.full(last + 1, last + 1, dtype=np.int64)  # next time with a higher price after it
    for time in range(last - 1, 0, -1):
        rises[time] = time if prices[time] > prices[time - 1] else rises[time + 1]
    for i in range(len(arrivals)):
        a, o = arrivals[i], outputs[i]
        windows[i] = 0
        if a < last:
            window = min(np.int64(costs[i] / unit) + 1, last - a + o)
            if rises[a + 1] < a + window:
                windows[i] = window


@compiled
def _paused(
    arrivals: Integers, prompts: Integers, outputs: Integers, counts: Integers, windows: Integers,
    starts: Integers, prices: Numbers, unit: Any, last: int, block: int, costs: Numbers,
    loads: Floats,
) -> None:  # fmt: skip
    """Lower the costs to those with pauses, and add the tokens that the cheapest times hold.

    Whole blocks of tokens count, which are no blocks where their size is 1.
    """
    up = block - 1
    spares = 1
    rows = 1
    for i in range(len(arrivals)):
        if windows[i] > 0:
            spares = max(spares, windows[i] - outputs[i] + 1)
            rows = max(rows, min(outputs[i], last - arrivals[i] + 1))
    least = np.empty(spares, dtype=prices.dtype)
    fresh = np.empty((rows, spares), dtype=np.bool_)
    for i in range(len(arrivals)):
        a, s, o = arrivals[i], prompts[i], outputs[i]
        best, at = costs[i], -1
        spare = windows[i] - o
        if windows[i] > 0:
            least[: spare + 1] = 0
            for j in range(1, min(o, last - a + 1)):
                held = prices.dtype.type((s + j + up) // block * block)
                lowest = least[0] + prices[a + j - 1] * held
                least[0] = lowest
                fresh[j, 0] = True
                for x in range(1, spare + 1):
                    here = least[x] + prices[a + j - 1 + x] * held
                    fresh[j, x] = here < lowest
                    lowest = min(lowest, here)
                    least[x] = lowest
            held = prices.dtype.type((s + o + up) // block * block)
            for x in range(spare + 1):
                cost = unit * (o + x) + least[x]
                if a + o + x <= last:
                    cost += prices[a + o + x - 1] * held
                if cost < best:
                    best, at = cost, x
        costs[i] = best
        if at < 0:
            for j in range(1, min(o, last - starts[i]) + 1):
                loads[starts[i] + j - 1] += counts[i] * ((s + j + up) // block * block)
            continue
        for j in range(o, 0, -1):
            if a + j > last:
                continue  # free, wherever it is: it does not move those before it
            if j < o:
                while not fresh[j, at]:
                    at -= 1
            if a + j + at <= last:
                loads[a + j + at - 1] += counts[i] * ((s + j + up) // block * block)


class PausedScanner:
    """Evaluates price vectors for the requests of one instance, which may pause.

    Parameters
    ----------
    kinds
        The requests.
    threads
        Threads that share the work.
    should_stop
        Asked at least twice a second; `kvopt.bounds.scan.Interrupted` is raised when it turns true.
    block
        Tokens of a block; whole blocks are paid for.
    pauses
        Whether requests may pause; without, and in tokens, `Scanner` is quicker.
    """

    def __init__(
        self,
        kinds: Kinds,
        threads: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
        *,
        block: int = 1,
        pauses: bool = True,
    ) -> None:
        self.kinds, self._block, self._pauses = kinds, block, pauses
        if block > 1:
            self.runs: Scanner = BlockScanner(kinds, block, threads, should_stop)
        else:
            self.runs = Scanner(kinds, threads, should_stop)
        self._threads, self._should_stop = threads, should_stop

    def lagrangian(self, prices: Floats, memory: int) -> tuple[float, None, Floats]:
        """Return ``L`` of prices and tokens above the memory over time; there are no starts."""
        costs, loads = self._least(prices, 1)
        value = float(self.kinds.counts @ costs) - memory * float(prices.sum())
        return value, None, loads - memory

    def least_sum(self, prices: Prices) -> int:
        """Return the sum of the least costs of all requests, exactly, where 64 bits hold each."""
        numerators = np.array(prices.numerators, dtype=np.int64)
        costs, _ = self._least(numerators, prices.denominator)
        pairs = zip(self.kinds.counts.tolist(), costs.tolist(), strict=True)
        return sum(count * cost for count, cost in pairs)

    def _least(self, prices: Numbers, unit: int) -> tuple[Numbers, Floats]:
        """Return the least cost of each kind, and the tokens held at the priced times."""
        kinds, last, one = self.kinds, len(prices), prices.dtype.type(unit)
        costs, starts, windows = self._without_pauses(prices, unit)
        self._refuse_large_tables(windows, last)
        padded = np.concatenate((prices, np.zeros(kinds.longest, dtype=prices.dtype)))

        def work(part: slice) -> Floats:
            loads: Floats = np.zeros(last)
            _paused(
                kinds.arrivals[part], kinds.prompts[part], kinds.outputs[part], kinds.counts[part],
                windows[part], starts[part], padded, one, last, self._block, costs[part], loads,
            )  # fmt: skip
            return loads

        loads: Floats = np.zeros(last)
        batches = list(self._batches(windows))
        several = len(batches[0]) > 1
        with ThreadPoolExecutor(self._threads) if several else nullcontext() as pool:
            for batch in batches:
                if self._should_stop():
                    raise Interrupted
                for part in map(work, batch) if pool is None else pool.map(work, batch):
                    loads += part
        return costs, loads

    def _without_pauses(self, prices: Numbers, unit: int) -> tuple[Numbers, Integers, Integers]:
        """Return the least costs of runs, their starts, and the windows in which pauses may pay."""
        kinds = self.kinds
        costs, starts = self.runs.least_costs(prices, unit)
        windows = np.zeros(len(kinds), dtype=np.int64)
        one = prices.dtype.type(unit)
        if self._pauses:
            _windows(kinds.arrivals, kinds.outputs, costs, prices, one, len(prices), windows)
        return costs, starts, windows

    def places(self, prices: Prices) -> int:
        """Return how many entries the tables of all requests have at these prices, about."""
        given = np.array(prices.numerators, dtype=float) / prices.denominator
        _, _, windows = self._without_pauses(given, 1)
        outputs = self.kinds.outputs
        return int((outputs * (windows - outputs + 1))[windows > 0].sum())

    def starts(self, prices: Prices) -> int:
        """Return how many starts of all kinds may be as cheap as the best one, about."""
        given = np.array(prices.numerators, dtype=float) / prices.denominator
        costs, _ = self.runs.least_costs(given, 1)
        waits = costs - self.kinds.outputs + 64
        left = np.clip(len(given) - self.kinds.arrivals, 0, None)
        return int(np.minimum(waits, left).sum())

    def _refuse_large_tables(self, windows: Integers, last: int) -> None:
        """Raise `TooLarge` where requests have too many tokens and too long windows."""
        outputs, wide = self.kinds.outputs, windows > 0
        paid = np.minimum(outputs, last - self.kinds.arrivals + 1)
        tokens, spare = (
            int(paid[wide].max(initial=0)),
            int((windows - outputs)[wide].max(initial=0)),
        )
        if (places := tokens * (spare + 1)) > _LARGEST_TABLE:
            raise TooLarge(f"pauses make {places:,} places, the limit is {_LARGEST_TABLE:,}")

    def _batches(self, windows: Integers) -> list[list[slice]]:
        """Return slices of about the same work, at most one for each thread at a time."""
        steps = np.cumsum((windows + 1) * windows.clip(1, self.kinds.outputs))
        total = int(steps[-1]) if len(steps) else 0
        threads = self._threads if total > _FEW else 1
        cuts = np.linspace(0, total, threads * -(-total // (_SLICE * threads)) + 1)[1:-1]
        edges = [0, *np.searchsorted(steps, cuts).tolist(), len(steps)]
        slices = [slice(*edge) for edge in pairwise(edges)]
        return [slices[first : first + threads] for first in range(0, len(slices), threads)]

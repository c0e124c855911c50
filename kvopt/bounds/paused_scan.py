"""Find the cheapest active times of every kind of request at given prices, with pauses.

A dynamic program over tokens and times, for the windows of `kvopt.bounds.prices` in which prices
rise; elsewhere `kvopt.bounds.scan` finds the least costs.
"""

from __future__ import annotations

import numpy as np

from kvopt.bounds.prices import Steps, windows_with_pauses
from kvopt.bounds.scan import Scanner
from kvopt.errors import TooLarge
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats, Integers, Numbers

_LARGEST_TABLE = 2**30
"""Bytes that the table of tokens and times may take, in each thread."""


@compiled
def _pause(
    kinds: tuple[Integers, Integers, Integers, Integers, Numbers],
    windows: Integers,
    prices: Numbers,
    priced: tuple[int, int],
    costs: Numbers,
    starts: Integers,
    loads: Floats,
) -> None:
    """Lower the costs to those with pauses, and add the tokens that the cheapest times hold.

    If a pause pays, the start of the run becomes the last priced time.
    """
    arrivals, prompts, outputs, counts, units = kinds
    last, block = priced
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
        if windows[i] == 0:
            continue
        a, s, o = arrivals[i], prompts[i], outputs[i]
        best, at = costs[i], -1
        spare = windows[i] - o
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
            cost = units[i] * (o + x) + least[x]
            if a + o + x <= last:
                cost += prices[a + o + x - 1] * held
            if cost < best:
                best, at = cost, x
        if at < 0:
            continue
        costs[i], starts[i] = best, last
        for j in range(o, 0, -1):
            if a + j > last:
                continue  # free, wherever it is: it does not move those before it
            if j < o:
                while not fresh[j, at]:
                    at -= 1
            if a + j + at <= last:
                loads[a + j + at - 1] += counts[i] * ((s + j + up) // block * block)


class PausedScanner(Scanner):
    """Evaluates price vectors for the requests of one instance, which may pause."""

    pauses = True

    def least_costs(
        self, prices: Numbers, unit: int, steps: Steps | None = None
    ) -> tuple[Numbers, Integers]:
        """Return the least cost of every kind, and its start or where it pauses the last time."""
        assert steps is None, "steps are of runs"
        costs, starts, _ = self._paused(prices, unit)
        return costs, starts

    def cheapest(self, prices: Floats) -> tuple[Numbers, Integers, Floats]:
        """Return the same as for runs; starts are those of `least_costs`."""
        costs, starts, loads = self._paused(prices, 1)
        return costs, starts, loads + self.kinds.loads(starts, len(prices))

    def _paused(self, prices: Numbers, unit: int) -> tuple[Numbers, Integers, Floats]:
        """Return the result of `least_costs`, and the tokens held by the requests that pause."""
        kinds, last = self.kinds, len(prices)
        costs, starts = super().least_costs(prices, unit)
        starts = starts.copy()  # starts of runs without pauses are guesses
        windows = windows_with_pauses(kinds, costs, prices, unit)
        wide = windows > 0
        tokens = int(np.minimum(kinds.outputs, last - kinds.arrivals + 1)[wide].max(initial=0))
        spare = int((windows - kinds.outputs)[wide].max(initial=0))
        if (places := tokens * (spare + 1)) > _LARGEST_TABLE:
            raise TooLarge(f"pauses make {places:,} places, the limit is {_LARGEST_TABLE:,}")
        padded = np.concatenate((prices, np.zeros(kinds.longest, dtype=prices.dtype)))
        units = prices.dtype.type(unit) * kinds.weights.astype(prices.dtype)
        priced = (last, kinds.block)

        def work(part: slice) -> Floats:
            loads: Floats = np.zeros(last)
            columns = (kinds.arrivals[part], kinds.prompts[part], kinds.outputs[part])
            parts = (*columns, kinds.counts[part], units[part])
            _pause(parts, windows[part], padded, priced, costs[part], starts[part], loads)
            return loads

        steps = (windows + 1) * windows.clip(1, kinds.outputs)
        return costs, starts, np.sum(self._in_slices(work, steps), axis=0)

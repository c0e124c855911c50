"""Shares of company in floats, to look for good ones; this loads numba.

What they prove is in `kvopt.bounds.seconds_evaluation`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kvopt.kernels.compiled import compiled

Floats = npt.NDArray[np.float64]


class Company:
    """What shares of company add, and where each prompt begins then."""

    def __init__(self, arrivals: Floats, alone: Floats, works: Floats) -> None:
        self._arrivals, self._alone, self._works = arrivals, alone, works
        times = np.concatenate([arrivals, arrivals + alone])
        self._order = np.argsort(times, kind="stable")
        self._times: Floats = times[self._order]
        self._after = np.searchsorted(self._times, arrivals, side="right")

    def evaluate(self, company: Floats, free: Floats) -> tuple[float, Floats, Floats]:
        """Return what company adds, how long each delays, and the works in each window."""
        changes = np.concatenate([company, -company])[self._order]
        prices = np.concatenate([[0.0], np.maximum(np.cumsum(changes), 0.0)])
        costs, delays = np.zeros(len(free)), np.zeros(len(free))
        _cheapest(self._times, prices, self._after, self._arrivals, self._works, free,
                  costs, delays)  # fmt: skip
        begins = self._arrivals + delays
        ranked = np.argsort(begins, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(self._works[ranked])])
        edges = np.searchsorted(begins[ranked], self._arrivals + self._alone)
        met = sums[edges] - sums[np.searchsorted(begins[ranked], self._arrivals)]
        return float(costs.sum() - company @ self._works), delays, met


@compiled
def _cheapest(
    times: Floats,
    prices: Floats,
    after: npt.NDArray[np.int64],
    arrivals: Floats,
    works: Floats,
    free: Floats,
    costs: Floats,
    delays: Floats,
) -> None:
    """Find the cheapest begin of each prompt."""
    for i in range(len(free)):
        best, delay = works[i] * prices[after[i]], 0.0
        for k in range(after[i], len(times)):
            late = times[k] - arrivals[i]
            if free[i] * late >= best:
                break
            cost = free[i] * late + works[i] * prices[k + 1]
            if cost < best:
                best, delay = cost, late
        costs[i], delays[i] = best, delay

"""Where the relaxation starts requests, without an LP: averages of Lagrangian minimisers.

With a price on memory every request has a cheapest start of its own (`kvopt.bounds.prices`).
At prices near the best ones, these starts averaged over the steps that led there approach an
optimal solution of the LP relaxation: the volume algorithm of Barahona and Anbil (2000).  It
needs no matrix, so it runs where the LP has millions of columns.

The first prices come from the fluid schedule, smallest volume first: while a request of volume
v is served, the price of a token falls by 1 / v a round, and it is 0 when nothing is left.
These are nearly the best ones already.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kvopt.errors import TooLarge
from kvopt.instance import Instance

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Kind = tuple[int, int, int]
"""Arrival, prompt and output: what requests of one kind have in common."""

STEPS = 30
"""Steps along the averaged excess of memory; more hardly move the order."""

_WEIGHT = 0.1
"""Share of the newest minimisers in the average."""
_STEP = 0.002
"""First step, as a share of the bound; longer after successes, shorter after failures."""
_STARTS = 1000
"""Starts that are tried for a request, evenly spread over the horizon."""
_CHUNK = 2_000_000
"""Costs that are held in memory at a time."""
_LAST_TIME = 20_000_000
"""Times that may have a price."""


@dataclass(frozen=True)
class Averaged:
    """Minimisers of a sequence of Lagrangian subproblems.

    Parameters
    ----------
    kinds
        The kinds of requests.
    starts
        A row for each step: the cheapest start of each kind.
    weights
        Of the steps in the average; they sum to 1.
    """

    kinds: list[Kind]
    starts: Integers
    weights: Floats


def averaged_minimisers(instance: Instance, end: int, steps: int = STEPS) -> Averaged:
    """Return minimisers of subproblems with prices on the times up to ``end``."""
    if end > _LAST_TIME:
        raise TooLarge(f"{end:,} times are more than the limit of {_LAST_TIME:,}")
    problem = _Subproblem(instance, end)
    prices = fluid_prices(instance, end)
    starts, best = problem.solve(prices)
    minimisers, weights = [starts], np.ones(1)
    average, step, failures = problem.excess(starts), _STEP, 0
    for _ in range(steps):
        steepness = float(average @ average)
        if steepness == 0:
            break
        trial = np.maximum(prices + step * max(best, 1.0) / steepness * average, 0.0)
        starts, value = problem.solve(trial)
        minimisers.append(starts)
        weights = np.append((1 - _WEIGHT) * weights, _WEIGHT)
        average = (1 - _WEIGHT) * average + _WEIGHT * problem.excess(starts)
        if value > best:
            prices, best, step, failures = trial, value, 1.1 * step, 0
        else:
            failures += 1
            step = step / 1.5 if failures % 10 == 0 else step
    return Averaged(problem.kinds, np.array(minimisers), weights)


class _Subproblem:
    """Cheapest starts of all kinds of requests at given prices, on a grid of rounds."""

    def __init__(self, instance: Instance, end: int) -> None:
        counts = Counter((r.arrival, r.prompt, r.output) for r in instance)
        self.kinds = list(counts)
        self.counts = np.array(list(counts.values()), dtype=float)
        self.arrivals, self.prompts, self.outputs = np.array(self.kinds, dtype=np.int64).T
        self.memory = instance.memory
        self.end = end
        self.grid = np.arange(0, end + 1, max(1, -(-end // _STARTS)))

    def solve(self, prices: Floats) -> tuple[Integers, float]:
        """Return the cheapest starts and the value of the Lagrangian."""
        sums = np.concatenate(([0.0], prices.cumsum()))
        weighted = np.concatenate(([0.0], (prices * np.arange(1, self.end + 1)).cumsum()))
        starts = np.empty(len(self.kinds), dtype=np.int64)
        costs = np.empty(len(self.kinds))
        rows = max(1, _CHUNK // len(self.grid))
        for first in range(0, len(self.kinds), rows):
            part = slice(first, first + rows)
            k = np.maximum(self.grid, self.arrivals[part, None])
            ends = np.minimum(k + self.outputs[part, None], self.end)
            paid = sums[ends] - sums[k]
            cost = k + (self.prompts[part, None] - k) * paid + weighted[ends] - weighted[k]
            cheapest = cost.argmin(axis=1)[:, None]
            starts[part] = np.take_along_axis(k, cheapest, 1)[:, 0]
            costs[part] = np.take_along_axis(cost, cheapest, 1)[:, 0]
        latency = self.counts @ (costs + self.outputs - self.arrivals)
        return starts, float(latency) - self.memory * float(prices.sum())

    def excess(self, starts: Integers) -> Floats:
        """Return the tokens above the memory at each time; negative where there is room."""
        size = self.end + 1
        begins = np.minimum(starts + 1, size)
        ends = np.minimum(starts + self.outputs + 1, size)

        def total(values: Floats) -> Floats:
            changes = np.bincount(begins, values, size + 1) - np.bincount(ends, values, size + 1)
            return np.asarray(changes.cumsum()[1:size])

        offsets, times = self.counts * (self.prompts - starts), np.arange(1, size)
        return total(offsets) + times * total(self.counts) - self.memory


def fluid_prices(instance: Instance, end: int) -> Floats:
    """Return the price of a token at the times ``1 .. end`` in the fluid schedule."""
    edges, prices = [float(end)], [0.0]
    for begin, stop, volume in reversed(list(_fluid(instance))):
        if stop < edges[-1]:  # idle until what comes next
            edges += [stop, stop]
            prices += [0.0, 0.0]
        edges.append(begin)
        prices.append(prices[-1] + (stop - begin) / volume)
    return np.asarray(np.interp(np.arange(1, end + 1) - 0.5, edges[::-1], prices[::-1]))


def _fluid(instance: Instance) -> Iterator[tuple[float, float, int]]:
    """Yield from when to when a request of some volume is served, the smallest one first."""
    arriving = sorted(((r.arrival, r.volume) for r in instance), reverse=True)
    waiting: list[tuple[int, float]] = []  # volume, what is left of it
    clock = 0.0
    while arriving or waiting:
        if not waiting:
            clock = max(clock, float(arriving[-1][0]))
        while arriving and arriving[-1][0] <= clock:
            volume = arriving.pop()[1]
            heapq.heappush(waiting, (volume, float(volume)))
        volume, left = heapq.heappop(waiting)
        stop = clock + left / instance.memory
        if arriving and stop > arriving[-1][0]:
            stop = float(arriving[-1][0])
            heapq.heappush(waiting, (volume, left - (stop - clock) * instance.memory))
        yield clock, stop, volume
        clock = stop

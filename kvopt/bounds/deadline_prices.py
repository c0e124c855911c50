"""Prices that prove a ceiling on attained deadlines: of runs, and of cheapest times."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from kvopt.incumbent.proofs import DeadlinePrices
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Floats, Integers, Numbers, columns_of
from kvopt.problem.instance import Instance

_CELLS_OF_A_DEADLINE = 32
"""Cells of equal prices in a typical deadline."""
_LEAST_CELLS, _MOST_CELLS = 64, 1024
_BITS = 24
"""Bits of the largest numerator."""


@dataclass(frozen=True)
class Window:
    """When requests may be active, from the first arrival on, and cells of equal prices.

    Parameters
    ----------
    instance
        The requests that can attain their deadlines.
    first
        The first arrival.
    begins, ends
        Begin and end of the window of each request.
    width, count
        Times of a cell, and the number of cells.
    """

    instance: Instance
    first: int
    begins: Integers
    ends: Integers
    width: int
    count: int

    @classmethod
    def of(
        cls,
        instance: Instance,
        arrivals: Sequence[int],
        allowed: Sequence[int],
        can: list[int],
        busy: int,
        tail: int,
    ) -> Window:
        """Return the window of the requests that can attain; without waiting it needs no prices.

        A run may last beyond its deadline by ``tail``, and pays for that.
        """
        begun = [arrivals[i] for i in can]
        first = min(begun, default=0)
        ends = [arrivals[i] + allowed[i] - first for i in can]
        last = min(max(ends, default=0) + tail, max(begun, default=0) - first + busy)
        typical = max(sorted(allowed[i] for i in can)[len(can) // 2] if can else 1, 1)
        wanted = max(_LEAST_CELLS, _CELLS_OF_A_DEADLINE * last // typical)
        wanted = min(wanted, _MOST_CELLS)
        widths = {max(1, -(-last // count)) for count in range(wanted, wanted * 5 // 4)}
        width = min(widths, key=lambda width: (-last % width, -width))  # the last one is full
        some = replace(instance, requests=tuple(instance.requests[i] for i in can))
        if not fits(max(ends, default=0)):
            nothing = np.zeros(0, dtype=np.int64)
            return cls(some, first, nothing, nothing, 1, 0)
        begins = np.array([arrival - first for arrival in begun], dtype=np.int64)
        return cls(some, first, begins, np.array(ends, dtype=np.int64), width, -(-last // width))

    @property
    def last(self) -> int:
        """Return the last time of a cell."""
        return self.count * self.width

    def borders(self) -> list[int]:
        """Return where cells begin and end."""
        return [self.first + cell * self.width for cell in range(self.count + 1)]


class Kind:
    """Common part of the kinds of ceilings: prices and their value."""

    lines: tuple[int, ...] = ()
    volumes: Floats

    def __init__(self, window: Window) -> None:
        self.window = window
        self.memory = window.instance.memory
        self.capacity = float(window.instance.workers * window.width)
        """Capacity of a cell, in the unit of volumes."""

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return the payment of each request, and the tokens in cells of those that pay below 1."""
        raise NotImplementedError

    def integer_costs(self, proof: DeadlinePrices) -> Iterator[int]:
        """Yield the payment of each request, times the denominator."""
        raise NotImplementedError

    def first_prices(self) -> Floats:
        """Return the same price at all times, the best if only volumes counted."""
        sizes = np.sort(self.volumes)
        total = self.capacity * self.window.count
        place = min(int(np.searchsorted(np.cumsum(sizes), total)), len(sizes) - 1)
        return np.full(self.window.count, 1.0 / sizes[place])

    def evaluate(self, prices: Floats) -> tuple[float, Floats, Floats]:
        """Return minus the ceiling in floats, the payment of each request, and a slope."""
        costs, loads = self.least(prices)
        value = float(np.maximum(0.0, 1.0 - costs).sum() + self.capacity * prices.sum())
        return -value, costs, loads - self.capacity

    def rounded(self, prices: Floats) -> DeadlinePrices:
        """Return prices in integers, equal ones next to each other as one."""
        prices = prices / self.unit
        most, volume = float(prices.max(initial=0.0)), float(self.volumes.max(initial=1.0))
        if not most:
            return DeadlinePrices((), (), 1, self.lines)
        bits = _BITS - math.ceil(math.log2(most))
        if not self.lines:  # costs of runs have to fit into 64 bits
            bits = min(bits, 60 - math.ceil(math.log2(most * volume + 1.0)))
        scale = 1 << max(bits, 0)
        cells = zip(np.rint(prices * float(scale)).tolist(), self.window.borders(), strict=False)
        rows = [(next(group)[1], int(price)) for price, group in groupby(cells, lambda c: c[0])]
        borders = [*(border for border, _ in rows), self.window.borders()[-1]]
        return DeadlinePrices(tuple(borders), tuple(price for _, price in rows), scale, self.lines)

    unit = 1.0
    """The unit of volumes over that in integers."""

    def proved(self, proof: DeadlinePrices) -> int:
        """Return the ceiling that prices prove, in integers."""
        one = proof.denominator
        if not proof.numerators:
            return len(self.window.instance)
        total = sum(max(0, one - cost) for cost in self.integer_costs(proof))
        total += self.window.instance.workers * self.memory * proof.paid
        return total // one


class OfRuns(Kind):
    """Prices in rounds, for requests that run to their end once started."""

    def __init__(self, window: Window, latest: Integers) -> None:
        super().__init__(window)
        requests = window.instance.requests
        self.capacity *= self.memory
        _, prompts, outputs = columns_of(requests)
        self._shape = (window.begins, prompts, outputs, latest)
        self.volumes = np.array([r.volume for r in requests], dtype=float)

    def _cheapest(self, prices: Numbers) -> tuple[Numbers, Integers]:
        from kvopt.bounds.deadline_costs import Cells, least_costs  # it loads numba

        costs, starts = np.zeros(len(self.volumes), dtype=prices.dtype), self._shape[3].copy()
        least_costs(self._shape, Cells.of(prices, self.window.width), costs, starts)
        return costs, starts

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return payments and holdings of the cheapest runs."""
        from kvopt.bounds.deadline_costs import loads_of

        costs, starts = self._cheapest(prices)
        starts[costs >= 1.0] = -1
        loads = np.zeros(len(prices))
        loads_of(self._shape[1], self._shape[2], starts, self.window.width, loads)
        return costs, loads

    def integer_costs(self, proof: DeadlinePrices) -> Iterator[int]:
        """Yield the payments of the cheapest runs."""
        sizes = np.diff(proof.times) // self.window.width
        costs, _ = self._cheapest(np.repeat(np.array(proof.numerators, dtype=np.int64), sizes))
        yield from costs.tolist()


class OfCheapestTimes(Kind):
    """Prices with which a request is active at its cheapest times.

    Parameters
    ----------
    window
        The requests, and when.
    amounts, tops, slope
        How long each request is active, its tokens at the cheapest time, and by how much these
        fall from one unit of time to the next: 1 in rounds, 0 in seconds.
    lines
        Lines of the batch-time model, in seconds.
    """

    def __init__(
        self,
        window: Window,
        amounts: list[int],
        tops: list[int],
        slope: int,
        lines: tuple[int, ...] = (),
    ) -> None:
        super().__init__(window)
        self.lines, self._slope = lines, slope
        self.unit = float(self.memory) if lines else 1.0
        self._integers = list(zip(amounts, tops, strict=True))
        self.capacity *= self.memory / self.unit
        self._amounts = np.array(amounts, dtype=float) / self.unit
        self._tops = np.array(tops, dtype=float)
        held = self._tops - slope * (self._amounts - 1.0) / 2.0
        self.volumes = self._amounts * held

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return costs and holdings of the cheapest times."""
        from kvopt.bounds.deadline_costs import fill_cheapest  # it loads numba

        costs, loads = np.zeros(len(self.volumes)), np.zeros(len(prices))
        begins, ends = self.window.begins.astype(float), self.window.ends.astype(float)
        requests = (begins, ends, self._amounts, self._tops)
        width = float(self.window.width)
        fill_cheapest(requests, float(self._slope), prices, width, costs, loads)
        return costs, loads

    def integer_costs(self, proof: DeadlinePrices) -> Iterator[int]:
        """Yield the costs of the cheapest times."""
        rate = self.memory if self.lines else 1
        borders = [time - self.window.first for time in proof.times]
        cells = list(zip(borders, borders[1:], proof.numerators, strict=False))
        windows = zip(self.window.begins.tolist(), self.window.ends.tolist(), strict=True)
        for (left, top), (begin, end) in zip(self._integers, windows, strict=True):
            part = cells[max(bisect_right(borders, begin) - 1, 0) : bisect_left(borders, end)]
            sizes = [(price, rate * (min(end, b) - max(begin, a))) for a, b, price in part]
            free = rate * (end - begin) - sum(size for _, size in sizes)
            cost = 0
            for price, size in sorted([(0, free), *sizes]):
                if left <= 0:
                    break
                size = min(size, left)
                cost += price * (size * top - self._slope * (size * (size - 1) // 2))
                top -= self._slope * size
                left -= size
            yield cost

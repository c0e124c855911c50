"""Prices that prove a ceiling on attained service levels: of runs, and of cheapest times."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from kvopt.incumbent.proofs import SloPrices
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Floats, Integers, Numbers, columns_of
from kvopt.problem.instance import Instance

CELLS_OF_A_WINDOW = 32
"""Cells of equal prices in a typical window."""
_LEAST_CELLS, _MOST_CELLS = 64, 4096
_BITS = 24
"""Bits of the largest numerator."""


class Span(NamedTuple):
    """Times from its arrival by which the tokens of a request that attains are due.

    Parameters
    ----------
    early
        When its first token is due.
    end
        When its last token is due; both infinite if they never are.
    rest
        Limit of the time from its first to its last token.
    """

    early: float
    end: float
    rest: float


@dataclass(frozen=True)
class Window:
    """When requests may be active, from the first arrival on, and cells of equal prices.

    Parameters
    ----------
    instance
        The requests that can attain.
    first
        The first arrival.
    begins, early, ends
        When each request arrives, and when its first and its last token are due.
    width, count
        Times of a cell, and the number of cells.
    """

    instance: Instance
    first: int
    begins: Integers
    early: Integers
    ends: Integers
    width: int
    count: int

    @classmethod
    def of(
        cls,
        instance: Instance,
        arrivals: Sequence[int],
        spans: Mapping[int, Span],
        busy: int,
        cells: int = CELLS_OF_A_WINDOW,
    ) -> Window:
        """Return the window of the requests with a span, which take so long one by one.

        After the last arrival and this time nothing has to wait, so it needs no prices.  A typical
        request has so many cells in which it may be active.
        """
        some = replace(instance, requests=tuple(instance.requests[i] for i in spans))
        first = min((arrivals[i] for i in spans), default=0)
        begins = [arrivals[i] - first for i in spans]
        idle = max(begins, default=0) + busy
        # Far beyond all prices it does not matter when a token is due.
        rows = list(zip(begins, spans.values(), strict=True))
        early = [int(min(begin + span.early, 3 * idle)) for begin, span in rows]
        ends = [int(min(begin + span.end, 3 * idle)) for begin, span in rows]
        last = min(max(ends, default=0), idle)
        lengths = sorted(end - begin for begin, end in zip(begins, early, strict=True))
        typical = lengths[len(rows) // 2] if rows else 1
        wanted = max(_LEAST_CELLS, min(cells * last // typical, _MOST_CELLS))
        widths = {max(1, -(-last // count)) for count in range(wanted, wanted * 5 // 4)}
        width = min(widths, key=lambda width: (-last % width, -width))  # the last one is full
        if not fits(max(ends, default=0)):
            nothing = np.zeros(0, dtype=np.int64)
            return cls(some, first, nothing, nothing, nothing, 1, 0)
        columns = np.array([begins, early, ends], dtype=np.int64)
        return cls(some, first, columns[0], columns[1], columns[2], width, -(-last // width))

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

    def integer_costs(self, proof: SloPrices) -> Iterator[int]:
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

    def rounded(self, prices: Floats) -> SloPrices:
        """Return prices in integers, equal ones next to each other as one."""
        prices = prices / self.unit
        most, volume = float(prices.max(initial=0.0)), float(self.volumes.max(initial=1.0))
        if not most:
            return SloPrices((), (), 1, self.lines)
        bits = _BITS - math.ceil(math.log2(most))
        if not self.lines:  # costs of runs have to fit into 64 bits
            bits = min(bits, 60 - math.ceil(math.log2(most * volume + 1.0)))
        scale = 1 << max(bits, 0)
        cells = zip(np.rint(prices * float(scale)).tolist(), self.window.borders(), strict=False)
        rows = [(next(group)[1], int(price)) for price, group in groupby(cells, lambda c: c[0])]
        borders = [*(border for border, _ in rows), self.window.borders()[-1]]
        return SloPrices(tuple(borders), tuple(price for _, price in rows), scale, self.lines)

    unit = 1.0
    """The unit of volumes over that in integers."""

    def proved(self, proof: SloPrices) -> int:
        """Return the ceiling that prices prove, in integers."""
        one = proof.denominator
        if not proof.numerators:
            return len(self.window.instance)
        total = sum(max(0, one - cost) for cost in self.integer_costs(proof))
        total += self.window.instance.workers * self.memory * proof.paid
        return total // one


class OfRuns(Kind):
    """Prices in rounds, for requests that run to their end once started."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        requests = window.instance.requests
        self.capacity *= self.memory
        _, prompts, outputs = columns_of(requests)
        self._shape = (window.begins, prompts, outputs, window.early - 1)
        self.volumes = np.array([r.volume for r in requests], dtype=float)

    def _cheapest(self, prices: Numbers) -> tuple[Numbers, Integers]:
        from kvopt.bounds.slo_costs import Cells, least_costs  # it loads numba

        costs, starts = np.zeros(len(self.volumes), dtype=prices.dtype), self._shape[3].copy()
        least_costs(self._shape, Cells.of(prices, self.window.width), costs, starts)
        return costs, starts

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return payments and holdings of the cheapest runs."""
        from kvopt.bounds.slo_costs import loads_of

        costs, starts = self._cheapest(prices)
        starts[costs >= 1.0] = -1
        loads = np.zeros(len(prices))
        loads_of(self._shape[1], self._shape[2], starts, self.window.width, loads)
        return costs, loads

    def integer_costs(self, proof: SloPrices) -> Iterator[int]:
        """Yield the payments of the cheapest runs."""
        sizes = np.diff(proof.times) // self.window.width
        costs, _ = self._cheapest(np.repeat(np.array(proof.numerators, dtype=np.int64), sizes))
        yield from costs.tolist()


class OfCheapestTimes(Kind):
    """Prices with which a request is active at its cheapest times, some of them before `early`.

    Parameters
    ----------
    window
        The requests, and when.
    amounts, later
        How long each request is active, and how much of it may be after its first token.
    tops, slope
        Its tokens at the cheapest time, and by how much these fall from one unit of time to the
        next: 1 in rounds, 0 in seconds.
    lines
        Lines of the batch-time model, in seconds.
    """

    def __init__(
        self,
        window: Window,
        amounts: list[int],
        later: list[int],
        tops: list[int],
        slope: int,
        lines: tuple[int, ...] = (),
    ) -> None:
        super().__init__(window)
        self.lines, self._slope = lines, slope
        self._times = window.begins, window.early, window.ends
        self.unit = float(self.memory) if lines else 1.0
        self._integers = list(zip(amounts, later, tops, strict=True))
        self.capacity *= self.memory / self.unit
        self._amounts = np.array(amounts, dtype=float) / self.unit
        self._later = np.array(later, dtype=float) / self.unit
        self._tops = np.array(tops, dtype=float)
        held = self._tops - slope * (self._amounts - 1.0) / 2.0
        self.volumes = self._amounts * held

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return costs and holdings of the cheapest times."""
        from kvopt.bounds.slo_costs import Windows, fill_cheapest  # it loads numba

        costs, loads = np.zeros(len(self.volumes)), np.zeros(len(prices))
        begins, early, ends = (column.astype(float) for column in self._times)
        windows = Windows(begins, early, ends, self._amounts, self._later, self._tops)
        width = float(self.window.width)
        fill_cheapest(windows, float(self._slope), prices, width, costs, loads)
        return costs, loads

    def integer_costs(self, proof: SloPrices) -> Iterator[int]:
        """Yield the costs of the cheapest times."""
        rate, last = self.memory if self.lines else 1, self.window.last
        borders = [time - self.window.first for time in proof.times]
        cells = list(zip(borders, borders[1:], proof.numerators, strict=False))
        windows = zip(*(column.tolist() for column in self._times), strict=True)
        for (left, later, top), (begin, early, end) in zip(self._integers, windows, strict=True):
            part = cells[max(bisect_right(borders, begin) - 1, 0) : bisect_left(borders, end)]
            part.append((last, max(end, last), 0))  # time without a price
            sizes = [
                (price, is_late, rate * (min(b, until) - max(a, since)))
                for a, b, price in part
                for is_late, since, until in ((False, begin, early), (True, early, end))
                if min(b, until) > max(a, since)
            ]
            cost = 0
            for price, is_late, size in sorted(sizes):
                size = min(size, left, later if is_late else left)
                cost += price * (size * top - self._slope * (size * (size - 1) // 2))
                top -= self._slope * size
                left -= size
                later -= size * is_late
            yield cost

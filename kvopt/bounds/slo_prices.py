"""Prices of times that prove a ceiling on attained service levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kvopt.bounds.cheapest_services import CellPrices, RoundColumns, Used
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import denominator_for, payments, rounded, rounded_prices
from kvopt.incumbent.proofs import MachinePrices, PriceProof
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance

CELLS_OF_A_WINDOW = 32
"""Cells of equal prices in a typical window."""
_LEAST_CELLS, _LIMIT_OF_CELLS = 64, 4096
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
class ActiveTimes:
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
    ) -> ActiveTimes:
        """Return the times of the requests with a span, which take so long one by one.

        After the last arrival and this time nothing has to wait, so it needs no prices.  A typical
        request has so many cells in which it may be active.
        """
        chosen = replace(instance, requests=tuple(instance.requests[i] for i in spans))
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
        wanted = max(_LEAST_CELLS, min(cells * last // typical, _LIMIT_OF_CELLS))
        widths = {max(1, -(-last // count)) for count in range(wanted, wanted * 5 // 4)}
        width = min(widths, key=lambda width: (-last % width, -width))  # the last one is full
        count = -(-last // width)
        if not fits(max(ends, default=0)):
            begins, early, ends, width, count = [], [], [], 1, 0
        columns = np.array([begins, early, ends], dtype=np.int64)
        return cls(chosen, first, columns[0], columns[1], columns[2], width, count)

    @property
    def last(self) -> int:
        """Return the last time of a cell."""
        return self.count * self.width


class PricesOfTime:
    """Prices of times, of machine time in seconds and of tokens in rounds, and their ceiling.

    Times count from the first arrival.

    Parameters
    ----------
    times
        The requests, and when they may be active.
    volumes
        What they use in all: tokens in rounds, or machine time, times the memory.
    lines, reach
        Lines of the batch-time model, in seconds, and the reach of `MachinePrices`.
    """

    def __init__(
        self, times: ActiveTimes, volumes: Floats, lines: tuple[int, ...] = (), reach: int = 0
    ) -> None:
        self.times, self.volumes, self.lines, self.reach = times, volumes, lines, reach
        self._capacity = float(times.instance.total_memory * times.width)  # of a cell

    def cheapest(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return the payment of each request, and the use of cells by those that pay below 1."""
        raise NotImplementedError

    def payments(self, proof: PriceProof) -> tuple[Iterable[int], int]:
        """Return the payment of each request and the price of all capacity, over the unit."""
        raise NotImplementedError

    def first_prices(self) -> Floats:
        """Return the same price at all times, the best if only volumes counted.

        Requests that pay less than 1 at it fill all cells.
        """
        sizes = np.sort(self.volumes)
        total = self._capacity * self.times.count
        place = min(int(np.searchsorted(np.cumsum(sizes), total)), len(sizes) - 1)
        return np.full(self.times.count, 1.0 / sizes[place])

    def evaluate(self, prices: Floats) -> tuple[float, Floats, Floats]:
        """Return minus the ceiling in floats, the payment of each request, and a slope."""
        costs, loads = self.cheapest(prices)
        value = float(np.maximum(0.0, 1.0 - costs).sum() + self._capacity * prices.sum())
        return -value, costs, loads - self._capacity

    def rounded(self, prices: Floats) -> PriceProof:
        """Return prices in integers."""
        unit = self._denominator(prices)
        if not self.lines:
            return rounded_prices(self._at_all_times(prices), unit)
        numerators = rounded(prices, unit).astype(np.int64).tolist()
        borders = range(0, self.times.last + 1, self.times.width)
        machine = MachinePrices(tuple(borders), tuple(numerators), self.lines, self.reach)
        return PriceProof(unit, (machine,))

    def _denominator(self, prices: Floats) -> int:
        return scale_of(float(prices.max(initial=0.0)) or 1.0)

    def _at_all_times(self, prices: Floats) -> Floats:
        return np.repeat(prices, self.times.width)

    def proved(self, proof: PriceProof) -> int:
        """Return the ceiling that prices prove, in integers."""
        costs, paid = self.payments(proof)
        return (sum(max(0, proof.unit - cost) for cost in costs) + paid) // proof.unit


class OfRuns(PricesOfTime):
    """Prices in rounds, for requests that run to their end once started."""

    def __init__(self, times: ActiveTimes) -> None:
        from kvopt.bounds.scan import Scanner  # it loads numba

        requests = times.instance.requests
        super().__init__(times, np.array([r.volume for r in requests], dtype=float))
        _, prompts, outputs = columns_of(requests)
        ones = np.ones_like(prompts)
        self._kinds = Kinds(times.begins, prompts, outputs, ones, 0 * ones, latest=times.early - 1)
        self._scanner = Scanner(self._kinds)

    def cheapest(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return payments and holdings of the cheapest runs."""
        costs, starts, _ = self._scanner.least_costs(self._at_all_times(prices), 1)
        paying = replace(self._kinds, counts=(costs < 1.0).astype(np.int64))
        held = paying.loads(starts, self.times.last)
        loads: Floats = np.add.reduceat(held, np.arange(0, self.times.last, self.times.width))
        return costs, loads

    def payments(self, proof: PriceProof) -> tuple[Iterable[int], int]:
        """Return the payments of the cheapest runs."""
        costs, paid = payments(self.times.instance, proof, self._kinds, self._scanner)
        return costs.tolist(), paid

    def _denominator(self, prices: Floats) -> int:
        finest = denominator_for(self._kinds, self._at_all_times(prices), 60.0)
        return min(super()._denominator(prices), finest)


class OfCheapestTimes(PricesOfTime):
    """Prices with which a request is active at its cheapest times, some of them before `early`.

    Parameters
    ----------
    times
        The requests, and when they may be active.
    amounts, later
        How long each request is active, and how much of it may be after its first token.
    tops, slope
        Its tokens at the cheapest time, and by how much these fall from one unit of time to the
        next: 1 in rounds, 0 in seconds.
    lines, reach
        As of `PricesOfTime`.
    """

    def __init__(
        self,
        times: ActiveTimes,
        amounts: list[int],
        later: list[int],
        tops: list[int],
        slope: int,
        lines: tuple[int, ...] = (),
        reach: int = 0,
    ) -> None:
        whole, late, top = (np.array(column, dtype=float) for column in (amounts, later, tops))
        super().__init__(times, whole * (top - slope * (whole - 1.0) / 2.0), lines, reach)
        self._slope, self._rate = slope, times.instance.memory if lines else 1
        self._integers = list(zip(amounts, later, tops, strict=True))
        # As amounts are: in seconds times the memory.
        ends = self._rate * np.array([times.begins, times.early, times.ends], dtype=float)
        self._windows = *ends, late, top
        # Rounds of length 1, without tokens, prompts or nodes.
        none, no_rows = np.zeros(len(whole)), np.zeros((0, len(whole)))
        shape = none, none, whole, np.ones(len(whole)), none, none, no_rows, no_rows, none, no_rows
        self._columns = RoundColumns(*shape)

    def cheapest(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return costs and holdings of the cheapest times."""
        from kvopt.bounds.slo_costs import Windows, fill_cheapest  # it loads numba

        columns, width = self._columns, float(self._rate * self.times.width)
        cells = CellPrices(prices, 0.0 * prices, np.zeros((0, len(prices))))
        costs, used = np.zeros(len(self.volumes)), Used.of(columns, cells)
        windows, slope = Windows(*self._windows), float(self._slope)
        fill_cheapest(windows, columns, 0.0 * costs, slope, cells, width, costs, used)
        return costs, used.rounds

    def payments(self, proof: PriceProof) -> tuple[Iterable[int], int]:
        """Return the costs of the cheapest times."""
        # In rounds each time of a cell has the price of the cell.
        times, width, (prices,) = self.times, self.times.width, proof.resources
        numbers = (
            prices.numerators if isinstance(prices, MachinePrices) else proof.numerators[::width]
        )
        cells = [(k * width, (k + 1) * width, price) for k, price in enumerate(numbers)]
        # After the last price time is free.
        cells.append((len(cells) * width, 2**62, 0))
        windows = zip(*(c.tolist() for c in (times.begins, times.early, times.ends)), strict=True)
        costs = (
            cheapest_cost(
                window,
                cells[min(window[0] // width, len(numbers)) : -(-window[2] // width)],
                *amounts,
                self._slope,
                self._rate,
            )
            for amounts, window in zip(self._integers, windows, strict=True)
        )
        return costs, times.instance.total_memory * width * sum(numbers)


def cheapest_cost(
    window: tuple[int, int, int],
    cells: Iterable[tuple[int, int, int]],
    amount: int,
    later: int,
    top: int = 1,
    slope: int = 0,
    rate: int = 1,
) -> int:
    """Return the cost of the cheapest amount of a window's time, ``rate`` of it in a unit.

    Cells have a begin, an end and a price.  A window is from the arrival until the first and the
    last token are due; no more than ``later`` is between these two.  At the cheapest time ``top``
    tokens are held, then ``slope`` less at each next one.
    """
    begin, early, end = window
    sizes = [
        (price, is_late, rate * (min(b, until) - max(a, since)))
        for a, b, price in cells
        for is_late, since, until in ((False, begin, early), (True, early, end))
        if min(b, until) > max(a, since)
    ]
    # One limit is of a part of the other's time, so the cheapest times first are best.
    cost = 0
    for price, is_late, size in sorted(sizes):
        size = min(size, amount, later if is_late else amount)
        cost += price * (size * top - slope * (size * (size - 1) // 2))
        top -= slope * size
        amount -= size
        later -= size * is_late
    return cost


def scale_of(highest: float, bits: int = 0) -> int:
    """Return a denominator of prices up to this one: a power of two of so many bits or more."""
    return 1 << max(_BITS - math.ceil(math.log2(highest)), bits)

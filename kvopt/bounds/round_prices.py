"""Evaluate prices of shared rounds in floats: the bound as a concave function, and its slope.

A slope is the use of each cell by all requests, less its capacity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from kvopt.bounds.backlog import FINE, Charged, Queue
from kvopt.bounds.cheapest_services import (
    CellGrid,
    CellPrices,
    Payments,
    RoundColumns,
    Shares,
    Used,
    add_services,
    in_kind,
)
from kvopt.bounds.fluid import machine_prices
from kvopt.bounds.gradient_ascent import Point
from kvopt.bounds.prefix_shares import BlockUsers, processed
from kvopt.bounds.seconds_evaluation import FULL
from kvopt.bounds.shared_rounds import (
    Rates,
    evaluated,
    largest_number,
    payments_of_rounds,
    queue_of,
    row_slopes,
    windows,
    works_of,
)
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.loop_calls import map_ranges, quick
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance

_UNIT_BITS = (6, 18)
"""Binary logarithms of the denominators of prices."""
_LARGEST_BITS, _SPARE_BITS = 61, 5
"""Bits of costs in compiled loops, and by how many these exceed the longest wait."""
_PER_REQUEST = 32
"""Cells in the mean time of a request alone."""
_MOST_CELLS = 40_000
"""Limit of the cells, which are in the file of a proof."""
_MOST_VISITS = 4_000_000
"""Limit of the cells in which requests wait or run, which a check visits one by one."""
_LOWEST = 0.02
"""Lowest height of prices of rounds: at 0 they would have no slope."""
_SPAN = 1.5
"""First time in which prices of rounds fall to 0, in times alone."""
_COARSER = 4
"""Factor of the length of cells with block shares, which need more steps."""
_PERIODS = 192
"""Periods in which weights of block shares may differ, on the finest grid."""
_WEIGHT, _LARGEST_LOG, _FASTER = 16.0, 6.0, 6.0
"""First weight of block shares, largest logarithm of its change, and how much faster it moves."""
_BACKLOG = (0.0, 0.0, 0.05, 0.15, 0.25, 0.3, 0.25)
"""First prices of the backlog in each part of a window, over its share."""
_PARTS = len(_BACKLOG)
_BACKLOG_STEP = 0.4
"""Step of prices of the backlog, over that of shares."""
_LEVELS = -12, 11
"""Prices of waiting are these powers of the fourth root of two over the mean work of a prompt."""
_GROWN = 0.95
"""First share of interference in windows that grow, at a low load."""
_QUIET = 0.35
"""Windows may grow up to this load of prompts; above it windows of times alone are better."""
_EVEN, _EVEN_TIMES = 0.43, 32
"""They may also grow if no interval of so many mean times alone has a load above this one."""
_WAITS = 0.4
"""First part of a share of interference that pays for waiting, for a prompt of mean work."""
_BY_MEMORY = (FULL, 32, 0)
"""Parts of what is left of fixed parts that tokens pay if active requests are limited."""


class _Backlog(NamedTuple):
    """The number of borders in each part of windows, prices of waiting, and their effect."""

    sizes: Integers
    prices: Numbers
    waits: Floats
    value: float
    charged: Charged


class _At(NamedTuple):
    """A point in whole numbers, the prices of cells, what requests hold, and their payments."""

    shares: Shares
    prices: Numbers
    cells: CellPrices
    profile: Floats
    payments: Payments
    backlog: _Backlog | None


class RoundPoint(NamedTuple):
    """A point of the ascent.

    Parameters
    ----------
    height
        Price of a round at the arrival, times its weight, for each nanosecond that it lasts alone.
    span
        Nanoseconds in which it falls to 0.
    beside, grown
        Shares of interference, in times alone and in windows that grow.
    rows
        Prices of rows in cells.
    weights
        Logarithms of the weights of block shares in periods.
    backlog
        For each part of a window the sum of its prices of the backlog, over the share.
    waits
        Part of the share of interference that pays for waiting.
    """

    height: Floats
    span: Floats
    beside: Floats
    grown: Floats
    rows: Floats
    weights: Floats
    backlog: Floats
    waits: Floats


class RoundPrices:
    """The bound as a concave function of prices.

    Parameters
    ----------
    instance, model
        The problem.
    rows
        The rows of the proof.
    has_blocks
        Whether users of blocks share them over time.
    chunks
        Whether prompts may be processed in pieces.
    threads
        Threads that share the requests.
    coarser
        Factor of the length of cells and periods, for a first ascent.
    """

    def __init__(
        self,
        instance: Instance,
        model: BatchTime,
        rows: Sequence[tuple[int, ...]],
        has_blocks: bool,
        chunks: bool,
        threads: int,
        coarser: int = 1,
    ) -> None:
        arrivals = arrivals_ns(instance)
        done = processed(instance, arrivals) if has_blocks else None
        exact = RoundColumns.of(instance, model, rows, arrivals, chunks=chunks, done=done)
        self._columns, self._threads = in_kind(exact, float), threads
        self.users = BlockUsers(instance.forest) if has_blocks else None
        # Where active requests are limited, the ascent tries these parts and keeps the best.
        self.choices = [
            Rates.of(instance, model, rows, part).in_floats()
            for part in (_BY_MEMORY if instance.max_active is not None else (FULL,))
        ]
        self.rates, self.rows = self.choices[0], tuple(rows)
        self.machines = instance.used_workers
        self._works = works_of(self._columns, self.rates)
        self._grid, self._fluid = self._on_grid(coarser)
        self._queue: Queue | None = None
        # The last row of prompts is interference, by which works of others delay a request.  In a
        # fleet they may be on another machine.
        # At a low load, without pieces, windows may grow; their queue needs columns in integers.
        self.quiet = exact if not chunks and self.machines == 1 and self._is_quiet() else None
        self.interferes = self.machines == 1

    def _is_quiet(self) -> bool:
        """Return whether the load of prompts is low, or nowhere high.

        Where it varies, prompts may wait for a low load, which costs more than growing gains.
        """
        works, arrivals = self._columns.prompts[-1], self._columns.arrivals
        span = max(1.0, arrivals.max())
        count = span / (_EVEN_TIMES * self._columns.alone.mean())
        count = int(np.clip(count, 1, len(arrivals)))  # more of them would hold no request
        places = np.minimum(arrivals * count // span, count - 1).astype(int)
        loads = np.bincount(places, works) * count / span
        return bool(works.sum() <= _QUIET * span or loads.max() <= _EVEN)

    def _on_grid(self, coarser: int) -> tuple[CellGrid, Floats]:
        """Return the grid, and for each row the prices of the fluid by this row."""
        columns, rates, fluids = self._columns, self.rates, []
        held = columns.rounds * columns.held + columns.growth
        for row in range(len(self.rows)):
            # Machine time by this row, if tokens in memory pay f(0).
            by_token = rates.kv + rates.fixed[row] / rates.memory
            takes = rates.token[row] * columns.rounds + columns.prompts[row] + by_token * held
            takes = takes / self.machines
            if takes.min() > 0:
                priced_at = machine_prices(columns.arrivals.tolist(), takes, 4 * _MOST_CELLS)
                fluids.append((row, *priced_at))
        ends = [times[-1] for _, times, _ in fluids]
        # There is room for each fluid, and for each request to wait as long as it lasts alone.
        last = max([(columns.arrivals + 2 * columns.alone).max(), *ends])
        # A price of a fluid is about how many requests a nanosecond of the machine delays, so that
        # its integral is about the time that all of them wait, which a check visits.
        waits = [prices.mean() * times[-1] for _, times, prices in fluids]
        visits = max([columns.alone.sum(), *waits])
        cell = max(columns.alone.mean() / _PER_REQUEST, last / _MOST_CELLS, visits / _MOST_VISITS)
        cell *= (_COARSER if self.users else 1) * coarser
        # The finest unit for costs in 64 bits; where waits are longer, loops run in Python.
        longest = math.log2(columns.counts.max() * (columns.alone.max() + cell))
        bits = int(np.clip(_LARGEST_BITS - _SPARE_BITS - longest, *_UNIT_BITS))
        length = float(max(1, round(cell)))
        grid = CellGrid(2**bits, length, int(last // length) + 1)
        middles = (np.arange(grid.cells) + 0.5) * length
        if self.users:
            grid = grid._replace(period=-(-grid.cells * coarser // _PERIODS))
        fluid = np.zeros((len(self.rows), len(middles)))
        for row, times, prices in fluids:
            fluid[row] = np.interp(middles, times, prices, right=0.0)
        return grid, fluid

    def simple(self, height: float, beside: float, share: float, row: int) -> RoundPoint:
        """Return prices that are alike for all requests, with a share of the fluid of a row."""
        alike = np.ones(len(self._columns.arrivals))
        rows = np.zeros_like(self._fluid)
        rows[row] = share * self._fluid[row]
        periods = -(-rows.shape[1] // self._grid.period) if self.users else 0
        # Rounds have prices for the part of latency that interference leaves.
        return RoundPoint(
            height * (1 - beside) * alike,
            _SPAN * self._columns.alone,
            beside * alike,
            0 * alike,
            rows,
            np.zeros((len(alike), periods)),
            np.zeros((_PARTS, len(alike))),
            0 * alike,
        )

    def refined(self, point: RoundPoint, coarse: RoundPrices) -> RoundPoint:
        """Return a point of a coarse grid on this one."""
        grid, other = self._grid, coarse._grid
        middles = (np.arange(grid.cells) + 0.5) * grid.cell
        cells = np.minimum((middles // other.cell).astype(int), other.cells - 1)
        weights = point.weights
        if self.users:
            weights = weights[:, cells[:: grid.period] // other.period]
        return point._replace(rows=point.rows[:, cells], weights=weights)

    def growing(self, point: RoundPoint) -> RoundPoint:
        """Price the backlog from now on, and return a first point of that kind."""
        grid = self._grid._replace(cell=int(self._grid.cell))
        assert self.quiet is not None, "only at a low load"
        self._queue = queue_of(self.quiet, grid).in_numbers(float)
        works = self._columns.prompts[-1]
        mean = max(1.0, works.mean())
        steps = 2.0 ** (np.arange(*_LEVELS) / 4)
        self._levels = np.append(0.0, np.rint(grid.unit * FINE / mean * steps))
        alike = np.ones(len(works))
        return point._replace(
            height=(1 - _GROWN) * alike,
            beside=0 * alike,
            grown=_GROWN * alike,
            rows=0 * point.rows,
            backlog=np.array(_BACKLOG)[:, None] * alike,
            waits=np.minimum(1.0, _WAITS * works / mean),
        )

    def _shares(self, point: RoundPoint) -> tuple[Shares, _Backlog | None]:
        """Return a point in whole numbers, as in a proof, and the effect of the backlog."""
        columns, queue, unit = self._columns, self._queue, self._grid.unit
        fixed = np.rint(point.height * columns.shortest * columns.counts * unit)
        slopes = np.rint(fixed / np.maximum(point.span, 1.0))
        beside, grown = (
            np.floor(share * FULL * columns.counts) * (unit // FULL)
            for share in (point.beside, point.grown)
        )
        if queue is None:
            return Shares(fixed, slopes, beside, 0 * grown, 0 * grown), None
        sizes = queue.part_sizes(_PARTS)
        grown[sizes.sum(axis=0) == 0] = 0.0
        parts = np.where(sizes > 0, np.maximum(point.backlog, _LOWEST), 0.0)
        # Prices of a window sum to its share at least.
        parts /= np.clip(parts.sum(axis=0), _LOWEST, 1.0)
        prices = np.ceil(grown * parts / np.maximum(sizes, 1))
        waits = point.waits * grown * FINE / np.maximum(columns.prompts[-1], 1)
        # Rounded down to a few prices, since the queue goes through events once for each of them.
        waits = self._levels[np.searchsorted(self._levels, waits, side="right") - 1]
        value, left, charged = queue.charged(grown, prices, waits, self._threads)
        backlog = _Backlog(sizes, prices, waits, value, charged)
        return Shares(fixed, slopes, beside, grown, left), backlog

    def _weights(self, point: RoundPoint) -> Floats:
        """Return the weights of block shares in whole numbers, 0 before a request arrives."""
        weights = np.rint(_WEIGHT * np.exp(point.weights))
        length = self._grid.cell * self._grid.period
        there = np.arange(weights.shape[1]) >= (self._columns.arrivals // length)[:, None]
        return np.where(there, np.maximum(weights, 1.0), 0.0)

    def evaluate(self, point: Point) -> tuple[float, _At]:
        """Return the bound at a point, and the payments of requests there."""
        point = RoundPoint(*point)
        columns, grid = self._columns, self._grid
        shares, backlog = self._shares(point)
        prices = np.rint(point.rows * grid.unit)
        if self.users:
            columns = columns._replace(profile=self.users.profile(self._weights(point)))
        total, cells, payments = evaluated(
            columns, self.rates, shares, prices, grid, self.machines, self._threads
        )
        if backlog is not None:
            total += backlog.value / FINE
        at = _At(shares, prices, cells, columns.profile, payments, backlog)
        return float(total / grid.unit), at

    def slope(self, point: Point, data: _At) -> RoundPoint:
        """Return how the bound changes with each share at a point."""
        point, at = RoundPoint(*point), data
        columns, rates, grid = self._columns, self.rates, self._grid
        used = self._used(at)
        needed = payments_of_rounds(columns.arrivals, at.shares, grid)
        there = self.machines * grid.cell
        works, dear, rows = row_slopes(rates, used[:3], at.prices, needed, there)
        # Rounds that requests use, less those that prices of rounds buy.
        by_fixed, by_slope = self._spent(at.shares, dear)
        by_fixed, by_slope = used.by_fixed - by_fixed, used.by_slope + by_slope
        scale, span = columns.shortest * columns.counts, np.maximum(point.span, 1.0)
        met = np.append(0.0, np.cumsum(works[-1]))
        first, last = windows(columns, grid)
        ends = np.maximum(at.payments.ends * grid.cell, columns.arrivals)
        waits = np.maximum(columns.alone, ends - columns.arrivals)
        # Interference counts the time alone and others' works in it, in place of the wait.
        by_beside = columns.alone - self._works + met[last] - met[first] - waits
        by_grown, by_wait = np.zeros((2, len(waits)))
        by_backlog = np.zeros_like(point.backlog)
        # Windows that grow: by the backlog, and by works of tokens in times alone.
        if (backlog := at.backlog) is not None:
            assert self._queue is not None
            met = np.append(0.0, np.cumsum(works[-1] - used.prompts[-1]))
            by_left = met[last] - met[first] - self._works + columns.prompts[-1]
            by_price, by_share, by_wait = self._queue.slopes(backlog.waits, backlog.charged)
            # Prices of a part of a window are alike, and follow its share.
            means = by_price / np.maximum(backlog.sizes, 1)
            by_grown = by_share + (means * point.backlog).sum(axis=0)
            by_grown += columns.alone - waits + point.waits * by_wait + (1 - point.waits) * by_left
            by_wait = point.grown * columns.counts * (by_wait - by_left)
            by_backlog = point.grown * means
        return RoundPoint(
            scale * (by_fixed + by_slope / span),
            -scale * point.height * by_slope / span,  # of its logarithm
            columns.counts * by_beside,
            columns.counts * by_grown,
            rows,
            self.users.slope(self._weights(point), used.reads) if self.users else point.weights,
            by_backlog,
            by_wait,
        )

    def _used(self, at: _At) -> Used:
        """Return the use of all requests."""
        columns = self._columns._replace(profile=at.profile)

        def of_range(first: int, last: int) -> Used:
            used = Used.of(columns, at.cells)
            add = quick(add_services, float)
            add(first, last, self._grid, at.cells, columns, at.shares, at.payments, used)
            return used

        parts = map_ranges(of_range, len(columns.arrivals), self._threads)
        return Used(*(np.sum(column, axis=0) for column in zip(*parts, strict=True)))

    def _spent(self, shares: Shares, dear: Floats) -> tuple[Floats, Floats]:
        """Return the cost of prices of rounds by their height and by their slope: sums of cells.

        A request pays fixed - slope (t - arrival) from its arrival until that is 0, and each unit
        of it lowers the bound by ``dear`` of its cell.
        """
        columns, cell, count = self._columns, self._grid.cell, len(dear)
        sums = np.append(0.0, np.cumsum(dear))
        moments = np.append(0.0, np.cumsum(dear * np.arange(count) * cell))
        reach = shares.fixed / np.maximum(shares.slopes, 1e-9)
        begin = np.minimum(columns.arrivals // cell, count).astype(int)
        end = np.minimum((columns.arrivals + reach) // cell + 1, count).astype(int)
        later = np.minimum(begin + 1, end)  # where it arrives it pays in full
        after = moments[end] - moments[later] - columns.arrivals * (sums[end] - sums[later])
        return sums[end] - sums[begin], after

    def moved(self, point: Point, directions: Point, step: float) -> RoundPoint:
        """Return the next point."""
        point = RoundPoint(*point)
        height, span, beside, grown, rows, weights, backlog, waits = directions
        beside = np.clip(point.beside + step * beside, 0.0, 1.0) * self.interferes
        grown = np.clip(point.grown + step * grown, 0.0, 1.0) * (self._queue is not None)
        # Shares of a request sum to 1 at most, and so do its prices of the backlog.
        both = np.maximum(beside + grown, 1.0)
        parts = np.maximum(point.backlog + _BACKLOG_STEP * step * backlog, 0.0)
        scale = 1 + self._fluid.max(axis=0)
        return RoundPoint(
            np.clip(point.height + step * height, _LOWEST, 2.0),
            np.maximum(point.span * (1 + 1.6 * step * span), 1.0),
            beside / both,
            grown / both,
            np.maximum(point.rows + step * scale * rows, 0.0),
            np.clip(point.weights + _FASTER * step * weights, -_LARGEST_LOG, _LARGEST_LOG),
            parts / np.clip(parts.sum(axis=0), _LOWEST, 1.0),
            np.clip(point.waits + step * waits, 0.0, 1.0),
        )

    def _fit_unit(self, point: RoundPoint) -> None:
        """Make the unit so coarse that compiled loops take the numbers; in Python they are slow."""
        _, at = self.evaluate(point)
        columns = self._columns._replace(profile=at.profile)
        largest = largest_number(columns, at.cells, self._grid, at.shares)
        over = math.ceil(math.log2(max(largest, 1)) - _LARGEST_BITS + 0.1)  # floats are about right
        bits = max(_UNIT_BITS[0], self._grid.unit.bit_length() - 1 - max(over, 0))
        self._grid = self._grid._replace(unit=2**bits)

    def proof(self, point: Point) -> SharedRoundsProof:
        """Return the proof of a point."""
        point = RoundPoint(*point)
        if self.users:
            self._fit_unit(point)
        shares, backlog = self._shares(point)
        unit, cell = self._grid.unit, int(self._grid.cell)
        proof = SharedRoundsProof(
            self.rows,
            unit,
            cell,
            _whole(shares.fixed),
            _whole(shares.slopes),
            _whole(shares.interference // (unit // FULL)),
            tuple(map(_whole, np.rint(point.rows * unit))),
            self.rates.by_memory,
        )
        if backlog is not None:
            grown = _whole(shares.grown // (unit // FULL))
            prices, waits = tuple(map(_whole, backlog.prices)), _whole(backlog.waits)
            proof = structs.replace(proof, grown=grown, backlog=prices, waits=waits)
        if self.users:
            first = (self._columns.arrivals // (cell * self._grid.period)).astype(int)
            rows = (row[start:] for row, start in zip(self._weights(point), first, strict=True))
            weights = tuple(map(_whole, rows))
            proof = structs.replace(proof, block_shares=weights, period=self._grid.period)
        return proof


def _whole(numbers: Floats) -> tuple[int, ...]:
    """Return whole numbers as integers."""
    return tuple(map(int, numbers.tolist()))

"""``shared_rounds_bound``: prices of shared rounds climb in floats, and integers prove the best.

The bound is concave in prices.  A slope of it is the use of each cell by all requests, less its
capacity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
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
from kvopt.bounds.gradient_ascent import Point as AnyPoint
from kvopt.bounds.gradient_ascent import Steps, Top, ascend
from kvopt.bounds.prefix_shares import BlockUsers, processed
from kvopt.bounds.seconds import SecondsBound
from kvopt.bounds.seconds_evaluation import FULL
from kvopt.bounds.shared_rounds import (
    Rates,
    evaluated,
    machines_of,
    payments_of_rounds,
    queue_of,
    row_slopes,
    shared_rounds_value,
    windows,
    works_of,
)
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.kernels.interruptible import quick
from kvopt.kernels.parallel import map_ranges
from kvopt.problem.arrays import Floats, Integers, Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.problem.scopes import Scope

_UNIT_BITS = (6, 18)
"""Binary logarithms of the denominators of prices."""
_LARGEST_BITS, _SPARE_BITS = 61, 5
"""Bits of costs in compiled loops, and by how many these exceed the longest wait."""
_STEPS = Steps(600, 0.05, 40, momentum=0.9, memory=0.99, recent=0.1, patience=40, enough=2e-4)
"""Steps of prices."""
_PER_REQUEST = 32
"""Cells in the mean time of a request alone."""
_MOST_CELLS = 40_000
"""Limit of the cells, which are in the file of a proof."""
_MOST_VISITS = 4_000_000
"""Limit of the cells in which requests wait or run, which a check visits one by one."""
_MOST_ROWS = 4
"""Limit of the rows of a proof."""
_LOWEST = 0.02
"""Lowest height of prices of rounds: at 0 they would have no slope."""
_FIRST = ((0.1, 0.0), (0.5, 0.5))
"""First prices of rounds, with shares of interference."""
_FLUID = (0.0, 0.5, 1.0)
"""First shares of the prices of the fluid."""
_SPAN = 1.5
"""First time in which prices of rounds fall to 0, in times alone."""
_COARSER = 4
"""Factor of the length of cells with block shares, which need more steps."""
_PERIODS = 192
"""Periods in which weights of block shares may differ."""
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
_ALONE = 0.25
"""Share of the time before windows grow."""
_WAITS = 0.4
"""First part of a share of interference that pays for waiting, for a prompt of mean work."""
_BY_MEMORY = (FULL, 32, 0)
"""Parts of what is left of fixed parts that tokens pay if active requests are limited."""


def shared_rounds_bound(
    instance: Instance,
    model: BatchTime,
    *,
    scope: Scope | str = Scope.PAUSES,
    budget: Budget | None = None,
    threads: int = 1,
) -> SecondsBound[SharedRoundsProof] | None:
    """Return a proved lower bound on total latency in nanoseconds, by prices of shared rounds.

    None without requests, if rounds have no fixed part, or without time for a first step.

    Parameters
    ----------
    instance
        Requests, and when they arrive (`kvopt.problem.clocks.arrivals_ns`).
    model
        The batch-time model; rounds may last longer, never less.
    scope
        Schedules to cover.  All proofs cover pauses; with ``chunks`` prompts are processed in
        pieces, and with ``sharing`` they may be in any case: then users count parts of a block.
    budget
        Time for the ascent; without a limit it ends when it gains little.
    threads
        Threads that share the requests.

    Examples
    --------
    >>> from kvopt import BatchTime, Instance, Line, Request
    >>> requests = [Request(0, 9, 20), Request(0, 9, 20)]
    >>> bound = shared_rounds_bound(Instance(1000, requests), BatchTime([Line(100, 1), Line(0, 9)]))
    >>> 4000 <= bound.value_ns <= 4478
    True
    """
    refuse_blocks(instance, "the bound in seconds")
    budget, scope = budget or Budget(), Scope.parse(scope)
    has_prefixes = scope.covers(Scope.SHARING) and "prefix" in instance.extras
    chunks = has_prefixes or scope.covers(Scope.CHUNKS)
    rows = rows_of(model, chunks=chunks)
    if not len(instance) or not max(model.lines[line].round_ns for line in rows[0]):
        return None
    prices = _Prices(instance, model, rows, has_prefixes, chunks, threads)
    proof = prices.best(budget)
    if proof is None:
        return None
    value = shared_rounds_value(instance, model, proof, chunks=chunks)
    return SecondsBound(value, proof, prices.is_final)


def rows_of(model: BatchTime, *, chunks: bool) -> list[tuple[int, ...]]:
    """Return the rows of a proof: the first one has the largest fixed part.

    Whole prompts have the roof of all lines, and single lines, under which prompts share rounds.
    """
    count = len(model.lines)
    lines = sorted(range(count), key=lambda line: -model.lines[line].round_ns)
    single: list[tuple[int, ...]] = [(line,) for line in lines]
    if chunks or count == 1:
        return single[:_MOST_ROWS]
    return [tuple(range(count)), *single[1:_MOST_ROWS]]


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


class _Point(NamedTuple):
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


class _Prices:
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
    """

    def __init__(
        self,
        instance: Instance,
        model: BatchTime,
        rows: Sequence[tuple[int, ...]],
        has_blocks: bool,
        chunks: bool,
        threads: int,
    ) -> None:
        arrivals = arrivals_ns(instance)
        done = processed(instance, arrivals) if has_blocks else None
        exact = RoundColumns.of(instance, model, rows, arrivals, chunks=chunks, done=done)
        self._columns, self._threads = in_kind(exact, float), threads
        self._users = BlockUsers(instance.forest) if has_blocks else None
        self._choices = [
            Rates.of(instance, model, rows, part).in_floats()
            for part in (_BY_MEMORY if instance.max_active is not None else (FULL,))
        ]
        self._rates, self._rows = self._choices[0], tuple(rows)
        self._machines = machines_of(instance)
        self._works = works_of(self._columns, self._rates)
        self._grid, self._fluid = self._on_grid()
        self._queue: Queue | None = None
        span = max(1.0, self._columns.arrivals.max())
        is_quiet = self._columns.prompts[-1].sum() <= _QUIET * span
        self._quiet = exact if is_quiet and not chunks and self._machines == 1 else None
        self.is_final, self._interferes = False, self._machines == 1

    def _on_grid(self) -> tuple[CellGrid, Floats]:
        """Return the grid, and for each row the prices of the fluid by this row."""
        columns, rates, fluids = self._columns, self._rates, []
        held = columns.rounds * columns.held + columns.growth
        for row in range(len(self._rows)):
            # Machine time by this row, if tokens in memory pay f(0).
            by_token = rates.kv + rates.fixed[row] / rates.memory
            takes = rates.token[row] * columns.rounds + columns.prompts[row] + by_token * held
            takes = takes / self._machines
            if takes.min() > 0:
                priced_at = machine_prices(columns.arrivals.tolist(), takes, 4 * _MOST_CELLS)
                fluids.append((row, *priced_at))
        ends = [times[-1] for _, times, _ in fluids]
        last = max([(columns.arrivals + 2 * columns.alone).max(), *ends])
        waits = [prices.mean() * times[-1] for _, times, prices in fluids]
        visits = max([columns.alone.sum(), *waits])
        cell = max(columns.alone.mean() / _PER_REQUEST, last / _MOST_CELLS, visits / _MOST_VISITS)
        cell *= _COARSER if self._users else 1
        longest = math.log2(columns.counts.max() * (columns.alone.max() + cell))
        bits = int(np.clip(_LARGEST_BITS - _SPARE_BITS - longest, *_UNIT_BITS))
        length = float(max(1, round(cell)))
        grid = CellGrid(2**bits, length, int(last // length) + 1)
        middles = (np.arange(grid.cells) + 0.5) * length
        if self._users:
            grid = grid._replace(period=-(-grid.cells // _PERIODS))
        fluid = np.zeros((len(self._rows), len(middles)))
        for row, times, prices in fluids:
            fluid[row] = np.interp(middles, times, prices, right=0.0)
        return grid, fluid

    def best(self, budget: Budget) -> SharedRoundsProof | None:
        """Climb, and return the best prices; at a low load then with windows that grow."""
        start = self._start(budget)
        if start is None:
            return None
        if self._quiet is None:
            return self._proof(self._climb(start, budget).point)
        top = self._climb(start, budget.part(_ALONE))
        proof = self._proof(top.point)
        grown = self._climb(self._growing(self._quiet, _Point(*top.point)), budget)
        return self._proof(grown.point) if grown.value > top.value else proof

    def _climb(self, start: _Point, budget: Budget) -> Top:
        """Climb from a point."""
        # Block shares gain more under load, where interference only costs steps.
        self._interferes = self._machines == 1 and (not self._users or bool(start.beside.any()))
        top = ascend(self, start, _STEPS, budget)
        self.is_final = top.is_final
        return top

    def _start(self, budget: Budget) -> _Point | None:
        """Return the best of some simple prices."""
        best: tuple[float, _Point] | None = None
        choice = self._rates
        for rates, (height, beside), share in product(self._choices, _FIRST, _FLUID):
            self._rates = rates
            for row in range(len(self._rows) if share else 1):
                if budget.over():
                    break
                point = self._simple(height, beside * self._interferes, share, row)
                value = self.evaluate(point)[0]
                if best is None or value > best[0]:
                    best, choice = (value, point), rates
        self._rates = choice
        return None if best is None else best[1]

    def _simple(self, height: float, beside: float, share: float, row: int) -> _Point:
        """Return prices that are alike for all requests, with a share of the fluid of a row."""
        alike = np.ones(len(self._columns.arrivals))
        rows = np.zeros_like(self._fluid)
        rows[row] = share * self._fluid[row]
        periods = -(-rows.shape[1] // self._grid.period) if self._users else 0
        return _Point(
            height * (1 - beside) * alike,
            _SPAN * self._columns.alone,
            beside * alike,
            0 * alike,
            rows,
            np.zeros((len(alike), periods)),
            np.zeros((_PARTS, len(alike))),
            0 * alike,
        )

    def _growing(self, exact: RoundColumns, point: _Point) -> _Point:
        """Price the backlog from now on, and return a first point of that kind."""
        grid = self._grid._replace(cell=int(self._grid.cell))
        self._queue = queue_of(exact, grid).in_numbers(float)
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

    def _shares(self, point: _Point) -> tuple[Shares, _Backlog | None]:
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
        waits = self._levels[np.searchsorted(self._levels, waits, side="right") - 1]
        value, left, charged = queue.charged(grown, prices, waits, self._threads, with_slope=True)
        backlog = _Backlog(sizes, prices, waits, value, charged)
        return Shares(fixed, slopes, beside, grown, left), backlog

    def _weights(self, point: _Point) -> Floats:
        """Return the weights of block shares in whole numbers, 0 before a request arrives."""
        weights = np.rint(_WEIGHT * np.exp(point.weights))
        length = self._grid.cell * self._grid.period
        there = np.arange(weights.shape[1]) >= (self._columns.arrivals // length)[:, None]
        return np.where(there, np.maximum(weights, 1.0), 0.0)

    def evaluate(self, point: AnyPoint) -> tuple[float, _At]:
        """Return the bound at a point, and the payments of requests there."""
        point = _Point(*point)
        columns, grid = self._columns, self._grid
        shares, backlog = self._shares(point)
        prices = np.rint(point.rows * grid.unit)
        if self._users:
            columns = columns._replace(profile=self._users.profile(self._weights(point)))
        total, cells, payments = evaluated(
            columns, self._rates, shares, prices, grid, self._machines, self._threads
        )
        if backlog is not None:
            total += backlog.value / FINE
        at = _At(shares, prices, cells, columns.profile, payments, backlog)
        return float(total / grid.unit), at

    def slope(self, point: AnyPoint, data: _At) -> _Point:
        """Return how the bound changes with each share at a point."""
        point, at = _Point(*point), data
        columns, rates, grid = self._columns, self._rates, self._grid
        used = self._used(at)
        needed = payments_of_rounds(columns.arrivals, at.shares, grid)
        there = self._machines * grid.cell
        works, dear, rows = row_slopes(rates, used[:3], at.prices, needed, there)
        # Rounds that requests use, less those that prices of rounds buy.
        by_fixed, by_slope = self._spent(at.shares, dear)
        by_fixed, by_slope = used.by_fixed - by_fixed, used.by_slope + by_slope
        scale, span = columns.shortest * columns.counts, np.maximum(point.span, 1.0)
        met = np.append(0.0, np.cumsum(works[-1]))
        first, last = windows(columns, grid)
        ends = np.maximum(at.payments.ends * grid.cell, columns.arrivals)
        waits = np.maximum(columns.alone, ends - columns.arrivals)
        by_beside = columns.alone - self._works + met[last] - met[first] - waits
        by_grown, by_wait = np.zeros((2, len(waits)))
        by_backlog = np.zeros_like(point.backlog)
        # Windows that grow: by the backlog, and by works of tokens in times alone.
        if (backlog := at.backlog) is not None:
            assert self._queue is not None
            met = np.append(0.0, np.cumsum(works[-1] - used.prompts[-1]))
            by_left = met[last] - met[first] - self._works + columns.prompts[-1]
            by_price, by_share, by_wait = self._queue.slopes(backlog.waits, backlog.charged)
            means = by_price / np.maximum(backlog.sizes, 1)
            by_grown = by_share + (means * point.backlog).sum(axis=0)
            by_grown += columns.alone - waits + point.waits * by_wait + (1 - point.waits) * by_left
            by_wait = point.grown * columns.counts * (by_wait - by_left)
            by_backlog = point.grown * means
        return _Point(
            scale * (by_fixed + by_slope / span),
            -scale * point.height * by_slope / span,  # of its logarithm
            columns.counts * by_beside,
            columns.counts * by_grown,
            rows,
            self._users.slope(self._weights(point), used.reads) if self._users else point.weights,
            by_backlog,
            by_wait,
        )

    def _used(self, at: _At) -> Used:
        """Return the use of all requests."""
        count = len(self._columns.arrivals)
        by_fixed, by_slope = np.zeros((2, count))
        reads = np.zeros_like(at.profile)
        columns = self._columns._replace(profile=at.profile)

        def of_range(first: int, last: int) -> Used:
            rounds, tokens = np.zeros((2, len(at.cells.round)))
            used = Used(rounds, tokens, np.zeros_like(at.cells.rows), by_fixed, by_slope, reads)
            add = quick(add_services, float)
            add(first, last, self._grid, at.cells, columns, at.shares, at.payments, used)
            return used

        parts = map_ranges(of_range, count, self._threads)
        rounds, tokens, prompts = (
            np.sum(column, axis=0) for column in zip(*(part[:3] for part in parts), strict=True)
        )
        return Used(rounds, tokens, prompts, by_fixed, by_slope, reads)

    def _spent(self, shares: Shares, dear: Floats) -> tuple[Floats, Floats]:
        """Return the cost of prices of rounds by their height and by their slope: sums of cells."""
        columns, cell, count = self._columns, self._grid.cell, len(dear)
        sums = np.append(0.0, np.cumsum(dear))
        moments = np.append(0.0, np.cumsum(dear * np.arange(count) * cell))
        reach = shares.fixed / np.maximum(shares.slopes, 1e-9)
        begin = np.minimum(columns.arrivals // cell, count).astype(int)
        end = np.minimum((columns.arrivals + reach) // cell + 1, count).astype(int)
        later = np.minimum(begin + 1, end)  # where it arrives it pays in full
        after = moments[end] - moments[later] - columns.arrivals * (sums[end] - sums[later])
        return sums[end] - sums[begin], after

    def moved(self, point: AnyPoint, directions: AnyPoint, step: float) -> _Point:
        """Return the next point."""
        point = _Point(*point)
        height, span, beside, grown, rows, weights, backlog, waits = directions
        beside = np.clip(point.beside + step * beside, 0.0, 1.0) * self._interferes
        grown = np.clip(point.grown + step * grown, 0.0, 1.0) * (self._queue is not None)
        both = np.maximum(beside + grown, 1.0)
        parts = np.maximum(point.backlog + _BACKLOG_STEP * step * backlog, 0.0)
        scale = 1 + self._fluid.max(axis=0)
        return _Point(
            np.clip(point.height + step * height, _LOWEST, 2.0),
            np.maximum(point.span * (1 + 1.6 * step * span), 1.0),
            beside / both,
            grown / both,
            np.maximum(point.rows + step * scale * rows, 0.0),
            np.clip(point.weights + _FASTER * step * weights, -_LARGEST_LOG, _LARGEST_LOG),
            parts / np.clip(parts.sum(axis=0), _LOWEST, 1.0),
            np.clip(point.waits + step * waits, 0.0, 1.0),
        )

    def _proof(self, point: AnyPoint) -> SharedRoundsProof:
        """Return the proof of a point."""
        point = _Point(*point)
        shares, backlog = self._shares(point)
        unit, cell = self._grid.unit, int(self._grid.cell)
        proof = SharedRoundsProof(
            self._rows,
            unit,
            cell,
            _whole(shares.fixed),
            _whole(shares.slopes),
            _whole(shares.interference // (unit // FULL)),
            tuple(map(_whole, np.rint(point.rows * unit))),
            self._rates.by_memory,
        )
        if backlog is not None:
            grown = _whole(shares.grown // (unit // FULL))
            prices, waits = tuple(map(_whole, backlog.prices)), _whole(backlog.waits)
            proof = structs.replace(proof, grown=grown, backlog=prices, waits=waits)
        if self._users:
            first = (self._columns.arrivals // (cell * self._grid.period)).astype(int)
            rows = (row[start:] for row, start in zip(self._weights(point), first, strict=True))
            weights = tuple(map(_whole, rows))
            proof = structs.replace(proof, block_shares=weights, period=self._grid.period)
        return proof


def _whole(numbers: Floats) -> tuple[int, ...]:
    """Return whole numbers as integers."""
    return tuple(map(int, numbers.tolist()))

"""``shared_rounds_bound``: prices of shared rounds climb in floats, and integers prove the best.

The bound is concave in prices.  A slope of it is what requests use of each cell, less what there
is.  All prices climb together, each on its own scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from msgspec import structs

from kvopt.bounds.backlog import FINE, Charged, Prices, Queue, slopes_of
from kvopt.bounds.block_shares import BlockUsers
from kvopt.bounds.fluid import machine_prices
from kvopt.bounds.seconds import SecondsBound, Way
from kvopt.bounds.seconds_evaluation import FULL
from kvopt.bounds.shared_rounds import (
    Answers,
    Cells,
    Columns,
    Grid,
    Rates,
    Requests,
    Shares,
    beside_value,
    charges,
    find_cheapest,
    in_numbers,
    machines_of,
    payments,
    priced,
    queue_of,
    shared_rounds_value,
    windows,
)
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.kernels.loop_calls import map_ranges, quick
from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.problem.scopes import Scope

_UNIT_BITS = (6, 18)
"""Binary logarithms of the denominators of prices."""
_LARGEST_BITS, _SPARE_BITS = 61, 5
"""Bits of costs in compiled loops, and by how many these exceed the longest wait."""
MOST_STEPS = 600
"""Limit of the steps of an ascent."""
_PER_REQUEST = 32
"""Cells in the mean time of a request alone."""
_MOST_CELLS = 40_000
"""Limit of the cells, which are in the file of a proof."""
_MOST_VISITS = 4_000_000
"""Limit of the cells in which requests wait or run, which a check visits one by one."""
_MOST_ROWS = 4
"""Limit of the rows of a proof."""
_STEP, _SLOWER = 0.05, 40
"""First change of a share, and after how many steps it is 0.7 of that."""
_MOMENTUM, _MEMORY = 0.9, 0.99
"""Decay, in each step, of the means of the slope and of its square."""
_RECENT = 0.1
"""Weight of the last point in the moving mean of points, which is often better than they are."""
_PATIENCE, _ENOUGH = 40, 2e-4
"""An ascent ends if so many steps gain less than this share of the bound."""
_LOWEST = 0.02
"""Lowest height of prices of rounds: at 0 they would have no slope."""
_NEVER = 1e300
"""Above all costs."""
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
    >>> found = shared_rounds_bound(Instance(1000, requests), BatchTime([Line(100, 1), Line(0, 9)]))
    >>> 4000 <= found.value_ns <= 4478
    True
    """
    refuse_blocks(instance, "the bound in seconds")
    budget, scope = budget or Budget(), Scope.parse(scope)
    arrivals = arrivals_ns(instance)
    has_prefixes = scope.covers(Scope.SHARING) and "prefix" in instance.extras
    chunks = has_prefixes or scope.covers(Scope.CHUNKS)
    rows = rows_of(model, chunks=chunks)
    if not len(instance) or not max(model.lines[line].round_ns for line in rows[0]):
        return None
    users = BlockUsers(instance.forest) if has_prefixes else None
    if users:
        columns = Columns.of_prefixes(instance, model, rows, arrivals)
    else:
        columns = Columns.of(instance, model, rows, arrivals, chunks=chunks)
    ascent = _Ascent(instance, model, rows, columns, users, chunks, threads)
    best = ascent.best(budget)
    if best is None:
        return None
    value = shared_rounds_value(instance, model, best, arrivals, chunks=chunks)
    return SecondsBound(value, best, ascent.is_final)


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

    def mixed(self, other: _Point, share: float) -> _Point:
        """Return a point between this one and another."""
        pairs = zip(self, other, strict=True)
        return _Point(*((1 - share) * mine + share * its for mine, its in pairs))


class _Ascent:
    """Prices that climb; ``is_final`` if they ended since they gained little."""

    def __init__(
        self,
        instance: Instance,
        model: BatchTime,
        rows: Sequence[tuple[int, ...]],
        exact: Columns,
        users: BlockUsers | None,
        chunks: bool,
        threads: int,
    ) -> None:
        self._columns, self._threads = exact.map(lambda column: column.astype(float)), threads
        self._users = users
        self._choices = [
            Rates.of(instance, model, rows, part).map(lambda column: column.astype(float))
            for part in (_BY_MEMORY if instance.max_active is not None else (FULL,))
        ]
        self._rates, self._rows = self._choices[0], tuple(rows)
        self._machines = machines_of(instance)
        self._works = self._columns.works(self._rates)
        self._grid, self._fluid = self._on_grid()
        self._queue: Queue | None = None
        span = max(1.0, self._columns.arrivals.max())
        is_quiet = self._columns.prompts[-1].sum() <= _QUIET * span
        self._quiet = exact if is_quiet and not chunks and self._machines == 1 else None
        self.is_final, self._interferes = False, self._machines == 1

    def _on_grid(self) -> tuple[Grid, Floats]:
        """Return the grid, and for each row the prices of the fluid by this row."""
        columns, found = self._columns, []
        for row in range(len(self._rows)):
            takes = self._takes(row)
            if takes.min() > 0:
                priced_at = machine_prices(columns.arrivals.tolist(), takes, 4 * _MOST_CELLS)
                found.append((row, *priced_at))
        ends = [times[-1] for _, times, _ in found]
        last = max([(columns.arrivals + 2 * columns.alone).max(), *ends])
        waits = [prices.mean() * times[-1] for _, times, prices in found]
        visits = max([columns.alone.sum(), *waits])
        cell = max(columns.alone.mean() / _PER_REQUEST, last / _MOST_CELLS, visits / _MOST_VISITS)
        cell *= _COARSER if self._users else 1
        longest = math.log2(columns.counts.max() * (columns.alone.max() + cell))
        bits = int(np.clip(_LARGEST_BITS - _SPARE_BITS - longest, *_UNIT_BITS))
        grid = Grid(2**bits, float(max(1, round(cell))))
        count = int(last // grid.cell) + 1
        middles = (np.arange(count) + 0.5) * grid.cell
        if self._users:
            grid = grid._replace(period=-(-count // _PERIODS))
        fluid = np.zeros((len(self._rows), len(middles)))
        for row, times, prices in found:
            fluid[row] = np.interp(middles, times, prices, right=0.0)
        return grid, fluid

    def _takes(self, row: int) -> Floats:
        """Return the machine time of each request by a row, if tokens in memory pay f(0)."""
        columns, rates = self._columns, self._rates
        held = columns.rounds * columns.held + columns.growth
        by_token = rates.kv + rates.fixed[row] / rates.memory
        takes = rates.token[row] * columns.rounds + columns.prompts[row] + by_token * held
        return np.asarray(takes / self._machines)

    def best(self, budget: Budget) -> SharedRoundsProof | None:
        """Climb, and return the best prices; at a low load then with windows that grow."""
        start = self._start(budget)
        if start is None:
            return None
        if self._quiet is None:
            return self._proof(self._climb(start, budget)[1])
        value, point = self._climb(start, budget.part(_ALONE))
        proof = self._proof(point)
        grown, point = self._climb(self._growing(self._quiet, point), budget)
        return self._proof(point) if grown > value else proof

    def _climb(self, start: tuple[float, _Point], budget: Budget) -> tuple[float, _Point]:
        """Climb from a point with its value, and return the best one."""
        value, point = start
        # Block shares gain more under load, where interference only costs steps.
        self._interferes = self._machines == 1 and (not self._users or bool(point.beside.any()))
        best, mean = start, point
        ways = [Way(column.shape, _MOMENTUM, _MEMORY) for column in point]
        earlier, self.is_final = value, False
        for step in range(MOST_STEPS):
            if budget.over():
                break
            slope = self._slope(point)
            point = self._moved(point, slope, ways, _STEP / (1 + step / _SLOWER) ** 0.5)
            mean = mean.mixed(point, _RECENT)
            if step % _PATIENCE == _PATIENCE - 1:
                best = max(best, (self._value(mean), mean), key=lambda pair: pair[0])
                if best[0] - earlier < _ENOUGH * abs(best[0]):
                    self.is_final = True
                    break
                earlier = best[0]
            best = max(best, (self._value(point), point), key=lambda pair: pair[0])
        else:
            self.is_final = True
        return max(best, (self._value(mean), mean), key=lambda pair: pair[0])

    def _start(self, budget: Budget) -> tuple[float, _Point] | None:
        """Return the best of some simple prices with its value."""
        best: tuple[float, _Point] | None = None
        choice = self._rates
        for rates, (height, beside), share in product(self._choices, _FIRST, _FLUID):
            beside *= self._interferes
            self._rates = rates
            for row in range(len(self._rows) if share else 1):
                if budget.over():
                    break
                point = self._simple(height, beside, share, row)
                value = self._value(point)
                if best is None or value > best[0]:
                    best, choice = (value, point), rates
        self._rates = choice
        if best is not None:
            self._value(best[1])
        return best

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

    def _growing(self, exact: Columns, point: _Point) -> tuple[float, _Point]:
        """Price the backlog from now on, and return a first point of that kind with its value."""
        grid = Grid(self._grid.unit, int(self._grid.cell))
        self._queue = queue = queue_of(exact, grid, self._fluid.shape[1]).in_floats()
        mean = max(1.0, queue.line.prompts.mean())
        steps = 2.0 ** (np.arange(*_LEVELS) / 4)
        self._levels = np.append(0.0, np.rint(self._grid.unit * FINE / mean * steps))
        alike = np.ones(len(queue.order))
        point = _Point(
            (1 - _GROWN) * alike,
            point.span,
            0 * alike,
            _GROWN * alike,
            0 * point.rows,
            point.weights,
            np.array(_BACKLOG)[:, None] * alike,
            np.minimum(1.0, _WAITS * self._columns.prompts[-1] / mean),
        )
        return self._value(point), point

    def _shares(self, point: _Point) -> tuple[Shares, _Backlog | None]:
        """Return a point in whole numbers, as in a proof, and what the backlog adds there."""
        columns, queue, unit = self._columns, self._queue, self._grid.unit
        fixed = np.rint(point.height * columns.shortest * columns.counts * unit)
        slopes = np.rint(fixed / np.maximum(point.span, 1.0))
        beside, grown = (
            np.floor(share * FULL * columns.counts) * (unit // FULL)
            for share in (point.beside, point.grown)
        )
        if queue is None:
            return Shares(fixed, slopes, beside, 0 * grown, 0 * grown), None
        order, sizes = queue.order, np.diff(queue.parts(_PARTS), axis=0)
        grown[order[queue.line.sizes == 0]] = 0.0
        in_order, left = grown[order], np.empty_like(grown)
        parts = np.where(sizes > 0, np.maximum(point.backlog[:, order], _LOWEST), 0.0)
        # Prices of a window sum to its share at least.
        parts /= np.clip(parts.sum(axis=0), _LOWEST, 1.0)
        waits = point.waits[order] * in_order * FINE / np.maximum(queue.line.prompts, 1)
        place = np.searchsorted(self._levels, waits, side="right") - 1
        backlog = np.ceil(in_order * parts / np.maximum(sizes, 1))
        prices, growing = Prices(backlog, self._levels[place]), np.zeros_like(backlog)
        charged = queue.charged(in_order, prices, self._threads, growing)
        left[order] = charged.left
        at = _Backlog(prices, charged, growing, sizes)
        return Shares(fixed, slopes, beside, grown, left), at

    def _weights(self, point: _Point) -> Floats:
        """Return the weights of block shares in whole numbers, 0 before a request arrives."""
        weights = np.rint(_WEIGHT * np.exp(point.weights))
        length = self._grid.cell * self._grid.period
        there = np.arange(weights.shape[1]) >= (self._columns.arrivals // length)[:, None]
        return np.where(there, np.maximum(weights, 1.0), 0.0)

    def _value(self, point: _Point) -> float:
        """Return the bound at a point, and keep what requests pay there."""
        columns, grid = self._columns, self._grid
        shares, backlog = self._shares(point)
        prices = np.rint(point.rows * self._grid.unit)
        cells = priced(self._rates, prices, *charges(columns, shares, grid, prices.shape[1]))
        if self._users:
            columns = replace(columns, profile=self._users.profile(self._weights(point)))
        requests = in_numbers(columns, grid.unit, shares, float)
        answers = Answers.of(len(columns.arrivals), float)
        search = quick(find_cheapest, float)
        map_ranges(
            lambda first, last: search(first, last, grid, _NEVER, cells, requests, answers),
            len(answers.values),
            self._threads,
        )
        self._at = _At(shares, prices, cells, requests, answers, backlog)
        total = answers.values.sum() - self._machines * grid.cell * cells.rows[:-1].sum()
        total += beside_value(columns, self._rates, shares)
        if backlog is not None:
            total += backlog.charged.value / FINE
        return float(total / grid.unit)

    def _slope(self, point: _Point) -> _Point:
        """Return how the bound changes with each share at the last point."""
        columns, rates, grid, at = self._columns, self._rates, self._grid, self._at
        used = self._used()
        works = rates.token[:, None] * used.rounds + rates.kv * used.tokens + used.prompts
        there = self._machines * grid.cell
        # What is left of the fixed parts is worth what tokens and active requests pay of it.
        left = rates.by_memory / FULL * used.tokens / rates.memory
        if rates.most_active is not None:
            left = left + (1 - rates.by_memory / FULL) * used.rounds / rates.most_active
        paid = (rates.fixed[1:-1, None] * at.prices[1:]).sum(axis=0)
        is_raised = payments(columns.arrivals, at.shares, grid, len(left)) > paid
        dear = np.where(is_raised, (there - works[0]) / rates.fixed[0], left)
        rows = works[:-1] - there + rates.fixed[:-1, None] * dear
        rows[0] += rates.fixed[0] * (left - dear)

        by_fixed, by_slope = self._spent(dear)
        by_fixed, by_slope = used.by_fixed - by_fixed, used.by_slope + by_slope
        scale, span = columns.shortest * columns.counts, np.maximum(point.span, 1.0)
        met = np.append(0.0, np.cumsum(works[-1]))
        first, last = windows(columns, grid, len(left))
        ends = np.maximum(at.answers.ends * grid.cell, columns.arrivals)
        waits = np.maximum(columns.alone, ends - columns.arrivals)
        by_beside = columns.alone - self._works + met[last] - met[first] - waits
        by_grown, by_wait = np.zeros((2, len(waits)))
        by_backlog = np.zeros_like(point.backlog)
        if (backlog := at.backlog) is not None:
            assert self._queue is not None
            order = self._queue.order
            met = np.append(0.0, np.cumsum(works[-1] - used.prompts[-1]))
            by_left = met[last] - met[first] - self._works + columns.prompts[-1]
            changes = slopes_of(self._queue, backlog.prices, backlog.charged, backlog.growing)
            means = changes.backlog / np.maximum(backlog.sizes, 1)
            by_wait[order] = changes.waits
            by_grown[order] = changes.shares + (means * point.backlog[:, order]).sum(axis=0)
            by_grown += columns.alone - waits + point.waits * by_wait + (1 - point.waits) * by_left
            by_wait = point.grown * columns.counts * (by_wait - by_left)
            by_backlog[:, order] = point.grown[order] * means
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

    def _used(self) -> _Used:
        """Return what all requests use."""
        at, count = self._at, len(self._columns.arrivals)
        by_fixed, by_slope = np.zeros((2, count))
        reads = np.zeros_like(at.requests.profile)

        def of_range(first: int, last: int) -> _Used:
            rounds, tokens = np.zeros((2, len(at.cells.round)))
            used = _Used(rounds, tokens, np.zeros_like(at.cells.rows), by_fixed, by_slope, reads)
            add = quick(add_services, float)
            add(first, last, self._grid, at.cells, at.requests, at.answers, used)
            return used

        parts = map_ranges(of_range, count, self._threads)
        rounds, tokens, prompts = (
            np.sum(column, axis=0) for column in zip(*(part[:3] for part in parts), strict=True)
        )
        return _Used(rounds, tokens, prompts, by_fixed, by_slope, reads)

    def _spent(self, dear: Floats) -> tuple[Floats, Floats]:
        """Return what prices of rounds cost by their height and by their slope: sums over cells."""
        columns, shares, cell, count = self._columns, self._at.shares, self._grid.cell, len(dear)
        sums = np.append(0.0, np.cumsum(dear))
        moments = np.append(0.0, np.cumsum(dear * np.arange(count) * cell))
        reach = shares.fixed / np.maximum(shares.slopes, 1e-9)
        begin = np.minimum(columns.arrivals // cell, count).astype(int)
        end = np.minimum((columns.arrivals + reach) // cell + 1, count).astype(int)
        later = np.minimum(begin + 1, end)  # where it arrives it pays in full
        after = moments[end] - moments[later] - columns.arrivals * (sums[end] - sums[later])
        return sums[end] - sums[begin], after

    def _moved(self, point: _Point, slope: _Point, ways: Sequence[Way], step: float) -> _Point:
        """Return the next point."""
        height, span, beside, grown, rows, weights, backlog, waits = (
            way.after(column) for way, column in zip(ways, slope, strict=True)
        )
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

    def _proof(self, point: _Point) -> SharedRoundsProof:
        """Return the proof of a point."""
        shares, at = self._shares(point)
        unit, cell = self._grid.unit, int(self._grid.cell)
        columns = [shares.fixed, shares.slopes, shares.interference // (unit // FULL)]
        if self._queue is not None and at is not None:
            in_order = np.array([*at.prices.backlog, at.prices.waits])
            sorted_back = np.empty_like(in_order)
            sorted_back[:, self._queue.order] = in_order
            columns += [shares.grown // (unit // FULL), *sorted_back]
        fixed, slopes, beside, *more = (tuple(map(int, column)) for column in columns)
        prices = tuple(tuple(map(int, row)) for row in np.rint(point.rows * unit))
        proof = SharedRoundsProof(
            self._rows, unit, cell, fixed, slopes, beside, prices, self._rates.by_memory
        )
        if more:
            grown, *backlog, waits = more
            proof = structs.replace(proof, grown=grown, backlog=tuple(backlog), waits=waits)
        if self._users:
            first = (self._columns.arrivals // (cell * self._grid.period)).astype(int)
            rows = (row[start:] for row, start in zip(self._weights(point), first, strict=True))
            weights = tuple(tuple(map(int, row)) for row in rows)
            proof = structs.replace(proof, block_shares=weights, period=self._grid.period)
        return proof


class _Backlog(NamedTuple):
    """Prices of the backlog, what they add, and the borders of each part of a window."""

    prices: Prices
    charged: Charged
    growing: Floats
    sizes: Numbers


class _At(NamedTuple):
    """A point in whole numbers, the prices of cells there, and what requests pay."""

    shares: Shares
    prices: Numbers
    cells: Cells
    requests: Requests
    answers: Answers
    backlog: _Backlog | None


class _Used(NamedTuple):
    """What requests use at their cheapest services.

    Parameters
    ----------
    rounds, tokens
        Rounds in each cell, and tokens held in them.
    prompts
        Work of prompts by each row in each cell.
    by_fixed, by_slope
        How the cost of each request changes with its prices of rounds.
    reads
        What each request pays for a token of its profile in each period.
    """

    rounds: Floats
    tokens: Floats
    prompts: Floats
    by_fixed: Floats
    by_slope: Floats
    reads: Floats


def add_services(
    first: int,
    last: int,
    grid: Grid,
    prices: Cells,
    requests: Requests,
    answers: Answers,
    used: _Used,
) -> None:
    """Add what some requests use at the costs of `find_cheapest`."""
    by_round, by_token, rows = prices
    (arrivals, _, shortest, whole, later, growth, _, fixed, slopes, prompts, nodes, profile,
     _) = requests  # fmt: skip
    _, ends, limits = answers
    cell, period = grid.cell, grid.period
    rounds, tokens, works, by_fixed, by_slope, reads = used
    costs = np.empty(len(by_round))
    for i in range(first, last):
        arrival, place = arrivals[i], ends[i]
        if place >= len(by_round):
            continue  # it waits until nothing costs anything
        begin = int(arrival // cell)
        cheap, full, ties = begin, 0.0, 0.0
        prompt, least = begin, -1.0
        node, least_node = begin, -1.0
        for k in range(begin, place + 1):
            since = max(k * cell - arrival, 0.0)
            pays = max(fixed[i] - slopes[i] * since, 0.0)
            costs[k] = (pays + by_round[k] + by_token[k] * profile[i, k // period]) // shortest[i]
            size = (k + 1) * cell - arrival - since
            if costs[k] < limits[i]:
                full += size
            elif costs[k] == limits[i]:
                ties += size
            if by_token[k] < by_token[cheap]:
                cheap = k
            if k * cell < (place + 1) * cell - later[i]:
                work, beside = 0.0, 0.0
                for row in range(len(rows)):
                    work += rows[row, k] * prompts[row, i]
                    beside += rows[row, k] * nodes[row, i]
                if least < 0.0 or work < least:
                    least, prompt = work, k
                if least_node < 0.0 or beside < least_node:
                    least_node, node = beside, k
        tokens[cheap] += growth[i]
        for row in range(len(rows)):
            works[row, prompt] += prompts[row, i]
            works[row, node] += nodes[row, i]
        # Cells of the last price are used in part, all of them alike.
        part = (whole[i] - full) / ties
        for k in range(begin, place + 1):
            if costs[k] > limits[i]:
                continue
            since = max(k * cell - arrival, 0.0)
            number = ((k + 1) * cell - arrival - since) / shortest[i]
            if costs[k] == limits[i]:
                number *= part
            rounds[k] += number
            tokens[k] += number * profile[i, k // period]
            reads[i, k // period] += number * by_token[k]
            if fixed[i] > slopes[i] * since:
                by_fixed[i] += number
                by_slope[i] -= number * since

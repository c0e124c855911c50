"""Prices of rounds that active requests share: a ceiling on attained service levels in seconds.

A request pays for each of its rounds, all requests together no more than the fixed part of a round
at the price of machine time, and for its works; see `kvopt.bounds.shared_rounds`.  Here a request
that attains counts 1 in place of its latency, and pays the same for a round from its arrival until
its last token is due.  ``docs/service-levels.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvopt.bounds.cheapest_services import CellPrices, RoundColumns, Used, in_kind
from kvopt.bounds.gradient_ascent import Point, Steps, ascend
from kvopt.bounds.prefix_shares import Processed
from kvopt.bounds.seconds_evaluation import FULL, integers
from kvopt.bounds.shared_rounds import (
    Rates,
    priced,
    row_slopes,
    sums_over,
    works_of,
)
from kvopt.bounds.slo_prices import ActiveTimes, cheapest_cost, scale_of
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.batch_time import BatchTime

_SCALE = 2.0**60
"""Factor by which prices are so large that it does not matter that `priced` rounds them."""
_FIRST = (0.0, 0.3, 0.6, 1.0)
"""First parts of fixed parts that rounds pay; tokens pay the rest."""
_LOWEST, _FLOOR = 1e-3, 0.1
"""Lowest first part of rounds, and lowest scale of a price."""
CELLS_OF_ROUNDS = 8
"""Cells of equal prices in a typical window: with more of them the way is longer."""
_STEPS = Steps(
    1499, 0.2, momentum=0.97, memory=0.99, recent=0.1, patience=40, enough=1e-4,
    shorter=0.5, shortest=2e-3,
)  # fmt: skip
"""Steps of prices over their scales."""


class OfSharedRounds:
    """Prices of machine time by several rows of lines, and of the rounds of each request.

    A point has prices of rounds over the fixed part of the first row, and those of rows in cells.

    Parameters
    ----------
    times
        The requests, and when they may be active.
    fresh
        Prompt tokens that each surely processes.
    model, rows
        The lines, and the sets of them that bound rounds.
    chunks
        Whether prompts may be processed in pieces.
    """

    def __init__(
        self,
        times: ActiveTimes,
        fresh: Sequence[int],
        model: BatchTime,
        rows: Sequence[tuple[int, ...]],
        *,
        chunks: bool,
    ) -> None:
        self._times, instance, begins = times, times.instance, times.begins.tolist()
        done = Processed(fresh)
        self._exact = RoundColumns.of(instance, model, rows, begins, chunks=chunks, done=done)
        # The ceiling of a limit of active requests is the one without.
        self._exact_rates = Rates.of(instance, model, rows, FULL)
        self._rows = tuple(rows)
        self._columns, self._rates = in_kind(self._exact, float), self._exact_rates.in_floats()
        self._there = instance.used_workers * times.width
        # The cells that the window of each request touches.
        self._reach = (
            np.minimum(times.begins // times.width, times.count),
            np.minimum(-(-times.ends // times.width), times.count),
        )
        self._scale: Point = ()

    def started(self, lines: Sequence[int], other: ActiveTimes, prices: Floats) -> Point:
        """Return the best of first points, from prices of machine time by some lines in cells.

        ``prices`` are those of a nanosecond of one machine.
        """
        place = self._rows.index(tuple(lines)) if tuple(lines) in self._rows else 0
        rows = np.zeros((len(self._rows), self._times.count))
        to, since = (np.arange(times.count + 1) * times.width for times in (self._times, other))
        paid = np.append(0.0, np.cumsum(prices * other.width))
        rows[place] = np.diff(np.interp(to, since, paid)) / self._times.width
        fixed = self._rates.fixed
        shares = self._shares(rows[place]) * fixed[place] / fixed[0]
        # Rounds pay a part of the fixed part of the first row, which is the largest (`rows_of`).
        # The price of that row is raised by what rounds pay beyond it, so it begins lower; other
        # rows pay for rounds as they are.  Any prices prove a ceiling: lines of no row take row 0.
        points = []
        for part in _FIRST:
            left = rows.copy()
            left[0] -= part * rows[0]
            points.append((max(part, _LOWEST) * shares, left))
        return max(points, key=lambda point: self.evaluate(point)[0])

    def _shares(self, machine: Floats) -> Floats:
        """Return the mean price of each request if all that may be active share a price."""
        together = np.maximum(self._over(np.ones(len(self._columns.arrivals))), 1.0)
        sums = np.append(0.0, np.cumsum(machine / together))
        first, last = self._reach
        shares: Floats = (sums[last] - sums[first]) / np.maximum(last - first, 1)
        return shares

    def climbed(self, point: Point, budget: Budget) -> Point:
        """Return the best point on a way upwards, and on that of a moving mean of its points."""
        machine = point[1].sum(axis=0)
        # Prices at which a mean request pays for what it is worth are the scale of low ones.
        lowest = max(machine.mean(), 1.0 / max(works_of(self._columns, self._rates).mean(), 1.0))
        machine = np.maximum(machine, _FLOOR * lowest)
        self._scale = np.maximum(point[0], _FLOOR * self._shares(machine)), machine
        return ascend(self, point, _STEPS, budget).point

    def evaluate(self, point: Point) -> tuple[float, tuple[Floats, Point]]:
        """Return minus the ceiling in floats, with the payment of each request and a slope.

        A request gains 1 less its payment, if that is positive; all machine time has its price.
        The slope of a price is what is used at it less what there is.
        """
        from kvopt.bounds.slo_costs import Windows, fill_cheapest  # it loads numba

        columns, rates, times = self._columns, self._rates, self._times
        fixed, rows = point[0] * rates.fixed[0], point[1]
        needed = self._over(fixed)
        cells = priced(rates, rows * _SCALE, needed * _SCALE, 0.0 * needed, 0.0 * needed)
        cells = CellPrices(*(column / _SCALE for column in cells))
        later = (columns.rounds - 1) * columns.shortest
        begins, early, ends = np.array([times.begins, times.early, times.ends], dtype=float)
        windows = Windows(begins, early, ends, later, np.ones_like(later))
        costs, used = np.zeros_like(later), Used.of(columns, cells)
        fill_cheapest(windows, columns, fixed, 0.0, cells, float(times.width), costs, used)
        value = float(np.maximum(0.0, 1.0 - costs).sum() + self._there * cells.rows[:-1].sum())
        _, dear, slopes = row_slopes(rates, used[:3], rows, needed, self._there)
        sums = np.append(0.0, np.cumsum(dear))
        first, last = self._reach
        by_fixed = rates.fixed[0] * (used.by_fixed - sums[last] + sums[first])
        return -value, (costs, (by_fixed, slopes))

    def slope(self, _: Point, data: tuple[Floats, Point]) -> Point:
        """Return the slope by the scale of each price."""
        return tuple(scale * slope for scale, slope in zip(self._scale, data[1], strict=True))

    def moved(self, point: Point, directions: Point, step: float) -> Point:
        """Return the next point, by the scale of each price."""
        return tuple(
            np.maximum(column + step * scale * direction, 0.0)
            for column, scale, direction in zip(point, self._scale, directions, strict=True)
        )

    def _over(self, values: Numbers) -> Numbers:
        """Return for each cell the sum over the requests whose window touches it."""
        sums: Numbers = np.maximum(sums_over(*self._reach, values, self._times.count), 0)
        return sums

    def rounded(self, point: Point) -> SharedRoundsProof:
        """Return prices in integers."""
        fixed, rows = point
        highest = max(float(fixed.max(initial=0.0)), float(rows.max(initial=0.0))) or 1.0
        unit = scale_of(highest, FULL.bit_length() - 1)
        shares = np.rint(fixed * self._rates.fixed[0] * float(unit)).tolist()
        prices = tuple(tuple(map(int, row)) for row in np.rint(rows * float(unit)).tolist())
        width = self._times.width
        return SharedRoundsProof(self._rows, unit, width, tuple(map(int, shares)), (), (), prices)

    def proved(self, proof: SharedRoundsProof) -> int:
        """Return the ceiling that prices prove, in integers."""
        needed = self._over(integers(proof.fixed))
        prices = np.array(proof.row_prices, dtype=object)
        cells = priced(self._exact_rates, prices, needed, 0 * needed, 0 * needed)
        total = self._there * int(cells.rows[:-1].sum())
        for i in range(len(proof.fixed)):
            total += max(0, proof.unit - self._cost(i, proof.fixed[i], cells))
        return int(total // proof.unit)

    def _cost(self, i: int, fixed: int, cells: CellPrices) -> int:
        """Return the payment of a request, times the unit, rounded down: no ceiling falls by it."""
        times, columns, width = self._times, self._exact, self._times.width
        begin, early, end = (int(column[i]) for column in (times.begins, times.early, times.ends))
        first, last = (int(column[i]) for column in self._reach)
        held, shortest = columns.held[i], columns.shortest[i]
        by_round, by_token = cells.round[first:last].tolist(), cells.token[first:last].tolist()
        cells_of_window = [
            (cell * width, (cell + 1) * width, (fixed + a_round + token * held) // shortest)
            for cell, (a_round, token) in enumerate(zip(by_round, by_token, strict=True), first)
        ]
        # After the last price time is free.
        cells_of_window.append((times.last, max(end, times.last), 0))
        whole = columns.rounds[i] * shortest
        cost = cheapest_cost((begin, early, end), cells_of_window, whole, whole - shortest)
        if end <= times.last:
            cost += columns.growth[i] * min(by_token)
        if early <= times.last:
            rows = cells.rows[:, first : -(-early // width)]
            cost += int((rows * columns.prompts[:, i, None]).sum(axis=0).min())
        return int(cost)

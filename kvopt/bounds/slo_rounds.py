"""Prices of rounds that active requests share: a ceiling on attained service levels in seconds.

A request pays for each of its rounds, all requests together no more than the fixed part of a round
at the price of machine time, and for its works; see `kvopt.bounds.shared_rounds`.  Here a request
that attains counts 1 in place of its latency, and pays the same for a round from its arrival until
its last token is due.  ``docs/service-levels.md`` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np

from kvopt.bounds.seconds import Way
from kvopt.bounds.seconds_evaluation import FULL
from kvopt.bounds.shared_rounds import Cells, Columns, Rates, machines_of, priced
from kvopt.bounds.shares import Processed
from kvopt.bounds.slo_prices import Window
from kvopt.incumbent.proofs import SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Numbers
from kvopt.problem.batch_time import BatchTime

_BITS = 24
"""Bits of the largest price of a row."""
_SCALE = 2.0**60
"""Factor by which prices are so large that it does not matter that `priced` rounds them."""
_FIRST = (0.0, 0.3, 0.6, 1.0)
"""First parts of fixed parts that rounds pay; tokens pay the rest."""
_LOWEST, _FLOOR = 1e-3, 0.1
"""Lowest first part of rounds, and lowest scale of a price."""
CELLS_OF_ROUNDS = 8
"""Cells of equal prices in a typical window: with more of them the way is longer."""
_STEPS = 1500
"""Limit of the steps."""
_STEP, _SHORTER, _SHORTEST = 0.2, 0.5, 2e-3
"""First change of a price over its scale, its factor where little is gained, and its lowest."""
_ENOUGH = 1e-4
"""Little is a smaller share of the value, in so many steps as are patience."""
_MOMENTUM, _MEMORY = 0.97, 0.99
"""Decay, in each step, of the means of the slope and of its square."""
_RECENT, _PATIENCE = 0.1, 40
"""Weight of the last point in the mean, which is evaluated after so many steps."""


class OfSharedRounds:
    """Prices of machine time by several rows of lines, and of the rounds of each request.

    Prices are in one array: those of rounds over the fixed part of the first row, then those of
    cells, row by row.

    Parameters
    ----------
    window
        The requests, and when.
    fresh
        Prompt tokens that each surely processes.
    model, rows
        The lines, and the sets of them that bound rounds.
    chunks
        Whether prompts may be processed in pieces.
    """

    def __init__(
        self,
        window: Window,
        fresh: Sequence[int],
        model: BatchTime,
        rows: Sequence[tuple[int, ...]],
        *,
        chunks: bool,
    ) -> None:
        self.window = window
        some, begins = window.instance, window.begins.tolist()
        done = Processed(fresh, [()] * len(some))
        self._columns = Columns.of(some, model, rows, begins, chunks=chunks, done=done)
        # The ceiling of a limit of active requests is the one without.
        self._rates = Rates.of(some, model, rows, FULL)
        self._rows = tuple(rows)
        self._machines = machines_of(some)
        self._reach = (
            np.minimum(window.begins // window.width, window.count),
            np.minimum(-(-window.ends // window.width), window.count),
        )
        self._float = self._columns.map(lambda column: column.astype(float))
        self._float_rates = self._rates.map(lambda column: column.astype(float))

    def started(self, line: Sequence[int], other: Window, prices: Floats) -> Floats:
        """Return the best of first prices, from prices of machine time by some lines in cells."""
        place = self._rows.index(tuple(line)) if tuple(line) in self._rows else 0
        rows = np.zeros((len(self._rows), self.window.count))
        borders = [np.arange(some.count + 1) * some.width for some in (self.window, other)]
        paid = np.append(0.0, np.cumsum(prices * other.width))
        rows[place] = np.diff(np.interp(borders[0], borders[1], paid)) / self.window.width
        fixed = self._float_rates.fixed
        shares = self._shares(rows[place]) * fixed[place] / fixed[0]
        points = []
        for part in _FIRST:
            left = rows.copy()
            left[0] -= part * rows[0]
            points.append(np.concatenate([max(part, _LOWEST) * shares, left.ravel()]))
        return max(points, key=lambda point: self.evaluate(point)[0])

    def _shares(self, machine: Floats) -> Floats:
        """Return what each request pays in the mean if all that may be active share a price."""
        together = np.maximum(self._over(np.ones(len(self._float.arrivals))), 1.0)
        sums = np.append(0.0, np.cumsum(machine / together))
        first, last = self._reach
        shares: Floats = (sums[last] - sums[first]) / np.maximum(last - first, 1)
        return shares

    def climbed(self, point: Floats, budget: Budget) -> Floats:
        """Return the best prices on a way upwards, and on that of a moving mean of its points."""
        count = len(self._float.arrivals)
        machine = point[count:].reshape(len(self._rows), -1).sum(axis=0)
        # Prices at which a mean request pays for what it is worth are the scale of low ones.
        lowest = max(machine.mean(), 1.0 / max(self._float.works(self._float_rates).mean(), 1.0))
        machine = np.maximum(machine, _FLOOR * lowest)
        scale = np.concatenate([
            np.maximum(point[:count], _FLOOR * self._shares(machine)),
            np.tile(machine, len(self._rows)),
        ])  # fmt: skip
        value, _, slope = self.evaluate(point)
        best, mean, earlier = (value, point), point, value
        way, length = Way(point.shape, _MOMENTUM, _MEMORY), _STEP
        for step in range(1, _STEPS):
            if budget.over() or length < _SHORTEST:
                break
            point = np.maximum(point + length * scale * way.after(scale * slope), 0.0)
            mean = (1 - _RECENT) * mean + _RECENT * point
            value, _, slope = self.evaluate(point)
            best = max(best, (value, point), key=itemgetter(0))
            if step % _PATIENCE:
                continue
            best = max(best, (self.evaluate(mean)[0], mean), key=itemgetter(0))
            if best[0] - earlier < _ENOUGH * abs(best[0]):  # shorter steps, from the best
                length *= _SHORTER
                point = mean = best[1]
                _, _, slope = self.evaluate(point)
                way = Way(point.shape, _MOMENTUM, _MEMORY)
            earlier = best[0]
        return best[1]

    def evaluate(self, prices: Floats) -> tuple[float, Floats, Floats]:
        """Return minus the ceiling in floats, the payment of each request, and a slope."""
        from kvopt.bounds.slo_costs import Used, Windows, Works, fill_rounds  # it loads numba

        columns, rates, window = self._float, self._float_rates, self.window
        count, width = len(columns.arrivals), float(window.width)
        fixed = prices[:count] * rates.fixed[0]
        rows = prices[count:].reshape(len(self._rows), -1)
        needed = self._over(fixed)
        cells = priced(rates, rows * _SCALE, needed * _SCALE, 0.0 * needed, 0.0 * needed)
        cells = Cells(*(column / _SCALE for column in cells))
        whole = columns.rounds * columns.shortest
        begins, early, ends = np.array([window.begins, window.early, window.ends], dtype=float)
        windows = Windows(begins, early, ends, whole, whole - columns.shortest, np.ones(count))
        works = Works(
            fixed, columns.shortest, columns.profile[:, 0].copy(), columns.growth, columns.prompts
        )
        costs, paid = np.zeros((2, count))
        rounds, tokens = np.zeros((2, window.count))
        used = Used(rounds, tokens, np.zeros_like(cells.rows), paid)
        fill_rounds(windows, works, *cells, width, costs, used)
        there = self._machines * width
        value = float(np.maximum(0.0, 1.0 - costs).sum() + there * cells.rows[:-1].sum())
        return -value, costs, self._slope(rows, needed, there, used)

    def _slope(
        self, rows: Floats, needed: Floats, there: float, used: tuple[Floats, ...]
    ) -> Floats:
        """Return how minus the ceiling changes with each price."""
        rates, (rounds, tokens, prompts, paid) = self._float_rates, used
        works = rates.token[:, None] * rounds + rates.kv * tokens + prompts
        left = tokens / rates.memory
        is_raised = needed > (rates.fixed[1:-1, None] * rows[1:]).sum(axis=0)
        # A round that is paid raises the first row, or takes from what tokens pay.
        dear = np.where(is_raised, (there - works[0]) / rates.fixed[0], left)
        slopes = works[:-1] - there + rates.fixed[:-1, None] * dear
        slopes[0] += rates.fixed[0] * (left - dear)
        sums = np.append(0.0, np.cumsum(dear))
        first, last = self._reach
        return np.concatenate([rates.fixed[0] * (paid - sums[last] + sums[first]), slopes.ravel()])

    def _over(self, values: Numbers) -> Numbers:
        """Return for each cell the sum over the requests whose window touches it."""
        changes = np.zeros(self.window.count + 1, dtype=values.dtype)
        first, last = self._reach
        np.add.at(changes, first, values)
        np.add.at(changes, last, -values)
        sums: Numbers = np.cumsum(changes[:-1])
        return sums if sums.dtype.hasobject else np.maximum(sums, 0.0)

    def shared(self, prices: Floats) -> SharedRoundsProof:
        """Return prices in integers."""
        count = len(self._float.arrivals)
        most = float(prices.max(initial=0.0)) or 1.0
        unit = 1 << max(_BITS - math.ceil(math.log2(most)), FULL.bit_length() - 1)
        fixed = np.rint(prices[:count] * self._float_rates.fixed[0] * float(unit)).tolist()
        rows = np.rint(prices[count:] * float(unit)).reshape(len(self._rows), -1).tolist()
        numbers = tuple(tuple(map(int, row)) for row in rows)
        shares = tuple(map(int, fixed))
        return SharedRoundsProof(self._rows, unit, self.window.width, shares, (), (), numbers)

    def ceiling(self, proof: SharedRoundsProof) -> int:
        """Return the ceiling that prices prove, in integers."""
        fixed = np.array(proof.fixed, dtype=object)
        rows = np.array(proof.row_prices, dtype=object)
        needed = self._over(fixed)
        cells = priced(self._rates, rows, needed, 0 * needed, 0 * needed)
        total = sum(max(0, proof.unit - cost) for cost in self._integer_costs(fixed, cells))
        total += self._machines * proof.cell * int(cells.rows[:-1].sum())
        return int(total // proof.unit)

    def _integer_costs(self, fixed: Numbers, cells: Cells) -> Iterator[int]:
        """Yield the payment of each request, times the unit."""
        window, columns, width = self.window, self._columns, self.window.width
        by_round, by_token = cells.round.tolist(), cells.token.tolist()
        times = zip(
            window.begins.tolist(), window.early.tolist(), window.ends.tolist(), strict=True
        )
        for i, (begin, early, end) in enumerate(times):
            first, last = min(begin // width, window.count), min(-(-end // width), window.count)
            held, shortest, sizes = columns.profile[i, 0], columns.shortest[i], []
            for cell in range(first, last):
                price = (fixed[i] + by_round[cell] + by_token[cell] * held) // shortest
                since, until = max(begin, cell * width), min(end, (cell + 1) * width)
                middle = min(max(since, early), until)
                sizes += [(price, False, middle - since), (price, True, until - middle)]
            left = columns.rounds[i] * shortest
            later, cost, is_free = left - shortest, 0, end > window.last
            if is_free:  # after the last price
                sizes += [(0, False, max(early - max(begin, window.last), 0))]
                sizes += [(0, True, end - max(early, window.last))]
            for price, is_late, size in sorted(sizes):
                size = min(size, left, later if is_late else left)
                cost += price * size
                left -= size
                later -= size * is_late
            if not is_free:
                cost += columns.growth[i] * min(by_token[first:last])
            if early <= window.last:
                until = -(-early // width)
                cost += int((cells.rows[:, first:until] * columns.prompts[:, i, None]).sum(0).min())
            yield int(cost)

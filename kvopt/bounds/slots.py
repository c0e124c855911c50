r"""Prices of slots: they account for large requests, which fill a cache less than small ones.

Think of the memory as ``c`` equal slots.  A request that holds h tokens needs

    w_c(h) = floor((c + 1) h / (M + 1))

of them, and all together need at most c: a sum of floors is at most the floor of the sum, and
``floor((c + 1) M / (M + 1)) <= c``.  With c = 1: of requests which hold more than half of
the memory at most one is active at a time.  In a fleet there are c slots on each of m workers.  So
in addition to ``p_t >= 0`` for each token, a request may pay ``q_{c,t} >= 0`` for each slot that it
needs at time t, for several c, and

    sum_i min_{k >= a_i} [k + o_i - a_i + sum_{j=1..o_i} charge_{k+j}(s_i + j)]
        - m M sum_t p_t - m sum_c c sum_t q_{c,t}

is at most the total latency of any schedule.  ``w_c(h)`` rises by one at each multiple of
``(M + 1) / (c + 1)``, so a charge is a price of tokens and `kvopt.bounds.prices.Steps`.

First prices are those of coarse programs (`kvopt.bounds.coarse`), finer ones while there is time.
They climb as prices of tokens do (`kvopt.bounds.lagrangian`), which gains most for few
requests.  Prices of slots are straight lines between borders.  Prices of tokens are offered as
means over some rounds: these prove a little more, and can be checked in half the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from kvopt.bounds.coarse import CoarsePrices, coarse_prices
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import Ascent, ascend, offer_prices, refuse_long
from kvopt.bounds.prices import (
    finest_denominator,
    rounded,
    rounded_prices,
    steps_of,
    thresholds,
)
from kvopt.bounds.scan import Scanner
from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import PriceProof, Slots
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance

_SLOTS = (1, 2, 3)
"""Numbers of slots into which memory is divided."""
_SAMPLE, _CELLS, _MOST_COLUMNS = 1000, 60, 1_600_000
"""Requests and cells of the first coarse program; most requests times cells of finer ones."""
_LEAST_WORTH = 0.01
"""Share of slots in all prices below which they are not used."""
_GROWTH = 8.0
"""Factor on the time of a program with twice as many requests and cells."""
_BYTES = 1000
"""Memory that an ascent takes for a time with prices, those of slots included."""
_MEANS = 1000
"""Prices of tokens are means over this share of all rounds before and after each."""


def offer_slot_bound(search: Search, budget: Budget | None = None, least_gain: float = 0.0) -> bool:
    """Offer better and better bounds by prices of tokens and slots; return whether slots gain.

    The budget is by default that of the search; the least gain is that of `ascend`.
    """
    budget = budget or search.budget
    if search.schedule is None or search.budget.over():
        return False
    instance = search.instance
    search.budget.refuse(_BYTES * refuse_long(search, instance))
    best: tuple[Ascent, SlotScanner] | None = None
    with suppress(Stopped):
        for coarse in _finer_and_finer(search, budget):
            if coarse.share_of_slots < _LEAST_WORTH:
                return False
            scanner = SlotScanner(instance, coarse, search.limits.threads, search.budget)
            first = first_prices(instance, coarse)
            ascent = Ascent(scanner.at(instance.total_memory), first)
            if best is None or ascent.value > best[0].value:
                best = ascent, scanner
                offer_prices(search, instance, "slots", scanner, ascent.prices)
        if best is not None:
            ascent, scanner = best
            scanner.reach = int(scanner.borders[-1]) // _MEANS
            ascend(
                ascent,
                partial(offer_prices, search, instance, "slots", scanner),
                budget,
                least_gain,
            )
    return best is not None


def _finer_and_finer(search: Search, budget: Budget) -> Iterator[CoarsePrices]:
    """Yield prices of coarse programs, each with twice the requests and cells, while they gain."""
    finer, took, count = 1, 0.0, len(search.instance)
    assert search.schedule is not None
    makespan = search.schedule.makespan
    while _GROWTH * took < 0.5 * budget.left:
        began, sample = wall_time(), min(finer * _SAMPLE, count)
        cells = finer * _CELLS
        if finer > 1 and (sample * cells > _MOST_COLUMNS or cells > makespan):
            return
        coarse = coarse_prices(search, _SLOTS, sample=sample, cells=cells, budget=budget)
        if coarse is None:
            return
        finer, took = 2 * finer, wall_time() - began
        yield coarse


def first_prices(instance: Instance, coarse: CoarsePrices) -> Floats:
    """Return the prices of a coarse program at all times, in the vector of a `SlotScanner`."""
    borders = coarse.borders
    middles, last = (borders[:-1] + borders[1:]) / 2, int(borders[-1])
    known, times = np.append(middles, last), np.arange(1, last + 1)
    rows = [np.interp(times, known, np.append(worth, 0.0)) for worth in coarse.worth]
    return np.concatenate(rows) / instance.total_memory


class SlotScanner(Scanner):
    """Evaluates prices of tokens and of slots together.

    They go in one vector: prices of tokens at the times ``1, 2, ...``, then for each number of
    slots the price of all of them at these times, divided by the memory.  So all parts of the
    vector have about the same size, and the same capacity.  Prices of slots count at borders only.
    """

    def __init__(
        self,
        instance: Instance,
        coarse: CoarsePrices,
        threads: int = 1,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(Kinds.of(instance), threads, budget)
        self.slots, self.borders, self.reach = coarse.slots, coarse.halves(), 0
        self._memory, self._total = instance.memory, instance.total_memory

    def rounded(self, values: Floats) -> PriceProof:
        """Return prices in integers; those of tokens are means over so many rounds around each."""
        rows, longest = values.reshape(len(self.slots) + 1, -1), self.kinds.longest
        worth = self._total * float(rows.max(axis=1).sum())
        denominator = finest_denominator(rows.shape[1] + longest + 1 + longest * worth)
        slots = []
        for count, row in zip(self.slots, rows[1:], strict=True):
            prices = rounded(at_borders(row, self.borders) * self._memory / count, denominator)
            numbers = prices.astype(np.int64).tolist()
            slots.append(Slots(count, tuple(self.borders.tolist()), tuple(numbers)))
        return rounded_prices(_means(rows[0], self.reach), denominator, slots)

    def lagrangian(self, prices: Floats, memory: int) -> tuple[float, Integers, Floats]:
        """Return ``L`` of prices, the cheapest starts, and the use above the capacity."""
        rows = prices.reshape(len(self.slots) + 1, -1).copy()
        last = rows.shape[1]
        for row in rows[1:]:
            row[:] = self._straight(at_borders(row, self.borders), last)
        each = self._memory / np.array(self.slots)
        steps = steps_of(self._memory, self.slots, [*(rows[1:] * each[:, None])])
        costs, starts = self.least_costs(rows[0], 1, steps)
        value = float(self.kinds.counts @ costs) - memory * float(rows.sum())
        excess = np.empty_like(rows)
        excess[0] = self.kinds.loads(starts, last) - memory
        for row, count in enumerate(self.slots):
            used = self._used(starts, thresholds(self._memory, count), last)
            beyond = self._around_borders(used) * each[row] - memory
            excess[row + 1] = self._straight(beyond, last)
        return value, starts, excess.reshape(-1)

    def _straight(self, values: Floats, last: int) -> Floats:
        """Return lines between values at the borders."""
        line: Floats = np.interp(np.arange(1, last + 1), self.borders, values)
        return line

    def _around_borders(self, used: Floats) -> Floats:
        """Return means over the cells on both sides of each border."""
        cells = np.add.reduceat(used, self.borders[:-1]) / np.diff(self.borders)
        means: Floats = (np.append(cells[0], cells) + np.append(cells, cells[-1])) / 2
        return means

    def _used(self, starts: Integers, steps: Sequence[int], last: int) -> Floats:
        """Return how many slots are used at the times ``1 .. last``."""
        kinds, change = self.kinds, np.zeros(last + 1)
        ends = np.minimum(starts + kinds.outputs, last)
        for step in steps:
            begins = np.minimum(starts + np.maximum(step - kinds.prompts, 1) - 1, ends)
            change += np.bincount(begins, kinds.counts, last + 1)
            change -= np.bincount(ends, kinds.counts, last + 1)
        return np.asarray(change.cumsum()[:last])


def at_borders(row: Floats, borders: Integers) -> Floats:
    """Return the prices at borders, of prices at the times ``1, 2, ...``."""
    found: Floats = row[np.maximum(borders - 1, 0)]
    return found


def _means(row: Floats, reach: int) -> Floats:
    """Return means over so many rounds before and after each."""
    around = np.concatenate((np.full(reach, row[0]), row, np.zeros(reach + 1)))
    sums = around.cumsum() - around
    means: Floats = (sums[2 * reach + 1 :] - sums[: len(row)]) / (2 * reach + 1)
    return means

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
``(M + 1) / (c + 1)``, so a charge is a price of tokens and `kvopt.bounds.prices.PriceSteps`.

First prices are those of coarse programs, finer ones while there is time.  In such a program a
sample stands for all requests, hundreds of rounds are one cell, and a request takes all that it
needs from the cell in which it starts.  Prices rise as those of tokens do
(`kvopt.bounds.lagrangian`), which gains most for few requests.  Prices of slots are straight lines
between borders.  Proofs have means of prices of tokens over some rounds: these prove a little more,
and can be checked in half the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from kvopt.bounds.gradient_ascent import Ascent
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import (
    STEPS,
    ConcaveInPrices,
    checked_prices,
    priced_rounds,
    rising_prices,
)
from kvopt.bounds.prices import finest_denominator, rounded, rounded_prices, steps_of, thresholds
from kvopt.bounds.scan import Scanner
from kvopt.errors import Stopped
from kvopt.formulations.highs import solved_relaxation
from kvopt.formulations.time_indexed import Program
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import CheckedBound, PriceProof, Slots
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

_SLOTS = (1, 2, 3)
"""Numbers of slots into which memory is divided."""
_SAMPLE, _CELLS, _MAX_COLUMNS = 1000, 60, 1_600_000
"""Requests and cells of the first coarse program; most requests times cells of finer ones."""
_MIN_SHARE = 0.01
"""Share of slots in all prices below which they are not used."""
_GROWTH = 8.0
"""Factor on the time of a program with twice as many requests and cells."""
_BYTES = 1000
"""Memory that an ascent takes for a time with prices, those of slots included."""
_MEANS = 1000
"""Prices of tokens are means over this share of all rounds before and after each."""
_GROUPS = 20
"""Groups of requests by arrival, in each of which the sample goes through all volumes."""
_SHORTEST = 20
"""Cells are not shorter than a mean one divided by this."""


def slot_bounds(
    instance: Instance,
    schedule: Schedule,
    budget: Budget,
    limits: Limits,
    minimum_gain: float = 0.0,
    whole: Budget | None = None,
) -> Iterator[CheckedBound]:
    """Yield better and better bounds by prices of tokens and slots, none if slots gain nothing.

    The schedule tells for how long there are prices; the least gain is that of `rising_prices`,
    the whole budget that of `lagrangian_bounds`.
    """
    whole = whole or budget
    if whole.over():
        return
    budget.refuse(_BYTES * priced_rounds(instance, budget, limits))
    best: tuple[Ascent, SlotScanner] | None = None
    finer, took = 1, 0.0
    with suppress(Stopped):
        # Coarse programs, each with twice the requests and cells, while there is time.
        while _GROWTH * took < 0.5 * budget.left:
            began, sample, cells = wall_time(), min(finer * _SAMPLE, len(instance)), finer * _CELLS
            if finer > 1 and (sample * cells > _MAX_COLUMNS or cells > schedule.makespan):
                break
            coarse = coarse_prices(instance, schedule, _SLOTS, sample, cells, budget, limits)
            if coarse is None or coarse.worth[1:].sum() <= _MIN_SHARE * coarse.worth.sum():
                break
            finer, took = 2 * finer, wall_time() - began
            scanner = SlotScanner(instance, coarse, limits.threads, whole)
            first = _at_all_times(instance, coarse)
            memory = instance.total_memory
            concave = ConcaveInPrices(scanner.at(memory), 1.0 / memory)
            ascent = Ascent(concave, (first,), STEPS)
            if best is None or ascent.value > best[0].value:
                best = ascent, scanner
                yield checked_prices(instance, "slots", scanner, ascent.point[0])
        if best is not None:
            ascent, scanner = best
            scanner.reach = int(scanner.borders[-1]) // _MEANS
            for prices in rising_prices(ascent, budget, minimum_gain):
                yield checked_prices(instance, "slots", scanner, prices)


# ---- coarse programs --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CoarsePrices:
    """Prices of memory and of slots in each cell of time.

    Parameters
    ----------
    borders
        Rounds at which cells begin and end, from 0 on.
    slots
        Numbers of slots that have prices in addition to tokens.
    worth
        Price of all tokens, and of all slots of each number, for one round: a row each.
    """

    borders: Integers
    slots: tuple[int, ...]
    worth: Floats


def coarse_prices(
    instance: Instance,
    schedule: Schedule,
    slots: Sequence[int],
    sample: int,
    cells: int,
    budget: Budget,
    limits: Limits,
) -> CoarsePrices | None:
    """Return the prices of a coarse program up to the end of a schedule, None without time."""
    borders = _borders(schedule, cells)
    chosen, weight = sampled(instance, sample)
    program = _program(chosen, weight, _needs(chosen, slots), borders)
    highs = solved_relaxation(program, limits, budget)
    if budget.over() or not highs.getSolution().dual_valid:
        return None
    # Rows of cells come after those of requests.  Upper limits of a minimum have duals up to 0.
    duals = -np.array(highs.getSolution().row_dual)[len(chosen) :]
    return CoarsePrices(borders, tuple(slots), np.maximum(duals.reshape(len(slots) + 1, -1), 0.0))


def _needs(instance: Instance, slots: Sequence[int]) -> Floats:
    """Return for how many rounds each request would need all tokens, and all slots: a row each."""
    memory, workers = instance.memory, instance.used_workers
    prompts = np.array([request.prompt for request in instance], dtype=float)
    peaks = np.array([request.peak for request in instance], dtype=float)
    volumes = np.array([request.volume for request in instance], dtype=float)
    rows = [volumes / memory]
    for count in slots:
        reached = [np.maximum(prompts + 1, start) for start in thresholds(memory, count)]
        rounds = sum(np.maximum(peaks - begin + 1, 0.0) for begin in reached)
        rows.append(np.asarray(rounds) / count)
    return np.array(rows) / workers


def _borders(schedule: Schedule, cells: int) -> Integers:
    """Return borders of cells: half of these are equally long, the others have as many starts.

    A backlog starts small requests first, thousands of them within a few percent of the time.
    """
    shares, end = np.linspace(0, 1, cells // 2 + 1), schedule.makespan + 1
    even, full = shares * end, np.quantile(schedule.starts, shares)
    borders = np.unique(np.concatenate(([0, end], even, full)).astype(np.int64))
    kept: Integers = borders[np.append(True, np.diff(borders) >= end // (_SHORTEST * cells))]
    kept[-1] = end
    return kept


def sampled(instance: Instance, size: int) -> tuple[Instance, float]:
    """Return a sample of so many requests over arrivals and volumes, and the weight of each."""
    arrivals = np.array([request.arrival for request in instance])
    volumes = np.array([request.volume for request in instance], dtype=float)
    borders = np.unique(np.quantile(arrivals, np.linspace(0, 1, _GROUPS + 1))[1:-1])
    order = np.lexsort((volumes, np.searchsorted(borders, arrivals, side="right")))
    step = max(1, len(order) // size)
    chosen = order[step // 2 :: step].tolist()
    requests = tuple(instance.requests[i] for i in chosen)
    return replace(instance, requests=requests), len(instance) / len(chosen)


def _program(instance: Instance, weight: float, needs: Floats, borders: Integers) -> Program:
    """Return the program: a column for each request and cell, rows of requests, then of cells.

    A part of a request starts in the middle of a cell, and takes there all that it ever needs.
    """
    from scipy.sparse import csc_array

    count, resources = len(instance), len(needs)
    arrivals = np.array([request.arrival for request in instance])
    lengths, cells = np.diff(borders), len(borders) - 1
    first = np.searchsorted(borders[1:-1], arrivals, side="right")
    which, when = np.nonzero(np.arange(cells) >= first[:, None])
    rows = [which, *(count + resource * cells + when for resource in range(resources))]
    values = np.stack([np.ones(len(which)), *(weight * need[which] for need in needs)], axis=1)
    taken = values != 0
    middles = (borders[:-1] + borders[1:]) / 2
    # Without output less arrival, which is the same in all cells of a request.
    cost: Floats = weight * middles[when]
    ones, room = np.ones(count), np.tile(lengths.astype(float), resources)
    ends = np.append(0, taken.sum(axis=1).cumsum())
    shape = count + resources * cells, len(which)
    return Program(
        cost,
        csc_array((values[taken], np.stack(rows, axis=1)[taken], ends), shape=shape),
        np.concatenate((ones, np.full(len(room), -np.inf))),
        np.concatenate((ones, room)),
    )


def _at_all_times(instance: Instance, coarse: CoarsePrices) -> Floats:
    """Return the prices of a coarse program at all times, in the vector of a `SlotScanner`."""
    borders = coarse.borders
    middles, last = (borders[:-1] + borders[1:]) / 2, int(borders[-1])
    priced, times = np.append(middles, last), np.arange(1, last + 1)
    rows = [np.interp(times, priced, np.append(worth, 0.0)) for worth in coarse.worth]
    return np.concatenate(rows) / instance.total_memory


# ---- evaluation -----------------------------------------------------------------------------


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
        # The program has a price for each cell; in its middle a line may bend as well.
        middles = (coarse.borders[:-1] + coarse.borders[1:]) // 2
        self.borders = np.unique(np.concatenate((coarse.borders, middles)))
        self.slots, self.reach = coarse.slots, 0
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
        slot_tokens = self._memory / np.array(self.slots)
        steps = steps_of(self._memory, self.slots, [*(rows[1:] * slot_tokens[:, None])])
        costs, starts, _ = self.least_costs(rows[0], 1, steps)
        value = float(self.kinds.counts @ costs) - memory * float(rows.sum())
        excess = np.empty_like(rows)
        excess[0] = self.kinds.loads(starts, last) - memory
        for row, count in enumerate(self.slots):
            used = self._used(starts, thresholds(self._memory, count), last)
            # Only prices at borders count, so the mean use around each border steers its price.
            beyond = self._around_borders(used) * slot_tokens[row] - memory
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
    return np.asarray(row[np.maximum(borders - 1, 0)])


def _means(row: Floats, reach: int) -> Floats:
    """Return means over so many rounds before and after each."""
    around = np.concatenate((np.full(reach, row[0]), row, np.zeros(reach + 1)))
    sums = around.cumsum() - around
    means: Floats = (sums[2 * reach + 1 :] - sums[: len(row)]) / (2 * reach + 1)
    return means

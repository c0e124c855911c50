"""The cheapest start of every kind of request at given prices: the inner loop of the bounds.

The costs of starts are those of `kvopt.bounds.prices.start_costs`, differences of sums of prices.
The sums extend beyond the last priced time T, and k runs from a to max(a, T), inclusive: a later
start pays for no token and waits longer.
Outputs longer than T are cut to T here: their tokens after T cost nothing.  Where requests also
pay from so many tokens on (`Steps`), that is one more difference of sums for each threshold.

Ranges of starts that cannot contain the cheapest one are skipped by a bound (`_lines`) that is
computed in floats and widened by more than their errors, so that costs in integers are exact.
It is one of tokens, and whole blocks never cost less.

Requests that may pause have a dynamic program over tokens and times, for the windows in which
prices rise (`kvopt.bounds.prices`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.kinds import Kinds, begun_blocks
from kvopt.bounds.prices import (
    PriceSteps,
    Sums,
    denominator_for,
    exact_costs,
    rounded_prices,
    windows_with_pauses,
)
from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.proofs import PriceProof
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled, steering
from kvopt.problem.arrays import Floats, Integers, Numbers

_SMALL = 6
"""Binary logarithm of the starts in a block, which are evaluated one by one."""
_SAFETY = 1e-9
"""Share by which bounds are widened against rounding; floats err by far less."""
_ERROR = 1e-14
"""Error of differences of sums, as a share of the sums: dozens of roundings."""
_SLICE = 4 * 10**8
"""Steps between two checks of the stop flag: half a second at most."""
_FEW = 10**6
"""Steps up to which starting threads takes longer than the work."""


class _Way(NamedTuple):
    """Arrays for the scan of one request.

    Parameters
    ----------
    low, high
        Tokens held before its first token and with its last one.
    prompt, output
        Tokens of both.
    first, final
        As of `begun_blocks`.
    reached
        How many thresholds of the stairs it reaches.
    """

    low: Any
    high: Any
    prompt: int
    output: int
    first: int
    final: int
    reached: int


class _Lines(NamedTuple):
    """Rows of `_fill`, and the first row of each level."""

    rows: Floats
    first: Integers


class _Stairs(NamedTuple):
    """Sums of steps: total price up to each time, and the least price of each block."""

    thresholds: Integers
    paid: Numbers
    lows: Floats

    @classmethod
    def of(cls, steps: PriceSteps, kind: Any, length: int) -> _Stairs:
        """Sum prices up over so many times, 0 after the last, with the lowest of each block."""
        steps = steps._replace(prices=steps.prices.astype(kind, copy=False))
        prices = np.zeros((len(steps.thresholds), length))
        prices[:, : steps.prices.shape[1]] = steps.prices
        lows = []
        # A block of `_fill` is two ranges, c half + 1 .. (c + 2) half; in the order of `_lines`.
        for level in range(_levels(length)):
            begins = range(0, length, 1 << _SMALL + level)
            lowest = np.minimum.reduceat(prices, begins, axis=1)
            of_next_range = np.pad(lowest[:, 1:], ((0, 0), (0, 1)), constant_values=np.inf)
            lows.append(np.minimum(lowest, of_next_range))
        return cls(steps.thresholds, steps.sums(length), np.concatenate(lows, axis=1))


def _levels(times: int) -> int:
    return max(times.bit_length() - _SMALL, 0) + 1


@steering
def _fill(prices: Floats, paid: Floats, half: int, lines: Floats) -> None:
    """Describe the prices of each block ``c half + 1 .. (c + 2) half`` of times.

    A row is ``slope, low, mean, rough``: with the rest r of the prices above a line through 0 at
    time ``c half``, its least value, its mean, and by how much the sums of r - mean vary.
    """
    for cell in range(len(lines)):
        begin = cell * half
        middle, end = min(begin + half, len(prices)), min(begin + 2 * half, len(prices))
        slope = (paid[end] - 2 * paid[middle] + paid[begin]) / half / half
        size = end - begin
        # Any line and mean are valid.  Sums err by less than ``error``: the range is wider by it.
        error = _ERROR * paid[end]
        mean = (paid[end] - paid[begin]) / size - slope * (size + 1) / 2 - error
        low, lowest, highest = prices[begin] - slope, 0.0, error
        for i in range(1, size + 1):
            low = min(low, prices[begin + i - 1] - slope * i)
            at = paid[begin + i] - paid[begin] - i * (mean + slope * (i + 1) / 2)
            lowest, highest = min(lowest, at), max(highest, at)
        lines[cell, 0], lines[cell, 1] = slope, low
        lines[cell, 2], lines[cell, 3] = mean, highest - lowest + error


def _lines(prices: Floats, paid: Floats) -> _Lines:
    """Return lines through prices, which bound the costs of blocks of starts from below.

    Let p_t = b (t - t0) + r_t at all times that the starts of a block pass through.  The line makes
    their costs linear in k, and the rest adds sum_j r_{k+j} (s + j).  With v = sum_j (s + j)
    this is at least v min r, and at least v c - (s + o) (max E - min E) for any c and the sums E
    of r - c: the first is good where prices bend, the second where they are rough.

    There is a row of `_fill` for each range of the lengths ``2^(6 + level)``; returned with the
    rows is the first one of each level.
    """
    levels = _levels(len(prices))
    counts = [-(-len(prices) // (1 << _SMALL + level)) for level in range(levels)]
    first: Integers = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    rows: Floats = np.empty((first[-1], 4))
    for level in range(levels):
        _fill(prices, paid, 1 << _SMALL + level, rows[first[level] : first[level + 1]])
    return _Lines(rows, first)


_begun_blocks = compiled(begun_blocks)


@steering
def _lowest(sums: Sums, stairs: _Stairs | None, way: _Way, k: int, end: int, costs: Numbers) -> Any:
    """Find costs of ``k .. end - 1``, as `start_costs` without its constant; return the least."""
    begun, paid, held, o = sums.begun, sums.paid, sums.held, way.output
    for x in range(end - k):
        before = begun[k + way.first + x] - way.low * paid[k + x]
        costs[x] = before + way.high * paid[k + o + x] - held[k + way.final + x]
    if stairs is not None:
        # It pays for a threshold from the token on that reaches it.
        for row in range(way.reached):
            before = k + max(stairs.thresholds[row] - way.prompt - 1, 0)
            for x in range(end - k):
                costs[x] += stairs.paid[row, k + o + x] - stairs.paid[row, before + x]
    lowest = costs[0]
    for x in range(1, end - k):
        lowest = min(lowest, costs[x])
    return lowest


@compiled
def _bound(
    lines: _Lines, stairs: _Stairs | None, unit: float, way: _Way, begin: int, end: int
) -> float:
    """Return a lower bound on the costs of the starts ``begin .. end - 1``."""
    s, o = way.prompt, way.output
    level, span = 0, (end - begin + o - 2) >> _SMALL
    while span > 0:  # up to a block in which all of these starts run to their ends
        level += 1
        span >>= 1
    shift = level + _SMALL
    at = lines.first[level] + (begin >> shift)
    slope, low, mean, rough = lines.rows[at]
    offset = float(begin - (begin >> shift << shift))
    volume = s * o + o * (o + 1.0) / 2.0
    moment = o * (o + 1.0) * (3.0 * s + 2.0 * o + 1.0) / 6.0  # sum_j j (s + j)
    line = slope * (volume * offset + moment)
    wait = unit * (begin + way.first)
    rest = max(volume * low, volume * mean - (s + o) * rough)
    drop = min(0.0, (unit + slope * volume) * (end - 1 - begin))
    stepped = 0.0
    if stairs is not None:
        for row in range(way.reached):
            stepped += (o - max(stairs.thresholds[row] - s - 1, 0)) * stairs.lows[row, at]
    size = wait + abs(line) + abs(volume * low) + abs(volume * mean) + abs(drop) + stepped
    return float(wait + rest + line + drop + stepped - _SAFETY * size)


@compiled
def _scan(
    kinds: tuple[Integers, ...],
    sums: Sums,
    lines: _Lines,
    stairs: _Stairs | None,
    costs: Numbers,
    starts: Integers,
) -> None:
    """Find the least cost and the first start that has it; starts hold a guess of it.

    It is compiled separately for no stairs: tests in the loop would take a third more time.
    """
    arrivals, prompts, outputs, latest = kinds
    number, last, unit = costs.dtype.type, sums.last, float(sums.unit)
    # Each cut halves a block and leaves one more: no more of them than bits of a time.
    bounds = np.empty(128)
    blocks = np.empty((128, 2), dtype=np.int64)
    block_costs = np.empty(1 << _SMALL, dtype=costs.dtype)
    for i in range(len(arrivals)):
        a, s, o = arrivals[i], prompts[i], min(outputs[i], last)
        if a >= last:
            costs[i], starts[i] = sums.unit * number(outputs[i]), a
            continue
        first, final = _begun_blocks(s, o, sums.block)
        reached = 0
        if stairs is not None:
            reached = np.searchsorted(stairs.thresholds, s + o, side="right")
        way = _Way(number(s + first), number(s + final), s, o, first, final, reached)
        final_start = min(last, latest[i])
        start = min(max(starts[i], a), final_start)
        # The start of the last evaluation is nearly as good: it excludes most blocks at once.
        best = _lowest(sums, stairs, way, start, start + 1, block_costs)
        if unit > 0.0:  # a start k costs at least D k
            final_start = min(final_start, int(best / unit) + 1)
        bounds[0], blocks[0, 0], blocks[0, 1] = -1.0, a, final_start + 1
        left = 1
        while left > 0:
            left -= 1
            begin, end = blocks[left, 0], blocks[left, 1]
            if bounds[left] > best:
                continue
            if end - begin <= 1 << _SMALL:
                lowest = _lowest(sums, stairs, way, begin, end, block_costs)
                if lowest < best or (lowest == best and begin < start):
                    best, start = lowest, begin
                    for x in range(end - begin):
                        if block_costs[x] == lowest:
                            start = begin + x
                            break
                continue
            # Cut a block in two, of which the better half comes first.
            middle = (begin + end) >> 1
            lower = _bound(lines, stairs, unit, way, begin, middle)
            upper = _bound(lines, stairs, unit, way, middle, end)
            here = 1 if lower <= upper else 0
            bounds[left + here], bounds[left + 1 - here] = lower, upper
            blocks[left + here, 0], blocks[left + here, 1] = begin, middle
            blocks[left + 1 - here, 0], blocks[left + 1 - here, 1] = middle, end
            left += 2
        costs[i] = best + sums.unit * number(outputs[i] - a - first)
        starts[i] = start


@compiled
def _pause(
    kinds: tuple[Integers, Integers, Integers, Integers, Numbers],
    windows: Integers,
    prices: Numbers,
    priced: tuple[int, int],
    costs: Numbers,
    starts: Integers,
    loads: Floats,
) -> None:
    """Lower the costs to those with pauses, and add the tokens that the cheapest times hold.

    If a pause pays, the start of the run becomes the last priced time.
    """
    arrivals, prompts, outputs, counts, units = kinds
    last, block = priced
    up = block - 1
    spares = 1
    rows = 1
    for i in range(len(arrivals)):
        if windows[i] > 0:
            spares = max(spares, windows[i] - outputs[i] + 1)
            rows = max(rows, min(outputs[i], last - arrivals[i] + 1))
    paid = np.empty(spares, dtype=prices.dtype)
    fresh = np.empty((rows, spares), dtype=np.bool_)
    for i in range(len(arrivals)):
        if windows[i] == 0:
            continue
        a, s, o = arrivals[i], prompts[i], outputs[i]
        best, at = costs[i], -1
        spare = windows[i] - o
        # What the first j tokens cost at least, each at most so many rounds later than possible.
        paid[: spare + 1] = 0
        for j in range(1, min(o, last - a + 1)):
            held = prices.dtype.type((s + j + up) // block * block)
            lowest = paid[0] + prices[a + j - 1] * held
            paid[0] = lowest
            fresh[j, 0] = True
            for x in range(1, spare + 1):
                here = paid[x] + prices[a + j - 1 + x] * held
                fresh[j, x] = here < lowest
                lowest = min(lowest, here)
                paid[x] = lowest
        # The last token ends the wait, which costs latency.
        held = prices.dtype.type((s + o + up) // block * block)
        for x in range(spare + 1):
            cost = units[i] * (o + x) + paid[x]
            if a + o + x <= last:
                cost += prices[a + o + x - 1] * held
            if cost < best:
                best, at = cost, x
        if at < 0:
            continue
        # Go back along the cheapest times, to hold the tokens there.
        costs[i], starts[i] = best, last
        for j in range(o, 0, -1):
            if a + j > last:
                continue  # free, wherever it is: it does not move those before it
            if j < o:
                while not fresh[j, at]:
                    at -= 1
            if a + j + at <= last:
                loads[a + j + at - 1] += counts[i] * ((s + j + up) // block * block)


class Scanner:
    """Evaluates price vectors for the requests of one instance.

    Parameters
    ----------
    kinds
        The requests.
    threads
        Threads that share the work.
    budget
        Asked at least twice a second; `Stopped` is raised once it is over.
    pauses
        Whether requests may pause.
    largest_table
        Bytes that the table of tokens and times with pauses may take, in each thread.
    few_steps
        Steps up to which one thread does all the work.
    """

    def __init__(
        self,
        kinds: Kinds,
        threads: int = 1,
        budget: Budget | None = None,
        *,
        pauses: bool = False,
        largest_table: int = 2**30,
        few_steps: int = _FEW,
    ) -> None:
        self.kinds, self._pauses, self._largest_table = kinds, pauses, largest_table
        self._threads, self._few_steps = threads, few_steps
        self._budget = budget or Budget()
        self._guesses = kinds.arrivals

    def rounded(self, values: Floats) -> PriceProof:
        """Return prices in integers, as fine as 64 bits allow."""
        return rounded_prices(values, denominator_for(self.kinds, values))

    def integer_costs(
        self, prices: Numbers, proof: PriceProof, steps: PriceSteps | None
    ) -> Numbers:
        """Return the least cost of every kind in integers, times the unit of the proof."""
        if prices.dtype == object:
            return exact_costs(self.kinds, prices, proof.denominator, steps, pauses=self._pauses)
        return self.least_costs(prices, proof.denominator, steps)[0]

    def least_costs(
        self, prices: Numbers, unit: int, steps: PriceSteps | None = None
    ) -> tuple[Numbers, Integers, Floats | float]:
        """Return the least cost of every kind, its start, and the tokens of kinds that pause.

        Where a pause pays, the start is the last priced time.
        """
        costs, starts = self._of_runs(prices, unit, steps)
        if not self._pauses:
            return costs, starts, 0.0
        assert steps is None, "steps are of runs"
        return self._with_pauses(prices, unit, costs, starts)

    def lagrangian(self, prices: Floats, memory: int) -> tuple[float, Integers, Floats]:
        """Return ``L`` of prices, the cheapest starts, and tokens above the memory over time."""
        costs, starts, loads = self.least_costs(prices, 1)
        loads = loads + self.kinds.loads(starts, len(prices))
        value = float(self.kinds.counts @ costs) - memory * float(prices.sum())
        return value, starts, loads - memory

    def at(self, memory: int) -> Callable[[Floats], tuple[float, Integers, Floats]]:
        """Return `lagrangian` with so much memory, as a function of prices."""
        return partial(self.lagrangian, memory=memory)

    def _of_runs(
        self, prices: Numbers, unit: int, steps: PriceSteps | None
    ) -> tuple[Numbers, Integers]:
        """Return the least cost of every kind in a run, and its first cheapest start.

        Sums of integers may pass 64 bits, costs may not: they are computed modulo 2^64.
        """
        kinds, last = self.kinds, len(prices)
        kind = np.dtype(np.float64 if prices.dtype.kind == "f" else np.uint64)
        whole = Sums.of(prices.astype(kind, copy=False), unit, kinds)
        lines = _lines(whole.prices.astype(np.float64), whole.paid.astype(np.float64))
        stairs = None
        if steps is not None:
            stairs = _Stairs.of(steps, kind, len(whole.prices))
        costs: Numbers = np.empty(len(kinds), dtype=kind)
        starts = self._guesses.copy()
        for weight, group in kinds.by_weight():
            sums = whole.of_weight(weight)

            def work(part: slice, first: int = group.start, sums: Sums = sums) -> None:
                rows = slice(first + part.start, first + part.stop)
                columns = (kinds.arrivals, kinds.prompts, kinds.outputs, kinds.last_starts)
                part_columns = tuple(column[rows] for column in columns)
                _scan(part_columns, sums, lines, stairs, costs[rows], starts[rows])

            self._in_slices(work, np.full(group.stop - group.start, last // 2 + 1))
        self._guesses = starts
        return costs.astype(prices.dtype), starts

    def _with_pauses(
        self, prices: Numbers, unit: int, costs: Numbers, starts: Integers
    ) -> tuple[Numbers, Integers, Floats]:
        """Return the result of `least_costs` from that of runs."""
        kinds, last = self.kinds, len(prices)
        starts = starts.copy()  # starts of runs without pauses are guesses
        windows = windows_with_pauses(kinds, costs, prices, unit)
        wide = windows > 0
        tokens = int(np.minimum(kinds.outputs, last - kinds.arrivals + 1)[wide].max(initial=0))
        spare = int((windows - kinds.outputs)[wide].max(initial=0))
        if (places := tokens * (spare + 1)) > self._largest_table:
            raise TooLarge(f"pauses make {places:,} places, the limit is {self._largest_table:,}")
        padded = np.concatenate((prices, np.zeros(kinds.longest, dtype=prices.dtype)))
        units = prices.dtype.type(unit) * kinds.weights.astype(prices.dtype)
        priced = (last, kinds.block)

        def work(part: slice) -> Floats:
            loads: Floats = np.zeros(last)
            columns = (kinds.arrivals[part], kinds.prompts[part], kinds.outputs[part])
            parts = (*columns, kinds.counts[part], units[part])
            _pause(parts, windows[part], padded, priced, costs[part], starts[part], loads)
            return loads

        steps = (windows + 1) * windows.clip(1, kinds.outputs)
        return costs, starts, np.sum(self._in_slices(work, steps), axis=0)

    def _in_slices(self, work: Callable[[slice], Any], steps: Integers) -> list[Any]:
        """Do so many steps of each kind of work in slices; return the results."""
        sums = np.cumsum(steps)
        total = int(sums[-1]) if len(sums) else 0
        threads = self._threads if total > self._few_steps else 1
        cuts = np.linspace(0, total, threads * -(-total // (_SLICE * threads)) + 1)[1:-1]
        edges = [0, *np.searchsorted(sums, cuts).tolist(), len(sums)]
        slices = [slice(*edge) for edge in pairwise(edges)]
        done: list[Any] = []
        with ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool:
            for place in range(0, len(slices), threads):
                if self._budget.over():
                    raise Stopped
                batch = slices[place : place + threads]
                done += map(work, batch) if pool is None else pool.map(work, batch)
        return done

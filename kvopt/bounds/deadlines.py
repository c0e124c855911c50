"""``deadline_ceiling``: no scheduler lets more requests attain their deadlines.

Charge prices p_t >= 0 for each token held at time t, and let g_i be the least that request i pays
if it attains.  Those that attain pay at most M sum_t p_t together, and each of them counts 1, which
is at most max(0, 1 - g_i) + g_i.  So at most

    sum_i max(0, 1 - g_i)  +  M sum_t p_t

attain, whatever the prices are.  In seconds prices are of time of the machine, of which request i
takes X_i: its g_i is the price of the X_i cheapest nanoseconds between arrival and deadline.
``docs/deadlines.md`` has the proofs, and what holds with pauses and with prompts in pieces.

Prices are found in floats, by steps against a slope of the ceiling, and evaluated in integers.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from kvopt.bounds.kinds import Floats, Integers
from kvopt.bounds.seconds_evaluation import shares
from kvopt.kernels.compiling import working_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime, Line
from kvopt.model.deadlines import Aim
from kvopt.model.instance import Instance
from kvopt.model.scopes import Scope
from kvopt.search.proofs import DeadlinePrices

_CELLS_OF_A_DEADLINE = 32
"""Cells of equal prices in a typical deadline."""
_LEAST_CELLS, _MOST_CELLS = 64, 1024
_LONGEST = 2**31
"""Rounds from which on sums over them do not fit into 64 bits; then there are no prices."""
_LARGEST = 2**61
"""The same of a nanosecond."""
_BITS = 24
"""Of the largest numerator."""
_STEPS, _PATIENCE, _MEMORY = 400, 20, 0.8
"""Most steps; how many may fail before they become shorter; how much of the last ones is kept."""
_FIRST_AIM, _LAST_AIM = 0.02, 5e-4
"""What a step hopes to gain, as a share of the ceiling: at first, and at the end."""
_LEAST_SCALE = 1e-2
"""Least size of a price, as a share of the largest one, where steps are scaled by sizes."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How many requests can attain their deadlines at most.

    Parameters
    ----------
    value
        That number.
    sure_misses
        How many cannot even alone.
    proof
        Prices that prove it.
    costs
        About what each request pays at least, as a share of what it counts; infinite if it misses
        for sure.
    """

    value: int
    sure_misses: int
    proof: DeadlinePrices
    costs: Floats


def workers_of(instance: Instance) -> int:
    """Return how many servers there are."""
    return int(getattr(instance, "workers", 1))


def least_times(instance: Instance, aim: Aim, model: BatchTime | None) -> list[int]:
    """Return the least time from arrival to what is aimed at, of each request alone."""
    if aim is Aim.FIRST_TOKEN:
        instance = _of_first_tokens(instance)
    if model is None:
        return [request.output for request in instance]
    alone: list[int] = shares(instance, model, model.lines, object).alone.tolist()
    return alone


def deadline_ceiling(
    instance: Instance,
    allowed: Sequence[int],
    aim: Aim = Aim.COMPLETION,
    model: BatchTime | None = None,
    *,
    scope: Scope = Scope.RUNS,
    time_limit: float = math.inf,
    should_stop: Callable[[], bool] = lambda: False,
) -> Ceiling:
    """Return a proved ceiling on how many requests attain their deadlines.

    Parameters
    ----------
    instance, model
        The problem; without a model in rounds.
    allowed
        How long each request may take, in rounds or nanoseconds.
    aim
        What should be there by then.
    scope
        What schedules may do.
    time_limit, should_stop
        When to take the prices as they are.

    Examples
    --------
    >>> from kvopt import Request
    >>> three = Instance(4, [Request(0, 2, 2) for _ in range(3)])
    >>> deadline_ceiling(three, [4, 4, 4]).value
    2
    """
    end = working_time() + time_limit
    arrivals = [request.arrival for request in instance] if model is None else arrivals_ns(instance)
    alone = least_times(instance, aim, model)
    can = [i for i, (own, most) in enumerate(zip(alone, allowed, strict=True)) if own <= most]
    busy = sum(alone[i] for i in can)
    window = _Window.of(instance, arrivals, allowed, can, busy)
    costs = np.full(len(instance), np.inf)
    best, prices = None, np.zeros(0)
    if window.last and (model is not None or window.last < _LONGEST):
        kinds = list(_kinds(instance, aim, model, scope, window))
        starts = [(kind.evaluate(first := kind.first_prices())[0], first, kind) for kind in kinds]
        _, prices, best = min(starts, key=lambda row: row[0])
        prices = _descended(best, prices, lambda: should_stop() or working_time() > end)
        costs[can] = best.costs_at(prices)
    else:
        costs[can] = 0.0
    proof = DeadlinePrices((), (), 1) if best is None else best.rounded(prices)
    value = len(can) if best is None else min(len(can), best.proved(proof))
    return Ceiling(value, len(instance) - len(can), proof, costs)


def _of_first_tokens(instance: Instance) -> Instance:
    short = [replace(request, output=1, predicted=None) for request in instance]
    return replace(instance, requests=short)


@dataclass(frozen=True)
class _Window:
    """When requests may be active, from the first arrival on, and cells of equal prices.

    Parameters
    ----------
    instance
        Those that can attain.
    first
        The first arrival.
    begins, ends
        Of each.
    width, count
        Of the cells.
    """

    instance: Instance
    first: int
    begins: Integers
    ends: Integers
    width: int
    count: int

    @classmethod
    def of(
        cls, instance: Instance, arrivals: Sequence[int], allowed: Sequence[int], can: list[int],
        busy: int,
    ) -> _Window:  # fmt: skip
        """Return those of the requests that can; no price is needed when nothing has to wait."""
        begun = [arrivals[i] for i in can]
        first = min(begun, default=0)
        ends = [arrivals[i] + allowed[i] - first for i in can]
        last = min(max(ends, default=0), max(begun, default=0) - first + busy)
        typical = max(sorted(allowed[i] for i in can)[len(can) // 2] if can else 1, 1)
        wanted = max(_LEAST_CELLS, _CELLS_OF_A_DEADLINE * last // typical)
        wanted = min(wanted, _MOST_CELLS)
        widths = {max(1, -(-last // count)) for count in range(wanted, wanted * 5 // 4)}
        width = min(widths, key=lambda width: (-last % width, -width))  # the last one is full
        some = replace(instance, requests=[instance.requests[i] for i in can])
        if max(ends, default=0) >= _LARGEST:  # which 64 bits might not hold
            return cls(some, first, np.zeros(0), np.zeros(0), 1, 0)
        begins = np.array([arrival - first for arrival in begun], dtype=np.int64)
        return cls(some, first, begins, np.array(ends, dtype=np.int64), width, -(-last // width))

    @property
    def last(self) -> int:
        """Return the last time of a cell."""
        return self.count * self.width

    def borders(self) -> list[int]:
        """Return where cells begin and end."""
        return [self.first + cell * self.width for cell in range(self.count + 1)]


class _Ascending:
    """What kinds of ceilings share: prices, and what they prove."""

    lines: tuple[int, ...] = ()
    volumes: Floats

    def __init__(self, window: _Window) -> None:
        self.window = window
        self.memory = window.instance.memory
        self.capacity = float(workers_of(window.instance) * window.width)
        """Of a cell, in the unit of volumes."""

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what each request pays, and what those that pay below 1 hold in each cell."""
        raise NotImplementedError

    def integer_costs(self, proof: DeadlinePrices) -> Iterator[int]:
        """Yield what each request pays, times the denominator."""
        raise NotImplementedError

    def first_prices(self) -> Floats:
        """Return the same price at all times, the best if only volumes counted."""
        sizes = np.sort(self.volumes)
        total = self.capacity * self.window.count
        place = min(int(np.searchsorted(np.cumsum(sizes), total)), len(sizes) - 1)
        return np.full(self.window.count, 1.0 / sizes[place])

    def evaluate(self, prices: Floats) -> tuple[float, Floats]:
        """Return the ceiling in floats, and a slope of it."""
        costs, loads = self.least(prices)
        value = float(np.maximum(0.0, 1.0 - costs).sum() + self.capacity * prices.sum())
        return value, self.capacity - loads

    def costs_at(self, prices: Floats) -> Floats:
        """Return what each request pays."""
        return self.least(prices)[0]

    def rounded(self, prices: Floats) -> DeadlinePrices:
        """Return prices in integers, equal ones next to each other as one."""
        prices = prices / self.unit
        most, volume = float(prices.max(initial=0.0)), float(self.volumes.max(initial=1.0))
        if not most:
            return DeadlinePrices((), (), 1, self.lines)
        bits = _BITS - math.ceil(math.log2(most))
        if not self.lines:  # costs of runs have to fit into 64 bits
            bits = min(bits, 60 - math.ceil(math.log2(most * volume + 1.0)))
        scale = 1 << max(bits, 0)
        cells = zip(np.rint(prices * float(scale)).tolist(), self.window.borders(), strict=False)
        rows = [(next(group)[1], int(price)) for price, group in groupby(cells, lambda c: c[0])]
        borders = [*(border for border, _ in rows), self.window.borders()[-1]]
        return DeadlinePrices(tuple(borders), tuple(price for _, price in rows), scale, self.lines)

    unit = 1.0
    """By how much the unit of volumes is larger than that in integers."""

    def proved(self, proof: DeadlinePrices) -> int:
        """Return the ceiling that prices prove, in integers."""
        one = proof.denominator
        if not proof.numerators:
            return len(self.window.instance)
        total = sum(max(0, one - cost) for cost in self.integer_costs(proof))
        total += workers_of(self.window.instance) * self.memory * proof.paid
        return total // one


class _Runs(_Ascending):
    """In rounds, where a request that started runs to its end."""

    def __init__(self, window: _Window, latest: Integers) -> None:
        super().__init__(window)
        requests = window.instance.requests
        self.capacity *= self.memory
        self._shape = (
            window.begins,
            np.array([r.prompt for r in requests], dtype=np.int64),
            np.array([r.output for r in requests], dtype=np.int64),
            latest,
        )
        self.volumes = np.array([r.volume for r in requests], dtype=float)

    def _cheapest(self, prices: np.ndarray) -> tuple[np.ndarray, Integers]:  # type: ignore[type-arg]
        from kvopt.bounds.deadline_costs import least_costs, sums_of  # it loads numba

        costs, starts = np.zeros(len(self.volumes), dtype=prices.dtype), self._shape[3].copy()
        sums = sums_of(prices, self.window.width)
        least_costs(*self._shape, prices, *sums, self.window.width, costs, starts)
        return costs, starts

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what the cheapest runs pay, and what they hold."""
        from kvopt.bounds.deadline_costs import loads_of

        costs, starts = self._cheapest(prices)
        starts[costs >= 1.0] = -1
        loads = np.zeros(len(prices))
        loads_of(self._shape[1], self._shape[2], starts, self.window.width, loads)
        return costs, loads

    def integer_costs(self, proof: DeadlinePrices) -> Iterator[int]:
        """Yield what the cheapest runs pay."""
        sizes = np.diff(proof.times) // self.window.width
        costs, _ = self._cheapest(np.repeat(np.array(proof.numerators, dtype=np.int64), sizes))
        yield from costs.tolist()


class _Fills(_Ascending):
    """Where a request is active at the cheapest times that it can be.

    Parameters
    ----------
    window
        The requests, and when.
    amounts, tops, slope
        How long each is active, what it holds at the cheapest time, and by how much that falls
        from one unit of time to the next: 1 in rounds, 0 in seconds.
    lines
        Of the model, in seconds.
    """

    def __init__(
        self, window: _Window, amounts: list[int], tops: list[int], slope: int,
        lines: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        super().__init__(window)
        self.lines, self._slope = lines, slope
        self.unit = float(self.memory) if lines else 1.0
        self._integers = list(zip(amounts, tops, strict=True))
        self.capacity *= self.memory / self.unit
        self._amounts = np.array(amounts, dtype=float) / self.unit
        self._tops = np.array(tops, dtype=float)
        held = self._tops - slope * (self._amounts - 1.0) / 2.0
        self.volumes = self._amounts * held

    def least(self, prices: Floats) -> tuple[Floats, Floats]:
        """Return what the cheapest times cost, and what is held then."""
        from kvopt.bounds.deadline_costs import fill_cheapest  # it loads numba

        costs, loads = np.zeros(len(self.volumes)), np.zeros(len(prices))
        fill_cheapest(
            self.window.begins.astype(float), self.window.ends.astype(float), self._amounts,
            self._tops, float(self._slope), prices, float(self.window.width), costs, loads,
        )  # fmt: skip
        return costs, loads

    def integer_costs(self, proof: DeadlinePrices) -> Iterator[int]:
        """Yield what the cheapest times cost."""
        rate = self.memory if self.lines else 1
        borders = [time - self.window.first for time in proof.times]
        cells = list(zip(borders, borders[1:], proof.numerators, strict=False))
        windows = zip(self.window.begins.tolist(), self.window.ends.tolist(), strict=True)
        for (left, top), (begin, end) in zip(self._integers, windows, strict=True):
            part = cells[max(bisect_right(borders, begin) - 1, 0) : bisect_left(borders, end)]
            sizes = [(price, rate * (min(end, b) - max(begin, a))) for a, b, price in part]
            free = rate * (end - begin) - sum(size for _, size in sizes)
            cost = 0
            for price, size in sorted([(0, free), *sizes]):
                if left <= 0:
                    break
                size = min(size, left)
                cost += price * (size * top - self._slope * (size * (size - 1) // 2))
                top -= self._slope * size
                left -= size
            yield cost


def _kinds(
    instance: Instance, aim: Aim, model: BatchTime | None, scope: Scope, window: _Window
) -> Iterator[_Ascending]:
    """Yield what may give a ceiling."""
    first = aim is Aim.FIRST_TOKEN
    some = _of_first_tokens(window.instance) if first else window.instance
    if model is not None:
        for lines in _lines(model, scope.covers(Scope.CHUNKS)):
            chosen: list[Line] = [model.lines[i] for i in lines]
            takes = shares(some, model, chosen, object).takes.tolist()
            yield _Fills(window, takes, [1] * len(some), 0, lines)
    elif scope.covers(Scope.PAUSES):
        yield _Fills(window, [r.output for r in some], [r.peak for r in some], 1)
    else:
        outputs = np.array([request.output for request in some], dtype=np.int64)
        yield _Runs(window, window.ends - outputs)


def _lines(model: BatchTime, chunks: bool) -> Iterator[tuple[int, ...]]:
    """Yield lines whose largest counts; only a single one covers prompts in pieces."""
    count = len(model.lines)
    yield from ((line,) for line in range(count))
    if count > 1 and not chunks:
        yield tuple(range(count))


def _descended(kind: _Ascending, prices: Floats, is_over: Callable[[], bool]) -> Floats:
    """Return better prices: steps against a mixture of the last slopes, each scaled by its price.

    A step is as long as it would take to gain what is hoped for; that is halved when too many
    steps in a row gained little.
    """
    value, slope = kind.evaluate(prices)
    best, at, hoped = (value, prices, slope), prices, _FIRST_AIM * value
    direction, idle = np.zeros_like(prices), 0
    for _ in range(_STEPS):
        if is_over() or hoped <= _LAST_AIM * best[0]:
            break
        direction = slope + _MEMORY * direction
        free = np.where((at <= 0.0) & (direction > 0.0), 0.0, direction)
        scale = np.maximum(best[1], _LEAST_SCALE * best[1].max(initial=0.0))
        steepness = float((scale * free * free).sum())
        if steepness == 0.0:
            break
        at = np.maximum(at - (value - best[0] + hoped) / steepness * scale * free, 0.0)
        value, slope = kind.evaluate(at)
        idle = 0 if value < best[0] - 0.05 * hoped else idle + 1
        if value < best[0]:
            best = value, at, slope
        if idle >= _PATIENCE:
            hoped, idle = hoped / 2.0, 0
            value, at, slope = best
            direction = np.zeros_like(prices)
    return best[1]

"""An exhaustive search forward in time, over all schedules that prices have not ruled out.

With integer prices, bound L and largest sums R_t, the cost of a schedule is

    L + sum_i excess_i(k_i) + sum_t (R_t - F_t(what is active at t)),

and no term is negative.  So a partial schedule is dropped once its terms exceed what a better
schedule may cost.  Partial schedules that leave the same work are one, the cheapest of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kvopt.compiled import compiled
from kvopt.configurations.evaluation import Evaluation
from kvopt.configurations.states import Integers, States

_WAITING, _DONE = 0, -1


class TooWide(Exception):
    """Raised when more partial schedules survive than there is room for."""


@dataclass(frozen=True)
class Layer:
    """Partial schedules that have decided every start before one round.

    Parameters
    ----------
    lefts
        For each of them and each request: completion round, `_WAITING` or `_DONE`.
    spent
        The terms above so far.
    parents
        Where each of them comes from in the layer before.
    """

    ends: Integers
    spent: Integers
    parents: Integers


def search_below(
    states: States,
    twins: Integers,
    evaluation: Evaluation,
    target: int,
    most: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[int, ...] | None:
    """Return the starts of a best schedule with a total latency below the target.

    None means that there is none among the starts that the evaluation has left.
    """
    budget = (target - 1) * evaluation.denominator - evaluation.total
    last = evaluation.excesses.shape[1] - 1
    later = np.minimum.accumulate(evaluation.excesses[:, ::-1], axis=1)[:, ::-1].copy()
    if (evaluation.excesses[:, last] <= budget).any():
        raise TooWide("a start after the last priced time is not ruled out")
    count = len(states.outputs)
    first = Layer(
        np.zeros((1, count), dtype=np.int32), np.zeros(1, dtype=np.int64), np.zeros(1, np.int32)
    )
    layers = [first]
    if budget < 0:
        return None
    for now in range(last):
        if should_stop():
            raise TooWide("stopped")
        layer = _next_layer(states, twins, evaluation, later, layers[-1], now, budget, most)
        if not len(layer.spent):
            return None
        layers.append(layer)
    return _starts(layers, states.outputs)


def _next_layer(
    states: States,
    twins: Integers,
    evaluation: Evaluation,
    later: Integers,
    layer: Layer,
    now: int,
    budget: int,
    most: int,
) -> Layer:
    room = min(most, max(1024, 8 * len(layer.spent)))
    while True:
        ends = np.empty((room, layer.ends.shape[1]), dtype=np.int32)
        spent = np.empty(room, dtype=np.int64)
        parents = np.empty(room, dtype=np.int32)
        slots = np.full(1 << (2 * room).bit_length(), -1, dtype=np.int32)
        found = _expand(
            layer.ends, layer.spent, now, budget, states.memory,
            states.arrivals, states.outputs, states.firsts, states.holds, twins,
            evaluation.excesses, later, evaluation.prices[now + 1],
            evaluation.largest[now + 1], ends, spent, parents, slots,
        )  # fmt: skip
        if found >= 0:
            return Layer(ends[:found].copy(), spent[:found].copy(), parents[:found].copy())
        if room == most:
            raise TooWide(f"more than {most:,} partial schedules survive at round {now}")
        room = min(most, 8 * room)


@compiled
def _fits(ends: Integers, peaks: Integers, now: int, memory: int) -> bool:
    """Whether the active requests fit at each of their completions."""
    for m in range(len(ends)):
        end = ends[m]
        if end > now:
            held = 0
            for j in range(len(ends)):
                if ends[j] >= end:
                    held += peaks[j] - (ends[j] - end)
            if held > memory:
                return False
    return True


@compiled
def _slot(row: Integers, now: int, ends: Integers, slots: Integers) -> int:
    """Return the place in a hash table of what a partial schedule leaves to do."""
    key = 0
    for end in row:
        key = (key ^ (0 if end == 0 else max(end - now, 1))) * 1_099_511_628_211
    place = (key ^ (key >> 32)) & (len(slots) - 1)
    while slots[place] >= 0:
        other = ends[slots[place]]
        same = True
        for i in range(len(row)):
            if other[i] != (-1 if 0 < row[i] <= now + 1 else row[i]) and row[i] != -1:
                same = False
                break
            if row[i] == -1 and other[i] != -1:
                same = False
                break
        if same:
            break
        place = (place + 1) & (len(slots) - 1)
    return place


@compiled
def _expand(
    ends: Integers, spent: Integers, now: int, budget: int, memory: int,
    arrivals: Integers, outputs: Integers, firsts: Integers, holds: Integers, twins: Integers,
    excesses: Integers, later: Integers, prices: Integers, largest: int,
    new_ends: Integers, new_spent: Integers, parents: Integers, slots: Integers,
) -> int:  # fmt: skip
    """Start every set of requests that may start now; return how many partial schedules result."""
    count = ends.shape[1]
    peaks = holds[firsts]
    found = 0
    row = np.empty(count, dtype=np.int32)
    chosen = np.empty(count, dtype=np.int64)
    for number in range(len(spent)):
        row[:] = ends[number]
        cost = spent[number]  # with what the waiting requests will cost at least
        value = 0
        for i in range(count):
            if row[i] == 0:
                cost += later[i, now + 1]
            elif row[i] > now:
                value += prices[firsts[i] + row[i] - now - 1]
        depth, i, visit = 0, 0, True
        while True:
            total = cost + largest - value
            if visit and total <= budget:
                for j in range(count):
                    if row[j] == 0:
                        total -= later[j, now + 1]
                place = _slot(row, now, new_ends, slots)
                at = slots[place]
                if at < 0:
                    if found == len(new_spent):
                        return -1
                    at = found
                    slots[place] = at
                    for j in range(count):
                        new_ends[at, j] = -1 if 0 < row[j] <= now + 1 else row[j]
                    new_spent[at], parents[at] = total, number
                    found += 1
                elif total < new_spent[at]:
                    new_spent[at], parents[at] = total, number
            visit = False
            while i < count and not visit:
                may = row[i] == 0 and arrivals[i] <= now
                may = may and (twins[i] < 0 or row[twins[i]] != 0)
                if may:
                    extra = excesses[i, now] - later[i, now + 1]
                    if cost + extra <= budget:
                        row[i] = now + outputs[i]
                        visit = _fits(row, peaks, now, memory)
                        if visit:
                            cost += extra
                            value += prices[firsts[i] + outputs[i] - 1]
                            chosen[depth] = i
                            depth += 1
                        else:
                            row[i] = 0
                i += 1
            if not visit:
                if depth == 0:
                    break
                depth -= 1
                i = chosen[depth]
                row[i] = 0
                cost -= excesses[i, now] - later[i, now + 1]
                value -= prices[firsts[i] + outputs[i] - 1]
                i += 1
    return found


def _starts(layers: list[Layer], outputs: Integers) -> tuple[int, ...]:
    """Follow the cheapest complete schedule back to its starts."""
    at = int(layers[-1].spent.argmin())
    starts = np.zeros(len(outputs), dtype=np.int64)
    for now in range(len(layers) - 1, 0, -1):
        parent = int(layers[now].parents[at])
        begun = (layers[now].ends[at] != _WAITING) & (layers[now - 1].ends[parent] == _WAITING)
        starts[begun] = now - 1
        at = parent
    return tuple(starts.tolist())

"""One round of a search forward in time: from labels to the labels that extend them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kvopt.bounds.configurations.labels import (
    NO_COMPLETIONS,
    NO_LOOKAHEAD,
    WAITING,
    CompletionTable,
    Horizon,
    Integers,
    Layer,
    Round,
)
from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import compiled
from kvopt.kernels.parallel import map_ranges

_NEVER = 2**30
"""A round later than all; times a number of requests it still fits into 64 bits."""
_PART = 20_000
"""Labels that are extended between two questions whether to stop."""


class TooWide(Exception):
    """Raised when more labels are left than the label limit."""


class Stopped(Exception):
    """Raised when the search was asked to stop."""


def next_layer(
    states: States,
    twins: Integers,
    step: Round,
    layer: Layer,
    label_limit: int,
    should_stop: Callable[[], bool],
    threads: int = 1,
    lookahead: Horizon = NO_LOOKAHEAD,
    completions: CompletionTable = NO_COMPLETIONS,
) -> Layer:
    """Return all continuations that are worth keeping, as far as can be seen.

    Where threads share the work a label may come once from each of them.  Memory is checked at
    completions of active requests only: Lemma 1 of docs/configurations.md.

    Raises
    ------
    TooWide
        If they are more than ``label_limit``.
    Stopped
        If it was asked to stop.
    """

    def work(begin: int, end: int) -> Layer:
        return _continued(
            states, twins, step, layer, (begin, end), label_limit, should_stop, lookahead,
            completions,
        )  # fmt: skip

    parts = map_ranges(work, len(layer.spent), threads)
    if sum(len(part.spent) for part in parts) > label_limit:
        raise _too_wide(label_limit, step)
    if len(parts) == 1:
        return parts[0]
    return Layer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _too_wide(label_limit: int, step: Round) -> TooWide:
    return TooWide(f"more than {label_limit:,} labels at round {step.now}")


def _continued(
    states: States,
    twins: Integers,
    step: Round,
    layer: Layer,
    which: tuple[int, int],
    label_limit: int,
    should_stop: Callable[[], bool],
    lookahead: Horizon,
    completions: CompletionTable,
) -> Layer:
    """Return the continuations of some of the labels."""
    size = min(label_limit, max(1024, 8 * (which[1] - which[0])))
    while True:
        found = Layer(
            np.empty((size, layer.labels.shape[1]), dtype=layer.labels.dtype),
            np.empty(size, dtype=np.int64),
            np.empty(size, dtype=np.int64),
            np.empty(size, dtype=np.int32),
        )
        count = _expanded(
            states, twins, step, layer, which, found, should_stop, lookahead, completions
        )
        if count >= 0:
            return Layer(*(part[:count] for part in found))
        if size == label_limit:
            raise _too_wide(label_limit, step)
        size = min(label_limit, 8 * size)


def _expanded(
    states: States,
    twins: Integers,
    step: Round,
    layer: Layer,
    which: tuple[int, int],
    found: Layer,
    should_stop: Callable[[], bool],
    lookahead: Horizon,
    completions: CompletionTable,
) -> int:
    """Fill in the continuations, a part at a time; return how many there are, -1 if too many."""
    slots = np.full(1 << (2 * len(found.spent)).bit_length(), -1, dtype=np.int32)
    peaks = states.holds[states.firsts]
    count = 0
    for begin in range(*which, _PART):
        if should_stop():
            raise Stopped
        part = (begin, min(begin + _PART, which[1]))
        count = _expand(
            layer, part, step, states.memory, states.arrivals, states.outputs, states.firsts,
            peaks, twins, lookahead, completions, found, count, slots,
        )  # fmt: skip
        if count < 0:
            break
    return count


@compiled
def _fits(label: Integers, active: Integers, many: int, peaks: Integers, memory: int) -> bool:
    """Whether the active requests fit at each of their completions."""
    for one in active[:many]:
        held = 0
        for other in active[:many]:
            if label[other] >= label[one]:
                held += peaks[other] - (label[other] - label[one])
        if held > memory:
            return False
    return True


@compiled
def _first_completion(
    label: Integers, active: Integers, many: int, peaks: Integers, memory: int
) -> tuple[int, int]:
    """Return when the first active request completes, and what is free then.

    Most requests that do not fit do not fit there, or at their own completion before.
    """
    end = _NEVER
    for i in active[:many]:
        end = min(end, label[i])
    for i in active[:many]:
        memory -= peaks[i] - (label[i] - end)
    return end, memory


@compiled
def _settled(end: int, now: int) -> int:
    """Return a completion round as the next layer keeps it."""
    return -1 if 0 < end <= now + 1 else end


@compiled
def _slot(label: Integers, now: int, labels: Integers, slots: Integers) -> int:
    """Return the place of a label in a hash table of the labels found so far."""
    key = 0
    for end in label:
        key = (key ^ (_settled(end, now) + 2)) * 1_099_511_628_211
    place = (key ^ (key >> 32)) & (len(slots) - 1)
    while slots[place] >= 0:
        other, same = labels[slots[place]], True
        for i in range(len(label)):
            if other[i] != _settled(label[i], now):
                same = False
                break
        if same:
            break
        place = (place + 1) & (len(slots) - 1)
    return place


@compiled
def fill_slacks(
    labels: Integers, peaks: Integers, firsts: Integers, now: int, memory: int,
    lookahead: Horizon, found: Integers,
) -> None:  # fmt: skip
    """Fill in the least slacks of the times after now + 1."""
    active = np.empty(labels.shape[1], dtype=np.int64)
    horizon = len(lookahead.gains)
    free = np.empty(horizon + lookahead.spots[-1], dtype=np.int64)
    slacks = np.empty(horizon, dtype=np.int64)
    for number in range(len(labels)):
        many = 0
        for i in range(labels.shape[1]):
            if labels[number, i] > now + 1:
                active[many] = i
                many += 1
        _begin(now, memory, lookahead, free, slacks)
        _add_members(labels[number], active[:many], peaks, firsts, now, lookahead, free, slacks)
        found[number] = _least_slack(lookahead, free, slacks, 2**62)


@compiled
def _begin(now: int, memory: int, lookahead: Horizon, free: Integers, slacks: Integers) -> None:
    """Fill in what is free and the slacks while nothing is active."""
    free[:] = memory
    slacks[:] = lookahead.largest[now + 2 : now + 2 + len(slacks)]


@compiled
def _add_members(
    label: Integers, members: Integers, peaks: Integers, firsts: Integers, now: int,
    lookahead: Horizon, free: Integers, slacks: Integers,
) -> None:  # fmt: skip
    """Take out what some members of a label hold, and what they are worth."""
    first = now + 2
    for i in members:
        for time in range(first, min(label[i] + 1, first + len(free))):
            free[time - first] -= peaks[i] - (label[i] - time)
        for time in range(first, min(label[i] + 1, first + len(slacks))):
            slacks[time - first] -= lookahead.prices[time, firsts[i] + label[i] - time]


@compiled
def _least_slack(lookahead: Horizon, free: Integers, slacks: Integers, enough: int) -> int:
    """Add up what no request can add, until that is more than enough."""
    gains, spots = lookahead.gains, lookahead.spots
    total = 0
    for ahead in range(len(gains)):
        gain = gains[ahead, 0, free[ahead]]
        for spot in range(1, len(spots)):
            gain = min(gain, gains[ahead, spot, free[ahead + spots[spot]]])
        total += max(0, slacks[ahead] - gain)
        if total > enough:
            break
    return total


@compiled
def _completion(label: Integers, active: Integers, now: int, table: CompletionTable) -> int:
    """Return what the rest costs at least, by the active requests that go on after now + 1."""
    if not len(table.keys):
        return 0
    key = np.uint64(0)
    for i in active:
        if table.ends[i, label[i]] > now + 1:
            key += table.signs[i, label[i]]
    last = np.uint64(len(table.keys) - 1)
    place = np.int64((key ^ (key >> np.uint64(32))) & last)
    while table.costs[place] >= 0:
        if table.keys[place] == key:
            return int(table.costs[place])
        place = (place + 1) & np.int64(last)
    return table.cut


def completions(labels: Integers, now: int, table: CompletionTable) -> Integers:
    """Return what the rest costs at least for labels that have decided the starts of a round."""
    found = np.zeros(len(labels), dtype=np.int64)
    if len(table.keys):
        _fill_completions(labels, now, table, found)
    return found


@compiled
def _fill_completions(labels: Integers, now: int, table: CompletionTable, found: Integers) -> None:
    for number in range(len(labels)):
        active = np.flatnonzero(labels[number] > now + 1)
        found[number] = _completion(labels[number], active, now, table)


@compiled
def _expand(
    layer: Layer, part: tuple[int, int], step: Round, memory: int, arrivals: Integers,
    outputs: Integers, firsts: Integers, peaks: Integers, twins: Integers,
    lookahead: Horizon, completions: CompletionTable, found: Layer, count: int, slots: Integers,
) -> int:  # fmt: skip
    """Start every set of requests that may start now; return how many labels that makes, or -1.

    Sets are visited depth first, each after those it contains in front.
    """
    now, budget, prices = step.now, step.budget, step.prices
    reduced_costs, later = step.reduced_costs, step.later
    size = layer.labels.shape[1]
    label = np.empty(size, dtype=layer.labels.dtype)
    # Requests that are active after this round: of before, then those that start.
    active = np.empty(size, dtype=np.int64)
    # Of the look-ahead: what is free and slack for a label, and for its continuations.
    horizon = len(lookahead.gains)
    freer = np.empty(horizon + lookahead.spots[-1], dtype=np.int64)
    larger = np.empty(horizon, dtype=np.int64)
    free, slacks = freer.copy(), larger.copy()
    # What requests from the i-th on may save by a start now instead of later.
    savings = np.zeros(size + 1, dtype=np.int64)
    for number in range(part[0], part[1]):
        label[:] = layer.labels[number]
        began, coming, value, many = layer.began[number], 0, 0, 0
        for i in range(size - 1, -1, -1):
            savings[i] = savings[i + 1]
            if label[i] == WAITING:
                coming += later[i]
                if arrivals[i] <= now:
                    savings[i] += max(0, later[i] - reduced_costs[i])
            elif label[i] > now:
                value += prices[firsts[i] + label[i] - now - 1]
                active[many] = i
                many += 1
        spent, before = layer.spent[number], many
        i, visit, seen = 0, True, False
        while True:
            total = spent + step.largest - value
            if (
                visit
                and total + coming <= budget
                and total + _completion(label, active[:many], now, completions) <= budget
            ):
                place = _slot(label, now, found.labels, slots)
                at = slots[place]
                if at < 0:
                    if not seen:
                        seen = True
                        _begin(now, memory, lookahead, freer, larger)
                        _add_members(
                            label, active[:before], peaks, firsts, now, lookahead, freer, larger
                        )
                    free[:], slacks[:] = freer, larger
                    new = active[before:many]
                    _add_members(label, new, peaks, firsts, now, lookahead, free, slacks)
                    left = budget - total - coming
                    if _least_slack(lookahead, free, slacks, left) <= left:
                        if count == len(found.spent):
                            return -1
                        at = count
                        count += 1
                        slots[place] = at
                        for j in range(size):
                            found.labels[at, j] = _settled(label[j], now)
                        found.spent[at] = total + 1
                if at >= 0 and total < found.spent[at]:
                    found.spent[at], found.began[at] = total, began
                    found.parents[at] = number
            visit = False
            end, room = _first_completion(label, active, many, peaks, memory)
            while i < size and not visit:
                late = now + outputs[i] - end
                if (
                    label[i] == WAITING
                    and arrivals[i] <= now
                    and peaks[i] <= room + max(late, -many * late)
                    and spent + coming + reduced_costs[i] - later[i] - savings[i + 1] <= budget
                    and (twins[i] < 0 or label[twins[i]] != WAITING)
                ):
                    label[i] = now + outputs[i]
                    active[many] = i
                    visit = _fits(label, active, many + 1, peaks, memory)
                    if visit:
                        spent += reduced_costs[i]
                        coming -= later[i]
                        began += now
                        value += prices[firsts[i] + outputs[i] - 1]
                        many += 1
                    else:
                        label[i] = WAITING
                i += 1
            if not visit:
                if many == before:
                    break
                many -= 1
                i = active[many]
                label[i] = WAITING
                spent -= reduced_costs[i]
                coming += later[i]
                began -= now
                value -= prices[firsts[i] + outputs[i] - 1]
                i += 1
    return count

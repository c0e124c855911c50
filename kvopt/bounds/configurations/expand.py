"""One round of a search forward in time: from labels to the labels that extend them."""

from __future__ import annotations

import numpy as np

from kvopt.bounds.configurations.labels import (
    SPOTS,
    WAITING,
    CompletionTable,
    Horizon,
    Integers,
    Layer,
    Round,
)
from kvopt.bounds.configurations.states import States
from kvopt.errors import Stopped
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into
from kvopt.kernels.parallel import map_ranges

_NEVER = 2**30
"""A round later than all; times a number of requests it still fits into 64 bits."""
_PART = 20_000
"""Labels that are extended between two checks of the stop flag."""


class TooWide(Exception):
    """Raised when more labels remain than the label limit."""


def next_layer(
    states: States,
    step: Round,
    layer: Layer,
    label_limit: int,
    limit: Budget,
    threads: int = 1,
) -> Layer:
    """Return all extensions of a label whose least cost is within the budget.

    If threads share the work, each of them may return the same label.  Memory is checked at
    completions of active requests only: Lemma 3.2 of docs/theory.

    Raises
    ------
    TooWide
        If they are more than ``label_limit``.
    Stopped
        If it was asked to stop.
    """
    too_wide = TooWide(f"more than {label_limit:,} labels at round {step.now}")

    def work(first: int, last: int) -> Layer:
        size = min(label_limit, max(1024, 8 * (last - first)))
        while True:  # small arrays first; if they overflow, the range is expanded again
            labels = np.empty((size, layer.labels.shape[1]), dtype=layer.labels.dtype)
            numbers = np.empty((2, size), dtype=np.int64)
            found = Layer(labels, numbers[0], numbers[1], np.empty(size, dtype=np.int32))
            slots = np.full(1 << (2 * size).bit_length(), -1, dtype=np.int32)
            count = 0
            for begin in range(first, last, _PART):
                if limit.over():
                    raise Stopped
                part = (begin, min(begin + _PART, last))
                count = _expand(states, step, layer, part, found, count, slots)
                if count < 0:
                    break
            else:
                return found.only(slice(count))
            if size == label_limit:
                raise too_wide
            size = min(label_limit, 8 * size)

    parts = map_ranges(work, len(layer.spent), threads)
    if sum(len(part.spent) for part in parts) > label_limit:
        raise too_wide
    if len(parts) == 1:
        return parts[0]
    return Layer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


@compiled
def _fits(states: States, label: Integers, active: Integers) -> bool:
    """Whether the active requests fit at each of their completions."""
    for one in active:
        held = 0
        for other in active:
            if label[other] >= label[one]:
                held += states.peaks[other] - (label[other] - label[one])
        if held > states.memory:
            return False
    return True


@compiled
def _first_completion(states: States, label: Integers, active: Integers) -> tuple[int, int]:
    """Return the first completion of an active request and the free memory at it.

    Most requests that do not fit exceed memory there, or at their own earlier completion.
    """
    end, free = _NEVER, states.memory
    for i in active:
        end = min(end, label[i])
    for i in active:
        free -= states.peaks[i] - (label[i] - end)
    return end, free


@compiled
def _settled(end: int, now: int) -> int:
    """Return a completion round as the next layer keeps it."""
    return -1 if 0 < end <= now + 1 else end


@compiled
def _slot(label: Integers, now: int, labels: Integers, slots: Integers) -> int:
    """Return the place of a label in a hash table of the labels found so far."""
    # FNV-1a over the entries.  Labels are compared in full below, so collisions only take time.
    key = np.int64(0)
    for end in label:
        key = (key ^ np.int64(_settled(end, now) + 2)) * np.int64(1_099_511_628_211)
    place = int((key ^ (key >> 32)) & (len(slots) - 1))
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
def fill_slacks(states: States, labels: Integers, horizon: Horizon, found: Integers) -> None:
    """Fill in the least slacks of the times of a horizon."""
    for number in range(len(labels)):
        free, slacks = _nothing_active(states, horizon)
        active = np.flatnonzero(labels[number] >= horizon.first)
        _add_members(states, labels[number], active, horizon, free, slacks)
        found[number] = _least_slack(horizon, free, slacks, 2**62)


@compiled
def _nothing_active(states: States, horizon: Horizon) -> tuple[Integers, Integers]:
    """Return free memory and slack at the times of a horizon while nothing is active."""
    rounds = len(horizon.gains)
    free = np.full(rounds + SPOTS[-1], states.memory)
    return free, horizon.largest[horizon.first : horizon.first + rounds].copy()


@compiled
def _add_members(
    states: States,
    label: Integers,
    members: Integers,
    horizon: Horizon,
    free: Integers,
    slacks: Integers,
) -> None:
    """Subtract the tokens and prices of some members of a label."""
    first = horizon.first
    for i in members:
        end = label[i]
        for time in range(first, min(end + 1, first + len(free))):
            free[time - first] -= states.peaks[i] - (end - time)
        for time in range(first, min(end + 1, first + len(slacks))):
            slacks[time - first] -= horizon.prices[time, states.firsts[i] + end - time]


@compiled
def _least_slack(horizon: Horizon, free: Integers, slacks: Integers, enough: int) -> int:
    """Add up the slack that no request can fill, until the budget is exceeded."""
    total = 0
    for ahead in range(len(horizon.gains)):
        gain = horizon.gains[ahead, 0, free[ahead]]
        for spot in range(1, len(SPOTS)):
            gain = min(gain, horizon.gains[ahead, spot, free[ahead + SPOTS[spot]]])
        total += max(0, slacks[ahead] - gain)
        if total > enough:
            break
    return total


@compiled
def _completion(label: Integers, active: Integers, now: int, table: CompletionTable) -> int:
    """Return a lower bound on the rest, by the active requests that continue after now + 1."""
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
    """Return lower bounds on the rest for labels that have decided the starts of a round."""
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
    states: States,
    step: Round,
    layer: Layer,
    part: tuple[int, int],
    found: Layer,
    count: int,
    slots: Integers,
) -> int:
    """Start every set of requests that may start now; return the number of new labels, or -1.

    Sets are visited depth first, each after its prefixes.
    """
    now, budget, prices, horizon = step.now, step.budget, step.prices, step.horizon
    reduced_costs, later = step.reduced_costs, step.later
    arrivals, outputs, peaks, firsts = states.arrivals, states.outputs, states.peaks, states.firsts
    size = layer.labels.shape[1]
    label = np.empty(size, dtype=layer.labels.dtype)
    # Requests that are active after this round: first those of the label, then those that start.
    active = np.empty(size, dtype=np.int64)
    # Free memory and slack of the look-ahead, for the label and for its children.
    freer, larger = _nothing_active(states, horizon)
    free, slacks = _nothing_active(states, horizon)
    # Reduced costs that requests from the i-th on may save by a start now instead of later.
    savings = np.zeros(size + 1, dtype=np.int64)
    for number in range(part[0], part[1]):
        copy_into(label, layer.labels[number], size)
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
                and total + _completion(label, active[:many], now, step.completions) <= budget
            ):
                place = _slot(label, now, found.labels, slots)
                at = slots[place]
                if at < 0:
                    if not seen:
                        seen = True
                        freer, larger = _nothing_active(states, horizon)
                        _add_members(states, label, active[:before], horizon, freer, larger)
                    copy_into(free, freer, len(freer))
                    copy_into(slacks, larger, len(larger))
                    _add_members(states, label, active[before:many], horizon, free, slacks)
                    left = budget - total - coming
                    if _least_slack(horizon, free, slacks, left) <= left:
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
            end, room = _first_completion(states, label, active[:many])
            while i < size and not visit:
                late = now + outputs[i] - end
                if (
                    label[i] == WAITING
                    and arrivals[i] <= now
                    and peaks[i] <= room + max(late, -many * late)
                    and spent + coming + reduced_costs[i] - later[i] - savings[i + 1] <= budget
                    and (step.twins[i] < 0 or label[step.twins[i]] != WAITING)
                ):
                    label[i] = now + outputs[i]
                    active[many] = i
                    visit = _fits(states, label, active[: many + 1])
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

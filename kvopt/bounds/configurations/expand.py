"""One round of a search forward in time: from labels to the labels that extend them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.labels import (
    OFFSETS,
    WAITING,
    CostToGoTable,
    Integers,
    Layer,
    LookaheadTables,
    Round,
    place_of_key,
)
from kvopt.bounds.configurations.states import States
from kvopt.errors import Stopped
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into
from kvopt.kernels.loop_calls import map_ranges
from kvopt.kernels.random_numbers import hash_pair

_NEVER = 2**30
"""A round later than all; times a number of requests it still fits into 64 bits."""
_PART = 20_000
"""Labels that are extended between two checks of the stop flag."""


class _Visit(NamedTuple):
    """Arrays of a depth-first visit of the sets that may start after a label.

    Parameters
    ----------
    label, settled
        Completion rounds, and the same as the next layer keeps them.
    active
        Active requests: first those of the label, then those that start, in their order.
    held
        Tokens that all of them hold at the completion of each.
    ends, rooms
        For each number of active requests their first completion, and free memory at it.
    savings
        Reduced costs that requests from each on may save by a start now instead of later.
    """

    label: Integers
    settled: Integers
    active: Integers
    held: Integers
    ends: Integers
    rooms: Integers
    savings: Integers


class TooWide(Exception):
    """Raised when more labels remain than the label limit."""


def next_layer(
    states: States, step: Round, layer: Layer, label_limit: int, limit: Budget, threads: int = 1
) -> Layer:
    """Return all extensions of a label whose least cost is within the gap.

    If threads share the work, each of them may return the same label.  Memory is checked at
    completions of active requests only: Lemma 3.2 of docs/theory.  More than ``label_limit`` raise
    `TooWide`.
    """
    too_wide = TooWide(f"more than {label_limit:,} labels at round {step.now}")

    def work(first: int, last: int) -> Layer:
        children = _room_for(min(label_limit, max(1024, 8 * (last - first))), layer)
        slots = _empty_slots(len(children.spent))
        count, begin = 0, first
        while begin < last:
            if limit.over():
                raise Stopped
            end = min(begin + _PART, last)
            count, begin = _expand(states, step, layer, (begin, end), children, count, slots)
            if begin < end:  # no room for the children of this label: they are visited again
                if len(children.spent) == label_limit:
                    raise too_wide
                children = _grown(children, min(label_limit, 8 * len(children.spent)))
                slots = _empty_slots(len(children.spent))
                _fill_slots(children.labels, count, slots)
        return children.only(slice(count))

    parts = map_ranges(work, len(layer.spent), threads)
    if sum(len(part.spent) for part in parts) > label_limit:
        raise too_wide
    if len(parts) == 1:
        return parts[0]
    return Layer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _room_for(size: int, layer: Layer) -> Layer:
    """Return an empty layer with room for so many labels."""
    labels = np.empty((size, layer.labels.shape[1]), dtype=layer.labels.dtype)
    numbers = np.empty((2, size), dtype=np.int64)
    return Layer(labels, numbers[0], numbers[1], np.empty(size, dtype=np.int32))


def _grown(layer: Layer, size: int) -> Layer:
    """Return a layer with more room and the same labels."""
    larger = _room_for(size, layer)
    for target, source in zip(larger, layer, strict=True):
        target[: len(source)] = source
    return larger


def _empty_slots(size: int) -> Integers:
    """Return a hash table for so many labels, at most half full."""
    return np.full(1 << (2 * size).bit_length(), -1, dtype=np.int32)


@compiled
def _slot(key: int, label: Integers, labels: Integers, slots: Integers) -> int:
    """Return the place of a label, settled, in a hash table of labels.

    The key is the sum of the hashes of its entries.  Labels are compared in full, so equal keys
    only take time.
    """
    last = len(slots) - 1
    place = (key >> 20) & last
    while slots[place] >= 0:
        at, same = slots[place], True
        for i in range(len(label)):
            if labels[at, i] != label[i]:
                same = False
                break
        if same:
            break
        place = (place + 1) & last
    return int(place)


@compiled
def _fill_slots(labels: Integers, count: int, slots: Integers) -> None:
    """Fill a hash table with the first labels, no two of which are equal."""
    for at in range(count):
        key = 0
        for i in range(labels.shape[1]):
            key += hash_pair(i, np.int64(labels[at, i]))
        slots[_slot(key, labels[at], labels, slots)] = at


@compiled
def fill_slacks(
    states: States, labels: Integers, horizon: LookaheadTables, totals: Integers
) -> None:
    """Fill in for each label the least slack of the times of a horizon."""
    no_free, no_slacks = _nothing_active(states, horizon)
    free, slacks = np.empty_like(no_free), np.empty_like(no_slacks)
    for number in range(len(labels)):
        copy_into(free, no_free, len(free))
        copy_into(slacks, no_slacks, len(slacks))
        active = np.flatnonzero(labels[number] >= horizon.first)
        _add_members(states, labels[number], active, (0, len(active)), horizon, free, slacks)
        totals[number] = _least_slack(horizon, free, slacks, 2**62)


@compiled
def _nothing_active(states: States, horizon: LookaheadTables) -> tuple[Integers, Integers]:
    """Return free memory and slack at the times of a horizon while nothing is active."""
    rounds = len(horizon.gains)
    free, slacks = np.empty(rounds + OFFSETS[-1], dtype=np.int64), np.empty(rounds, dtype=np.int64)
    for place in range(len(free)):
        free[place] = states.memory
    for place in range(rounds):
        slacks[place] = horizon.largest[horizon.first + place]
    return free, slacks


@compiled
def _add_members(
    states: States,
    label: Integers,
    active: Integers,
    part: tuple[int, int],
    horizon: LookaheadTables,
    free: Integers,
    slacks: Integers,
) -> None:
    """Subtract the tokens and prices of a part of the active requests of a label."""
    first = horizon.first
    for place in range(part[0], part[1]):
        i = active[place]
        end = label[i]
        for time in range(first, min(end + 1, first + len(free))):
            free[time - first] -= states.peaks[i] - (end - time)
        for time in range(first, min(end + 1, first + len(slacks))):
            slacks[time - first] -= horizon.prices[time, states.firsts[i] + end - time]


@compiled
def _least_slack(horizon: LookaheadTables, free: Integers, slacks: Integers, enough: int) -> int:
    """Add up the slack that no request can fill, until the gap is exceeded.

    Those that start later have to fit at every offset, so the least of the gains counts.
    """
    total = 0
    for ahead in range(len(horizon.gains)):
        gain = horizon.gains[ahead, 0, free[ahead]]
        for offset in range(1, len(OFFSETS)):
            gain = min(gain, horizon.gains[ahead, offset, free[ahead + OFFSETS[offset]]])
        total += max(0, slacks[ahead] - gain)
        if total > enough:
            break
    return total


@compiled
def _cost_to_go(
    label: Integers, active: Integers, many: int, now: int, table: CostToGoTable
) -> int:
    """Return a lower bound on the rest, by the requests that have a price after now + 1."""
    if not len(table.keys):
        return 0
    key = np.uint64(0)
    for place in range(many):
        i = active[place]
        if table.ends[i, label[i]] > now + 1:
            key += table.zobrist[i, label[i]]
    place = place_of_key(key, table)  # sets that are not in the table cost the cut at least
    return int(table.costs[place]) if table.costs[place] >= 0 else table.cut


@compiled
def fill_costs_to_go(labels: Integers, now: int, table: CostToGoTable, costs: Integers) -> None:
    """Fill in lower bounds on the rest for labels that have decided the starts of a round."""
    for number in range(len(labels)):
        active = np.flatnonzero(labels[number] > now + 1)
        costs[number] = _cost_to_go(labels[number], active, len(active), now, table)


@compiled
def _holds_next(states: States, visit: _Visit, many: int) -> bool:
    """Whether one more active request, the last, fits; if so, count its tokens.

    A request that completes at e holds its peak - (e - t) tokens at t <= e.  Memory peaks at
    completions (Lemma 3.2), and only those up to the end of the new one change.
    """
    label, active, held = visit.label, visit.active, visit.held
    end, peak = label[active[many]], states.peaks[active[many]]
    at_end = peak
    for place in range(many):
        ahead = label[active[place]] - end
        if ahead >= 0:
            at_end += states.peaks[active[place]] - ahead
        if ahead <= 0 and held[place] + peak + ahead > states.memory:
            return False
    if at_end > states.memory:
        return False
    for place in range(many):
        ahead = label[active[place]] - end
        if ahead <= 0:
            held[place] += peak + ahead
    held[many] = at_end
    return True


@compiled
def _begin(
    states: States, step: Round, labels: Integers, number: int, visit: _Visit
) -> tuple[int, int, int, int]:
    """Begin the visit of a label.

    Returns the number of its active requests, the reduced costs of waiting ones for a later start,
    the price of the active ones after this round, and its key.
    """
    label, settled, active, savings = visit.label, visit.settled, visit.active, visit.savings
    now, many, waiting_cost, value, key, first = step.now, 0, 0, 0, 0, _NEVER
    for i in range(labels.shape[1] - 1, -1, -1):
        end = label[i] = labels[number, i]
        # Requests that have completed by the next round are all alike.
        settled[i] = -1 if 0 < end <= now + 1 else end
        key += hash_pair(i, np.int64(settled[i]))
        savings[i] = savings[i + 1]
        if end == WAITING:
            waiting_cost += step.later[i]
            if states.arrivals[i] <= now:
                savings[i] += max(0, step.later[i] - step.reduced_costs[i])
        elif end > now:
            value += step.prices[states.firsts[i] + end - now - 1]
            active[many] = i
            if end < first:
                first = end
            many += 1
    room = states.memory
    for place in range(many):
        room -= states.peaks[active[place]] - (label[active[place]] - first)
    visit.ends[many], visit.rooms[many] = first, room
    return many, waiting_cost, value, key


@compiled
def _expand(
    states: States,
    step: Round,
    layer: Layer,
    part: tuple[int, int],
    children: Layer,
    count: int,
    slots: Integers,
) -> tuple[int, int]:
    """Start every set of requests that may start now, for some labels.

    Sets are visited depth first, each after its prefixes.  Returns the number of new labels, and
    the first label that is not expanded: the end of the part, unless there was no room.
    """
    now, gap, horizon = step.now, step.gap, step.horizon
    reduced_costs, later = step.reduced_costs, step.later
    arrivals, outputs, peaks, firsts = states.arrivals, states.outputs, states.peaks, states.firsts
    size = layer.labels.shape[1]
    looks_ahead, has_cost_to_go = len(horizon.gains) > 0, len(step.cost_to_go.keys) > 0
    label, settled = np.empty_like(layer.labels[0]), np.empty_like(layer.labels[0])
    active, held = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    ends, rooms = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    savings = np.zeros(size + 1, dtype=np.int64)
    visit = _Visit(label, settled, active, held, ends, rooms, savings)
    # Free memory and slack of the look-ahead, for the label and for its children.
    no_free, no_slacks = _nothing_active(states, horizon)
    freer, larger = np.empty_like(no_free), np.empty_like(no_slacks)
    free, slacks = np.empty_like(no_free), np.empty_like(no_slacks)
    for number in range(part[0], part[1]):
        many, waiting_cost, value, key = _begin(states, step, layer.labels, number, visit)
        spent, began, before = layer.spent[number], layer.began[number], many
        i, is_new, is_added, is_counted = 0, True, False, False
        while True:
            # Keep the label that is reached, unless its least cost is above the gap.
            total = spent + step.largest - value
            if (
                is_new
                and total + waiting_cost <= gap
                and (
                    not has_cost_to_go
                    or total + _cost_to_go(label, active, many, now, step.cost_to_go) <= gap
                )
            ):
                place = _slot(key, settled, children.labels, slots)
                at = slots[place]
                if at < 0:
                    left = gap - total - waiting_cost
                    is_kept = True
                    if looks_ahead:
                        if not is_added:
                            is_added = True
                            copy_into(freer, no_free, len(freer))
                            copy_into(larger, no_slacks, len(larger))
                            _add_members(states, label, active, (0, before), horizon, freer, larger)
                        copy_into(free, freer, len(freer))
                        copy_into(slacks, larger, len(larger))
                        _add_members(states, label, active, (before, many), horizon, free, slacks)
                        is_kept = _least_slack(horizon, free, slacks, left) <= left
                    if is_kept:
                        if count == len(children.spent):
                            return count, number
                        at = slots[place] = count
                        count += 1
                        for j in range(size):
                            children.labels[at, j] = settled[j]
                        children.spent[at] = total + 1
                if at >= 0 and total < children.spent[at]:
                    children.spent[at], children.began[at] = total, began
                    children.parents[at] = number
            # Go down: start the next request that fits, seen at the first completion and its own.
            is_new = False
            end, room = ends[many], rooms[many]
            while i < size and not is_new:
                late = now + outputs[i] - end
                if (
                    label[i] == WAITING
                    and arrivals[i] <= now
                    and peaks[i] <= room + max(late, -many * late)
                    and spent + waiting_cost + reduced_costs[i] - later[i] - savings[i + 1] <= gap
                    and (step.predecessors[i] < 0 or label[step.predecessors[i]] != WAITING)
                ):
                    label[i] = now + outputs[i]
                    active[many] = i
                    if not is_counted:  # the tokens of the label, which fits
                        is_counted = True
                        for place in range(before):
                            _holds_next(states, visit, place)
                    is_new = _holds_next(states, visit, many)
                    if is_new:
                        many += 1
                        # The first completion is that of the new request, or as before.
                        ends[many] = min(end, label[i])
                        rooms[many] = (
                            room - peaks[i] + late if late >= 0 else states.memory - held[many - 1]
                        )
                        settled[i] = label[i] if outputs[i] > 1 else -1
                        key += hash_pair(i, np.int64(settled[i])) - hash_pair(i, WAITING)
                        spent += reduced_costs[i]
                        waiting_cost -= later[i]
                        began += now
                        value += step.prices[firsts[i] + outputs[i] - 1]
                    else:
                        label[i] = WAITING
                i += 1
            # Go up: take back the last start, and continue with the request after it.
            if not is_new:
                if many == before:
                    break
                many -= 1
                i = active[many]
                for place in range(many):  # its tokens leave the sums again
                    ahead = label[active[place]] - label[i]
                    if ahead <= 0:
                        held[place] -= peaks[i] + ahead
                key += hash_pair(i, WAITING) - hash_pair(i, np.int64(settled[i]))
                label[i] = settled[i] = WAITING
                spent -= reduced_costs[i]
                waiting_cost += later[i]
                began -= now
                value -= step.prices[firsts[i] + outputs[i] - 1]
                i += 1
    return count, part[1]

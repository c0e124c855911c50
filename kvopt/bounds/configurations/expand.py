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
from kvopt.kernels.compiled import compiled, inlined
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
    candidates, chosen
        Requests that may start now, ascending, at the end of the array; and for each number of
        active requests where the last of them is there.
    savings
        Reduced costs that candidates from each on may save by a start now instead of later.
    """

    label: Integers
    settled: Integers
    active: Integers
    held: Integers
    ends: Integers
    rooms: Integers
    candidates: Integers
    chosen: Integers
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
        children = _room_for(min(label_limit, max(1024, 2 * (last - first))), layer)
        slots = _empty_slots(len(children.spent))
        count, begin = 0, first
        while begin < last:
            if begin > first and limit.over():
                raise Stopped
            end = min(begin + _PART, last)
            count, begin = _expand(states, step, layer, (begin, end), children, count, slots)
            if begin < end:  # no room for the children of this label: they are visited again
                if len(children.spent) == label_limit:
                    raise too_wide
                children = _grown(children, min(label_limit, 4 * len(children.spent)))
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


@inlined
def _slot(key: int, label: Integers, labels: Integers, slots: Integers) -> int:
    """Return the place of a label, settled, in a hash table of labels.

    The key is the sum of the hashes of its entries.  Labels are compared in full, so equal keys
    only take time.
    """
    last, size = len(slots) - 1, len(label)
    place, at = (key >> 20) & last, 0
    while slots[place] >= 0 and at < size:
        at = 0
        while at < size and labels[slots[place], at] == label[at]:
            at += 1
        if at < size:
            place = (place + 1) & last
    return int(place)


@compiled
def _fill_slots(labels: Integers, count: int, slots: Integers) -> None:
    """Fill a hash table with the first labels, no two of which are equal."""
    last = len(slots) - 1
    for at in range(count):
        key = 0
        for i in range(labels.shape[1]):
            key += hash_pair(i, np.int64(labels[at, i]))
        place = (key >> 20) & last
        while slots[place] >= 0:
            place = (place + 1) & last
        slots[place] = at


@compiled
def fill_rest(
    states: States, step: Round, labels: Integers, horizon: LookaheadTables, rest: Integers
) -> None:
    """Fill in lower bounds on the rest for labels that have decided the starts of a round."""
    later, table = step.later, step.cost_to_go
    label, active = np.empty_like(labels[0]), np.empty(labels.shape[1], dtype=np.int64)
    no_free, no_slacks = _nothing_active(states, horizon)
    free, slacks = np.empty_like(no_free), np.empty_like(no_slacks)
    for number in range(len(labels)):
        many = waiting_cost = to_go = 0
        for i in range(len(label)):
            label[i] = labels[number, i]
            if label[i] == WAITING:
                waiting_cost += later[i]
            elif label[i] > step.now + 1:
                active[many] = i
                many += 1
        copy_into(free, no_free, len(free))
        copy_into(slacks, no_slacks, len(slacks))
        _add_members(states, label, active, (0, many), horizon, free, slacks)
        if len(table.keys):
            to_go = _cost_to_go(label, active, many, step.now, table)
        rest[number] = waiting_cost + max(to_go, _least_slack(horizon, free, slacks, 2**62))


@compiled
def _nothing_active(states: States, horizon: LookaheadTables) -> tuple[Integers, Integers]:
    """Return free memory and slack at the times of a horizon while nothing is active."""
    rounds = len(horizon.gains)
    # Without a sign an index cannot count from the end, which a loop would have to test.
    free, slacks = np.empty(rounds + OFFSETS[-1], dtype=np.uint32), np.empty(rounds, dtype=np.int32)
    for place in range(len(free)):
        free[place] = states.memory
    for place in range(rounds):
        slacks[place] = horizon.largest[horizon.first + place]
    return free, slacks


@inlined
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
        held, last = states.peaks[i] - (end - first), states.firsts[i] + end - first
        for ahead in range(min(end + 1 - first, len(free))):
            free[ahead] -= held + ahead
        for ahead in range(min(end + 1 - first, len(slacks))):
            slacks[ahead] -= horizon.prices[end, last - ahead]


@inlined
def _least_slack(horizon: LookaheadTables, free: Integers, slacks: Integers, enough: int) -> int:
    """Add up the slack that no request can fill, until the gap is exceeded.

    Those that start later have to fit at every offset, so the least of the gains counts.
    """
    total = 0
    for ahead in range(len(horizon.gains)):
        if total <= enough:
            gain = horizon.gains[ahead, 0, free[ahead]]
            for offset in range(1, len(OFFSETS)):
                gain = min(gain, horizon.gains[ahead, offset, free[ahead + OFFSETS[offset]]])
            total += max(0, np.int64(slacks[ahead]) - gain)
    return total


@compiled
def _cost_to_go(
    label: Integers, active: Integers, many: int, now: int, table: CostToGoTable
) -> int:
    """Return a lower bound on the rest, by the requests that have a price after now + 1."""
    key = np.uint64(0)
    for place in range(many):
        i = active[place]
        if table.ends[i, label[i]] > now + 1:
            key += table.zobrist[i, label[i]]
    cost = table.costs[place_of_key(key, table)]
    return int(cost) if cost >= 0 else table.cut  # other sets cost the cut at least


@inlined
def _holds_next(states: States, visit: _Visit, many: int) -> bool:
    """Whether one more active request, the last, fits; if so, count its tokens.

    A request that completes at e holds its peak - (e - t) tokens at t <= e.  Memory peaks at
    completions (Lemma 3.2), and only those up to the end of the new one change.
    """
    label, active, held = visit.label, visit.active, visit.held
    end, peak = label[active[many]], states.peaks[active[many]]
    at_end, fullest = peak, 0
    for place in range(many):
        ahead = label[active[place]] - end
        if ahead >= 0:
            at_end += states.peaks[active[place]] - ahead
        if ahead <= 0:
            fullest = max(fullest, held[place] + peak + ahead)
    fits = bool(max(at_end, fullest) <= states.memory)
    for place in range(many if fits else 0):
        ahead = label[active[place]] - end
        if ahead <= 0:
            held[place] += peak + ahead
    held[many] = at_end
    return fits


@inlined
def _begin(
    states: States, step: Round, labels: Integers, number: int, spent: int, visit: _Visit
) -> tuple[int, int, int, int, int]:
    """Begin the visit of a label with the reduced costs and slacks that it has spent.

    Returns the number of its active requests, the reduced costs of waiting ones for a later start,
    the price of the active ones after this round, its key, and the place of its first candidate.
    """
    label, settled, active = visit.label, visit.settled, visit.active
    candidates, savings = visit.candidates, visit.savings
    reduced_costs, later = step.reduced_costs, step.later
    now, many, waiting_cost, value, key, first = step.now, 0, 0, 0, 0, _NEVER
    arrived, saved = len(label), 0
    for i in range(len(label) - 1, -1, -1):
        end = label[i] = labels[number, i]
        # Requests that have completed by the next round are all alike.
        settled[i] = -1 if 0 < end <= now + 1 else end
        key += hash_pair(i, np.int64(settled[i]))
        if end == WAITING:
            waiting_cost += later[i]
            if states.arrivals[i] <= now:
                arrived -= 1
                candidates[arrived] = i
                saved += max(0, later[i] - reduced_costs[i])
        elif end > now:
            value += step.prices[states.firsts[i] + end - now - 1]
            active[many] = i
            first = min(first, end)
            many += 1
    room = states.memory
    for place in range(many):
        room -= states.peaks[active[place]] - (label[active[place]] - first)
    visit.ends[many], visit.rooms[many] = first, room
    # What does not fit beside the label, or costs too much whatever others save, never starts.
    spare, begin = step.gap - spent - waiting_cost, len(label)
    for place in range(len(label) - 1, arrived - 1, -1):
        i = candidates[place]
        late, saving = now + states.outputs[i] - first, max(0, later[i] - reduced_costs[i])
        if (
            states.peaks[i] <= room + max(late, -many * late)
            and reduced_costs[i] - later[i] - (saved - saving) <= spare
        ):
            begin -= 1
            candidates[begin] = i
            savings[begin] = savings[begin + 1] + saving
        else:
            saved -= saving
    return many, waiting_cost, value, key, begin


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
    reduced_costs, later, cost_to_go = step.reduced_costs, step.later, step.cost_to_go
    outputs, peaks, firsts = states.outputs, states.peaks, states.firsts
    labels, size = layer.labels, layer.labels.shape[1]
    looks_ahead, has_cost_to_go = len(horizon.gains) > 0, len(cost_to_go.keys) > 0
    label, settled = np.empty_like(layer.labels[0]), np.empty_like(layer.labels[0])
    active, held = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    ends, rooms = np.empty(size + 1, dtype=np.int64), np.empty(size + 1, dtype=np.int64)
    savings = np.zeros(size + 1, dtype=np.int64)
    candidates, chosen = np.empty_like(active), np.empty_like(active)
    visit = _Visit(label, settled, active, held, ends, rooms, candidates, chosen, savings)
    # Free memory and slack of the look-ahead, for the label and for its children.
    no_free, no_slacks = _nothing_active(states, horizon)
    freer, larger = np.empty_like(no_free), np.empty_like(no_slacks)
    free, slacks = np.empty_like(no_free), np.empty_like(no_slacks)
    for number in range(part[0], part[1]):
        spent, began = layer.spent[number], layer.began[number]
        many, waiting_cost, value, key, place = _begin(states, step, labels, number, spent, visit)
        before, is_new, is_added, is_counted = many, True, False, False
        while True:
            # Keep the label that is reached, unless its least cost is above the gap.
            total = spent + step.largest - value
            left = gap - total - waiting_cost
            if (
                is_new
                and left >= 0
                and not (
                    has_cost_to_go and _cost_to_go(label, active, many, now, cost_to_go) > left
                )
            ):
                slot = _slot(key, settled, children.labels, slots)
                at = slots[slot]
                if at < 0:
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
                        at = slots[slot] = count
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
            spare = gap - spent - waiting_cost
            while place < size and not is_new:
                i = candidates[place]
                late = now + outputs[i] - end
                if (
                    peaks[i] <= room + max(late, -many * late)
                    and reduced_costs[i] - later[i] - savings[place + 1] <= spare
                    and (step.predecessors[i] < 0 or label[step.predecessors[i]] != WAITING)
                ):
                    label[i] = now + outputs[i]
                    active[many] = i
                    if not is_counted:  # the tokens of the label, which fits
                        is_counted = True
                        for other in range(before):
                            _holds_next(states, visit, other)
                    is_new = _holds_next(states, visit, many)
                    if is_new:
                        chosen[many] = place
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
                place += 1
            # Go up: take back the last start, and continue with the request after it.
            if not is_new:
                if many == before:
                    break
                many -= 1
                i, place = active[many], chosen[many] + 1
                for other in range(many):  # its tokens leave the sums again
                    ahead = label[active[other]] - label[i]
                    if ahead <= 0:
                        held[other] -= peaks[i] + ahead
                key += hash_pair(i, WAITING) - hash_pair(i, np.int64(settled[i]))
                label[i] = settled[i] = WAITING
                spent -= reduced_costs[i]
                waiting_cost += later[i]
                began -= now
                value -= step.prices[firsts[i] + outputs[i] - 1]
    return count, part[1]

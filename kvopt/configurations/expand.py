"""One round of a search forward in time: from partial schedules to their continuations.

What is compiled here stays in one file: machine code kept on disk is made anew when its own file
changes, not when another one does whose functions it calls.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kvopt.configurations.labels import BLIND, WAITING, Integers, Layer, Round, Sight
from kvopt.configurations.states import States
from kvopt.kernels.compiled import compiled
from kvopt.kernels.row_ranges import in_parts

_NEVER = 2**30
"""Later than every round, and small enough to be multiplied by a number of requests."""
_PART = 20_000
"""Partial schedules that are continued between two questions whether to stop."""


class TooWide(Exception):
    """Raised when more partial schedules survive than there is room for."""


class Stopped(Exception):
    """Raised when the search was asked to stop."""


def next_layer(
    states: States,
    twins: Integers,
    step: Round,
    layer: Layer,
    most: int,
    should_stop: Callable[[], bool],
    threads: int = 1,
    sight: Sight = BLIND,
) -> Layer:
    """Return all continuations that are worth keeping, as far as can be seen.

    Where threads share the work a row may come once from each of them.  Memory is checked at
    completions of active requests only: Lemma 1 of docs/configurations.md.

    Raises
    ------
    TooWide
        If they are more than ``most``.
    Stopped
        If it was asked to stop.
    """

    def work(begin: int, end: int) -> Layer:
        return _continued(states, twins, step, layer, (begin, end), most, should_stop, sight)

    parts = in_parts(work, len(layer.spent), threads)
    if sum(len(part.spent) for part in parts) > most:
        raise _too_wide(most, step)
    if len(parts) == 1:
        return parts[0]
    return Layer(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _too_wide(most: int, step: Round) -> TooWide:
    return TooWide(f"more than {most:,} partial schedules at round {step.now}")


def _continued(
    states: States,
    twins: Integers,
    step: Round,
    layer: Layer,
    which: tuple[int, int],
    most: int,
    should_stop: Callable[[], bool],
    sight: Sight,
) -> Layer:
    """Return the continuations of some of the partial schedules."""
    room = min(most, max(1024, 8 * (which[1] - which[0])))
    while True:
        found = Layer(
            np.empty((room, layer.rows.shape[1]), dtype=layer.rows.dtype),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int32),
        )
        count = _expanded(states, twins, step, layer, which, found, should_stop, sight)
        if count >= 0:
            return Layer(*(part[:count] for part in found))
        if room == most:
            raise _too_wide(most, step)
        room = min(most, 8 * room)


def _expanded(
    states: States,
    twins: Integers,
    step: Round,
    layer: Layer,
    which: tuple[int, int],
    found: Layer,
    should_stop: Callable[[], bool],
    sight: Sight,
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
            peaks, twins, sight, found, count, slots,
        )  # fmt: skip
        if count < 0:
            break
    return count


@compiled
def _fits(row: Integers, active: Integers, many: int, peaks: Integers, memory: int) -> bool:
    """Whether the active requests fit at each of their completions."""
    for one in active[:many]:
        held = 0
        for other in active[:many]:
            if row[other] >= row[one]:
                held += peaks[other] - (row[other] - row[one])
        if held > memory:
            return False
    return True


@compiled
def _first_completion(
    row: Integers, active: Integers, many: int, peaks: Integers, memory: int
) -> tuple[int, int]:
    """Return when the first active request completes, and what is free then.

    Most requests that do not fit do not fit there, or at their own completion before.
    """
    end = _NEVER
    for i in active[:many]:
        end = min(end, row[i])
    for i in active[:many]:
        memory -= peaks[i] - (row[i] - end)
    return end, memory


@compiled
def _settled(end: int, now: int) -> int:
    """Return a completion round as the next layer keeps it."""
    return -1 if 0 < end <= now + 1 else end


@compiled
def _slot(row: Integers, now: int, rows: Integers, slots: Integers) -> int:
    """Return the place of a row in a hash table of the rows found so far."""
    key = 0
    for end in row:
        key = (key ^ (_settled(end, now) + 2)) * 1_099_511_628_211
    place = (key ^ (key >> 32)) & (len(slots) - 1)
    while slots[place] >= 0:
        other, same = rows[slots[place]], True
        for i in range(len(row)):
            if other[i] != _settled(row[i], now):
                same = False
                break
        if same:
            break
        place = (place + 1) & (len(slots) - 1)
    return place


@compiled
def fill_slacks(
    rows: Integers, peaks: Integers, firsts: Integers, now: int, memory: int, sight: Sight,
    found: Integers,
) -> None:  # fmt: skip
    """Fill in the least slacks of the times after now + 1."""
    active = np.empty(rows.shape[1], dtype=np.int64)
    rounds = len(sight.gains)
    free = np.empty(rounds + sight.spots[-1], dtype=np.int64)
    slacks = np.empty(rounds, dtype=np.int64)
    for number in range(len(rows)):
        many = 0
        for i in range(rows.shape[1]):
            if rows[number, i] > now + 1:
                active[many] = i
                many += 1
        _look(now, memory, sight, free, slacks)
        _look_with(rows[number], active[:many], peaks, firsts, now, sight, free, slacks)
        found[number] = _least_slack(sight, free, slacks, 2**62)


@compiled
def _look(now: int, memory: int, sight: Sight, free: Integers, slacks: Integers) -> None:
    """Fill in what is free and the slacks while nothing is active."""
    free[:] = memory
    slacks[:] = sight.largest[now + 2 : now + 2 + len(slacks)]


@compiled
def _look_with(
    row: Integers, members: Integers, peaks: Integers, firsts: Integers, now: int, sight: Sight,
    free: Integers, slacks: Integers,
) -> None:  # fmt: skip
    """Take out what some members of a row hold, and what they are worth."""
    first = now + 2
    for i in members:
        for time in range(first, min(row[i] + 1, first + len(free))):
            free[time - first] -= peaks[i] - (row[i] - time)
        for time in range(first, min(row[i] + 1, first + len(slacks))):
            slacks[time - first] -= sight.prices[time, firsts[i] + row[i] - time]


@compiled
def _least_slack(sight: Sight, free: Integers, slacks: Integers, enough: int) -> int:
    """Add up what no request can add, until that is more than enough."""
    gains, spots = sight.gains, sight.spots
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
def _expand(
    layer: Layer, part: tuple[int, int], step: Round, memory: int, arrivals: Integers,
    outputs: Integers, firsts: Integers, peaks: Integers, twins: Integers, sight: Sight,
    found: Layer, count: int, slots: Integers,
) -> int:  # fmt: skip
    """Start every set of requests that may start now; return how many rows that makes, or -1.

    Sets are visited depth first, each after those it contains in front.
    """
    now, budget, excesses, later, prices = (
        step.now,
        step.budget,
        step.excesses,
        step.later,
        step.prices,
    )
    size = layer.rows.shape[1]
    row = np.empty(size, dtype=layer.rows.dtype)
    # Requests that are active after this round: of before, then those that start.
    active = np.empty(size, dtype=np.int64)
    # What is ahead of a row, and of its continuations.
    rounds = len(sight.gains)
    freer = np.empty(rounds + sight.spots[-1], dtype=np.int64)
    larger = np.empty(rounds, dtype=np.int64)
    free, slacks = freer.copy(), larger.copy()
    # What requests from the i-th on may save by a start now instead of later.
    savings = np.zeros(size + 1, dtype=np.int64)
    for number in range(part[0], part[1]):
        row[:] = layer.rows[number]
        began, coming, value, many = layer.began[number], 0, 0, 0
        for i in range(size - 1, -1, -1):
            savings[i] = savings[i + 1]
            if row[i] == WAITING:
                coming += later[i]
                if arrivals[i] <= now:
                    savings[i] += max(0, later[i] - excesses[i])
            elif row[i] > now:
                value += prices[firsts[i] + row[i] - now - 1]
                active[many] = i
                many += 1
        spent, before = layer.spent[number], many
        i, visit, seen = 0, True, False
        while True:
            total = spent + step.largest - value
            if visit and total + coming <= budget:
                place = _slot(row, now, found.rows, slots)
                at = slots[place]
                if at < 0:
                    if not seen:
                        seen = True
                        _look(now, memory, sight, freer, larger)
                        _look_with(row, active[:before], peaks, firsts, now, sight, freer, larger)
                    free[:], slacks[:] = freer, larger
                    new = active[before:many]
                    _look_with(row, new, peaks, firsts, now, sight, free, slacks)
                    left = budget - total - coming
                    if _least_slack(sight, free, slacks, left) <= left:
                        if count == len(found.spent):
                            return -1
                        at = count
                        count += 1
                        slots[place] = at
                        for j in range(size):
                            found.rows[at, j] = _settled(row[j], now)
                        found.spent[at] = total + 1
                if at >= 0 and total < found.spent[at]:
                    found.spent[at], found.began[at] = total, began
                    found.parents[at] = number
            visit = False
            end, room = _first_completion(row, active, many, peaks, memory)
            while i < size and not visit:
                late = now + outputs[i] - end
                if (
                    row[i] == WAITING
                    and arrivals[i] <= now
                    and peaks[i] <= room + max(late, -many * late)
                    and spent + coming + excesses[i] - later[i] - savings[i + 1] <= budget
                    and (twins[i] < 0 or row[twins[i]] != WAITING)
                ):
                    row[i] = now + outputs[i]
                    active[many] = i
                    visit = _fits(row, active, many + 1, peaks, memory)
                    if visit:
                        spent += excesses[i]
                        coming -= later[i]
                        began += now
                        value += prices[firsts[i] + outputs[i] - 1]
                        many += 1
                    else:
                        row[i] = WAITING
                i += 1
            if not visit:
                if many == before:
                    break
                many -= 1
                i = active[many]
                row[i] = WAITING
                spent -= excesses[i]
                coming += later[i]
                began -= now
                value -= prices[firsts[i] + outputs[i] - 1]
                i += 1
    return count

"""One round of the search forward in time: from partial schedules to their continuations.

A partial schedule is a row of completion rounds, `WAITING` for requests that have not started
and `DONE` for those that are no longer active.  Rows that are equal leave the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kvopt.compiled import compiled
from kvopt.configurations.parts import in_parts
from kvopt.configurations.states import States

Integers = npt.NDArray[Any]
"""Of 64 bits, or of 32 where there are many of them."""

WAITING, DONE = 0, -1

_BITS = 64
"""Of an integer."""
_PART = 20_000
"""Partial schedules that are continued between two questions whether to stop."""


class Layer(NamedTuple):
    """Partial schedules that have decided every start before one round.

    Parameters
    ----------
    rows
        Completion rounds, one row for each of them.
    spent
        What their starts and their past cost above the bound, see `kvopt.configurations.sweep`.
    began
        Sum of the start rounds.
    parents
        Where each of them comes from in the layer before.
    """

    rows: Integers
    spent: Integers
    began: Integers
    parents: Integers

    def only(self, which: Integers | slice) -> Layer:
        """Return some of the partial schedules."""
        return Layer(*(part[which] for part in self))

    def waiting(self) -> Integers:
        """Return the set of waiting requests of each partial schedule, as bits of integers."""
        count = self.rows.shape[1]
        padded = np.zeros((len(self.rows), -(-count // _BITS) * _BITS), dtype=np.bool_)
        padded[:, :count] = self.rows == WAITING
        return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def members_of(bits: Integers, count: int) -> Integers:
    """Return the requests in a set of ``count`` at most, as `Layer.waiting` keeps them."""
    flags = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), bitorder="little")
    return np.flatnonzero(flags[:count])


class Round(NamedTuple):
    """What a round adds.

    Parameters
    ----------
    now
        Start round k; who starts is active from time k + 1.
    budget
        What a schedule that is worth finding spends at most.
    excesses
        Of a start of each request now.
    later
        Least excess of each request for a start after now.
    prices, largest
        Of states at time k + 1, and the most that a configuration is worth then.
    """

    now: int
    budget: int
    excesses: Integers
    later: Integers
    prices: Integers
    largest: int


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
) -> Layer:
    """Return all continuations that are worth keeping.

    Where threads share the work a row may come once from each of them.

    Raises
    ------
    TooWide
        If they are more than ``most``.
    Stopped
        If it was asked to stop.
    """

    def work(begin: int, end: int) -> Layer:
        return _continued(states, twins, step, layer, (begin, end), most, should_stop)

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
) -> Layer:
    """Return the continuations of some of the partial schedules."""
    room = min(most, max(1024, 8 * (which[1] - which[0])))
    while True:
        found = Layer(
            np.empty((room, layer.rows.shape[1]), dtype=np.int32),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int32),
        )
        count = _expanded(states, twins, step, layer, which, found, should_stop)
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
            peaks, twins, found, count, slots,
        )  # fmt: skip
        if count < 0:
            break
    return count


@compiled
def _fits(row: Integers, peaks: Integers, now: int, memory: int) -> bool:
    """Whether the active requests fit at each of their completions."""
    for end in row:
        if end > now:
            held = 0
            for j in range(len(row)):
                if row[j] >= end:
                    held += peaks[j] - (row[j] - end)
            if held > memory:
                return False
    return True


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
def _expand(
    layer: Layer, part: tuple[int, int], step: Round, memory: int, arrivals: Integers,
    outputs: Integers, firsts: Integers, peaks: Integers, twins: Integers, found: Layer,
    count: int, slots: Integers,
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
    many = layer.rows.shape[1]
    row = np.empty(many, dtype=np.int32)
    chosen = np.empty(many, dtype=np.int64)
    # What requests from the i-th on may save by a start now instead of later.
    savings = np.zeros(many + 1, dtype=np.int64)
    for number in range(part[0], part[1]):
        row[:] = layer.rows[number]
        began, coming, value = layer.began[number], 0, 0
        for i in range(many - 1, -1, -1):
            savings[i] = savings[i + 1]
            if row[i] == WAITING:
                coming += later[i]
                if arrivals[i] <= now:
                    savings[i] += max(0, later[i] - excesses[i])
            elif row[i] > now:
                value += prices[firsts[i] + row[i] - now - 1]
        spent = layer.spent[number]
        depth, i, visit = 0, 0, True
        while True:
            total = spent + step.largest - value
            if visit and total + coming <= budget:
                place = _slot(row, now, found.rows, slots)
                at = slots[place]
                if at < 0:
                    if count == len(found.spent):
                        return -1
                    at = count
                    count += 1
                    slots[place] = at
                    for j in range(many):
                        found.rows[at, j] = _settled(row[j], now)
                    found.spent[at] = total + 1
                if total < found.spent[at]:
                    found.spent[at], found.began[at] = total, began
                    found.parents[at] = number
            visit = False
            while i < many and not visit:
                if (
                    row[i] == WAITING
                    and arrivals[i] <= now
                    and spent + coming + excesses[i] - later[i] - savings[i + 1] <= budget
                    and (twins[i] < 0 or row[twins[i]] != WAITING)
                ):
                    row[i] = now + outputs[i]
                    visit = _fits(row, peaks, now, memory)
                    if visit:
                        spent += excesses[i]
                        coming -= later[i]
                        began += now
                        value += prices[firsts[i] + outputs[i] - 1]
                        chosen[depth] = i
                        depth += 1
                    else:
                        row[i] = WAITING
                i += 1
            if not visit:
                if depth == 0:
                    break
                depth -= 1
                i = chosen[depth]
                row[i] = WAITING
                spent -= excesses[i]
                coming += later[i]
                began -= now
                value -= prices[firsts[i] + outputs[i] - 1]
                i += 1
    return count

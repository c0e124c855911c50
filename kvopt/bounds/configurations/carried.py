"""Sets of members that are carried from one time to the next, and loops that go back a time.

A member is an active request of which only peak and completion are known.  A set at a time has
the members that are active together then.  Its carried part leaves out the members that have just
started.  See `kvopt.bounds.configurations.cost_to_go`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.labels import CostToGoTable, Integers
from kvopt.bounds.configurations.requests import END, HOLD, KIND, LEFT, PRICE, Requests
from kvopt.kernels.compiled import compiled

_NONE = -1
"""Mark of an empty slot, and of the end of a set."""
_CODE, _ALIKE, _START, _STARTED = range(4)
"""Columns of `Requests.runs`: a member, its copies, the cost of one start, how many start."""


class Sets(NamedTuple):
    """Sets of members carried from one time to the next, in a hash table.

    Parameters
    ----------
    slots
        Numbers of sets, `_NONE` in empty slots.
    keys, members, costs
        Hash, members and cost of each set.  Members are coded as peak times width plus completion,
        ascending.  The last row of members is for a set that is looked up.
    filled
        The number of sets, in an array of one.
    """

    slots: Integers
    keys: Integers
    members: Integers
    costs: Integers
    filled: Integers

    @classmethod
    def of(cls, size: int, most: int) -> Sets:
        """Return arrays for so many sets of so many members."""
        return cls(
            np.full(1 << (2 * size).bit_length(), _NONE, dtype=np.int32),
            np.zeros(size, dtype=np.uint64),
            np.full((size + 1, most + 1), _NONE, dtype=np.int32),
            np.zeros(size, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )

    @property
    def number(self) -> int:
        """Return the number of sets."""
        return int(self.filled[0])

    def clear(self) -> None:
        """Drop all sets."""
        self.slots[:] = _NONE
        self.filled[0] = 0

    def drop_dearest(self, most: int) -> int:
        """Keep the cheapest sets, at most so many; return the least cost of the others.

        The hash table is invalid afterwards.
        """
        costs = self.costs[: self.number]
        cut = int(np.partition(costs, most)[most])
        which = np.flatnonzero(costs < cut)
        for part in (self.keys, self.members, self.costs):
            part[: len(which)] = part[which]
        self.filled[0] = len(which)
        return cut


@compiled
def _other(rows: Integers, at: int) -> int:
    """Return the first row after this one with another state."""
    kind, left = rows[at, KIND], rows[at, LEFT]
    while at < len(rows) and rows[at, KIND] == kind and rows[at, LEFT] == left:
        at += 1
    return at


@compiled
def add_configurations(
    requests: Requests,
    now: int,
    shown: Integers,
    worth: Integers,
    cut: int,
    below: int,
    into: Sets,
    most: int,
) -> bool:
    """Add all sets that cost less than the limit if the rest costs the cut; return whether all fit.

    Depth first by rounds left, descending: a member fits if it does at its completion.
    """
    width = requests.ends.shape[1]
    stack = np.empty(requests.most + 1, dtype=np.int64)
    members = np.empty(requests.most + 1, dtype=np.int32)
    copies = requests.copies.copy()
    # A set of a smaller price has too much slack.
    least = requests.largest[now] - (below - cut) + 1
    at, many, held, value, count = 0, 0, 0, 0, 0
    while True:
        if at < len(shown) and value + worth[at, many, held] >= least:
            kind, hold, left = shown[at, KIND], shown[at, HOLD], shown[at, LEFT]
            fits = held + hold + (many + 1) * left <= requests.memory
            if many < requests.most and copies[kind] > 0 and fits:
                stack[many] = at
                members[many] = kind * width + now + left
                copies[kind] -= 1
                many, held, value = many + 1, held + hold, value + shown[at, PRICE]
            at += 1
            continue
        if at == len(shown) and value >= least:
            count += 1
            cost = requests.largest[now] - value + cut
            if count > most or not _add_predecessors(
                requests, now, members, many, cost, below, into
            ):
                return False
        if many == 0:
            return True
        many -= 1
        at = stack[many]
        copies[shown[at, KIND]] += 1
        held, value = held - shown[at, HOLD], value - shown[at, PRICE]
        at = _other(shown, at)


@compiled
def extend(
    requests: Requests,
    now: int,
    sets: Sets,
    part: tuple[int, int],
    ending: Integers,
    below: int,
    into: Sets,
) -> bool:
    """Add every choice of ending members to some kept sets; return whether all cheap ones fitted.

    Ending members are sorted by price, descending.
    """
    width = requests.ends.shape[1]
    members = np.empty(requests.most + 1, dtype=np.int32)
    stack = np.empty(requests.most + 1, dtype=np.int64)
    for number in range(part[0], part[1]):
        many, held, cost = 0, 0, sets.costs[number] + requests.largest[now]
        while sets.members[number, many] != _NONE:
            code = sets.members[number, many]
            kind, left = code // width, code % width - now
            members[many] = code
            held += requests.peaks[kind] - left
            cost -= requests.prices[now, requests.firsts[kind] + left]
            many += 1
        if not _fits(requests, members, many):
            continue
        carried, at = many, 0
        while True:
            if cost < below and not _add_predecessors(
                requests, now, members, many, cost, below, into
            ):
                return False
            at = _next_ending(requests, ending, at, members, many, held, cost, below)
            while at == len(ending) and many > carried:
                many -= 1
                at = stack[many]
                held, cost = held - ending[at, HOLD], cost + ending[at, PRICE]
                at = _other(ending, at)
                at = _next_ending(requests, ending, at, members, many, held, cost, below)
            if at == len(ending):
                break
            stack[many] = at
            members[many] = ending[at, KIND] * width + now + ending[at, LEFT]
            many, held, cost = many + 1, held + ending[at, HOLD], cost - ending[at, PRICE]
            at += 1
    return True


@compiled
def _next_ending(
    requests: Requests,
    ending: Integers,
    at: int,
    members: Integers,
    many: int,
    held: int,
    cost: int,
    below: int,
) -> int:
    """Return the next member that may end with a set, or the number of members if none does."""
    width, room = requests.ends.shape[1], requests.memory - held
    while at < len(ending) and many < requests.most:
        if cost - min(room, requests.most - many) * ending[at, PRICE] >= below:
            break  # even all copies of this one do not make the set cheap enough
        kind = ending[at, KIND]
        copies = requests.copies[kind]
        for code in members[:many]:
            copies -= code // width == kind
        if copies > 0 and ending[at, HOLD] <= room:
            members[many] = kind * width + ending[at, END] + ending[at, LEFT]
            if _fits(requests, members, many + 1):
                return at
        at += 1
    return len(ending)


@compiled
def _fits(requests: Requests, members: Integers, many: int) -> bool:
    """Whether members of a set fit at each of their completions."""
    width = requests.ends.shape[1]
    for one in range(many):
        end, held = members[one] % width, 0
        for other in range(many):
            later = members[other] % width - end
            if later >= 0:
                held += requests.peaks[members[other] // width] - later
        if held > requests.memory:
            return False
    return True


@compiled
def _add_predecessors(
    requests: Requests, now: int, members: Integers, many: int, cost: int, below: int, into: Sets
) -> bool:
    """Add all sets that may have led to a set; return whether all cheap ones fitted.

    Members that have just started were not carried: their reduced costs are paid.  If copies of a
    member may also have started before, every number of starts among them is tried.
    """
    width, carried = requests.ends.shape[1], into.members[-1]
    runs, paid, at = 0, cost, 0
    while at < many:
        code, first = members[at], at
        while at < many and members[at] == code:
            at += 1
        kind, end = code // width, code % width
        start = requests.starting[kind, end - now]
        if requests.begins[kind, end] >= now - 1:
            paid += (at - first) * start
        else:
            requests.runs[runs, _CODE], requests.runs[runs, _ALIKE] = code, at - first
            requests.runs[runs, _START], requests.runs[runs, _STARTED] = start, 0
            runs += 1
    alike = requests.runs[:runs]
    while paid < below:
        count, key = 0, np.uint64(0)
        for code, copies, _, started in alike:
            for _ in range(copies - started):
                place = count
                while place > 0 and carried[place - 1] > code:
                    carried[place] = carried[place - 1]
                    place -= 1
                carried[place] = code
                count += 1
                key += requests.zobrist[code // width, code % width]
        if not _put(into, key, carried, count, paid):
            return False
        # The next choice, as with the digits of a number; one start more never costs less.
        digit = 0
        while digit < runs:
            _, copies, start, started = alike[digit]
            if started < copies and paid + start < below:
                alike[digit, _STARTED] += 1
                paid += start
                break
            paid -= started * start
            alike[digit, _STARTED] = 0
            digit += 1
        if digit == runs:
            break
    return True


@compiled
def _put(sets: Sets, key: np.uint64, members: Integers, many: int, cost: int) -> bool:
    """Add a set, or lower its cost; return whether it fitted."""
    last = np.uint64(len(sets.slots) - 1)
    place = np.int64((key ^ (key >> np.uint64(32))) & last)
    number = sets.slots[place]
    while number >= 0 and not (sets.keys[number] == key and _is_set(sets, number, members, many)):
        place = (place + 1) & np.int64(last)
        number = sets.slots[place]
    if number >= 0:
        sets.costs[number] = min(sets.costs[number], cost)
        return True
    number = sets.filled[0]
    if number == len(sets.costs):
        return False
    sets.filled[0] += 1
    sets.slots[place], sets.keys[number], sets.costs[number] = number, key, cost
    for at in range(many):
        sets.members[number, at] = members[at]
    sets.members[number, many] = _NONE
    return True


@compiled
def _is_set(sets: Sets, number: int, members: Integers, many: int) -> bool:
    """Whether the members of a set are these."""
    for at in range(many):
        if sets.members[number, at] != members[at]:
            return False
    return bool(sets.members[number, many] == _NONE)


def table_of(
    zobrist: Integers, ends: Integers, keys: Integers, costs: Integers, cut: int
) -> CostToGoTable:
    """Return the costs of sets by their keys, as a search looks them up."""
    size = 1 << (2 * len(keys) + 1).bit_length()
    empty = np.zeros(size, dtype=np.uint64), np.full(size, _NONE, dtype=np.int64)
    table = CostToGoTable(zobrist, ends, *empty, cut)
    _fill_table(keys, costs, table)
    return table


@compiled
def _fill_table(keys: Integers, costs: Integers, table: CostToGoTable) -> None:
    """Enter costs by their keys; where two sets have one key, the least."""
    last = np.uint64(len(table.keys) - 1)
    for number in range(len(keys)):
        key = keys[number]
        place = np.int64((key ^ (key >> np.uint64(32))) & last)
        while table.costs[place] >= 0 and table.keys[place] != key:
            place = (place + 1) & np.int64(last)
        if table.costs[place] < 0 or costs[number] < table.costs[place]:
            table.keys[place], table.costs[place] = key, costs[number]

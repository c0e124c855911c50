"""Sets of members that are carried from one time to the next, and loops that go back a time.

A member is an active request of which only peak and completion are known.  They give its state at
each time.  A set at a time has the members that are active together then.  Its carried part leaves
out the members that have just started.  See `kvopt.bounds.configurations.cost_to_go`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.labels import CostToGoTable, Integers, place_of_key
from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import borrowing, compiled
from kvopt.kernels.copying import copy_into

NONE = -1
"""Mark of an empty slot, and of the end of a set."""
_CODE, _ALIKE, _START, _STARTED = range(4)
"""Columns of `Requests.runs`: a member, its copies, the cost of one start, how many start."""


NEVER = 2**61
"""Cost of a start that does not exist, and a round later than all."""


class Requests(NamedTuple):
    """The requests, their peaks and their prices, as compiled loops take them.

    Parameters
    ----------
    arrivals, outputs, kinds, costs_above
        Columns of requests, sorted by peak; ``kinds`` are the numbers of their peaks.  The costs
        are what a start costs more than the cheapest one then or later, `NEVER` beyond the gap.
    peaks, copies, firsts
        Columns of peaks: tokens, number of requests, number of the first state.
    memory, together
        M, and how many requests can be active together.
    prices, largest
        As in `Evaluation`.
    begins, ends, zobrist
        For each peak and completion the first start that leads there, the last time with a price,
        and a random number; sums of these numbers are the keys of sets.
    starting
        For each peak and number of rounds to go the least cost of a start at the current time of
        the backward pass, `NEVER` if none is allowed.
    runs, members, stack, left
        Work arrays: equal members of a set, and how many of them start; members of a set, choices
        that led to it, and copies of peaks that it may still have.
    """

    arrivals: Integers
    outputs: Integers
    kinds: Integers
    costs_above: Integers
    peaks: Integers
    copies: Integers
    firsts: Integers
    memory: int
    together: int
    prices: Integers
    largest: Integers
    begins: Integers
    ends: Integers
    zobrist: Integers
    starting: Integers
    runs: Integers
    members: Integers
    stack: Integers
    left: Integers

    @classmethod
    def of(cls, states: States, evaluation: Evaluation, gap: int) -> Requests:
        """Return the requests of an evaluation; starts of a larger reduced cost do not count."""
        firsts, kinds, copies = np.unique(states.firsts, return_inverse=True, return_counts=True)
        longest = np.zeros(len(firsts), dtype=np.int64)
        np.maximum.at(longest, kinds, states.outputs)
        last = len(evaluation.prices) - 1
        size = (len(firsts), last + int(longest.max()) + 1)
        ends = np.zeros(size, dtype=np.int64)
        for kind, output in enumerate(longest.tolist()):
            for left in range(output):
                # A state of a time completes ``left`` later; of those with a price the last counts.
                times = 1 + np.flatnonzero(evaluation.prices[1:, firsts[kind] + left] > 0)
                ends[kind, times + left] = np.maximum(ends[kind, times + left], times)
        begins = np.full(size, NEVER, dtype=np.int64)
        rows = zip(states.arrivals, states.outputs, kinds, evaluation.reduced_costs, strict=True)
        for arrival, output, kind, costs in rows:
            starts = np.arange(arrival, size[1] - output)
            cheap = starts[costs[np.minimum(starts, last)] <= gap]
            begins[kind, cheap + output] = np.minimum(begins[kind, cheap + output], cheap)
        # What a start then or later costs in any case is paid by requests that wait.
        later = np.minimum.accumulate(evaluation.reduced_costs[:, ::-1], axis=1)[:, ::-1]
        allowed = evaluation.reduced_costs <= gap
        costs_above = np.where(allowed, evaluation.reduced_costs - later, NEVER)
        by_kind = np.argsort(kinds, kind="stable")
        return cls(
            states.arrivals[by_kind],
            states.outputs[by_kind],
            kinds[by_kind],
            costs_above[by_kind],
            states.holds[firsts],
            copies,
            firsts,
            states.memory,
            states.together,
            evaluation.prices,
            evaluation.largest,
            begins,
            ends,
            np.random.default_rng(0).integers(1, 2**63, size, dtype=np.uint64),
            np.empty((len(firsts), int(longest.max())), dtype=np.int64),
            np.empty((states.together + 1, 4), dtype=np.int64),
            np.empty(states.together + 1, dtype=np.int32),
            np.empty(states.together + 1, dtype=np.int64),
            np.empty_like(copies),
        )


PRICE, HOLD, LEFT, KIND, END = range(5)
"""Columns of the states that can occur at a time, with a row for each copy."""


@compiled
def fill_possible_states(requests: Requests, now: int, possible: Integers) -> int:
    """Fill in the states of a time that have a price then or later, and the least costs of starts.

    Those with most rounds left come first, equal ones one after the other.
    """
    count, costs = 0, requests.costs_above
    last = costs.shape[1] - 1
    for left in range(requests.outputs.max() - 1, -1, -1):
        for i in range(len(requests.outputs)):
            kind, start = requests.kinds[i], now + left - requests.outputs[i]
            if left >= requests.outputs[i] or start < requests.arrivals[i]:
                continue
            # A start that leads here counts if it is within the gap and a price is to come.
            if requests.ends[kind, now + left] >= now and costs[i, min(start, last)] < NEVER:
                possible[count, PRICE] = requests.prices[now, requests.firsts[kind] + left]
                possible[count, HOLD] = requests.peaks[kind] - left
                possible[count, LEFT] = left
                possible[count, KIND] = kind
                possible[count, END] = requests.ends[kind, now + left]
                count += 1
    requests.starting[:] = NEVER
    for i in range(len(requests.outputs)):
        cost = costs[i, min(now - 1, last)]
        if requests.arrivals[i] < now and cost < NEVER:
            kind, left = requests.kinds[i], requests.outputs[i] - 1
            requests.starting[kind, left] = min(requests.starting[kind, left], cost)
    return count


@compiled
def fill_knapsack(possible: Integers, worth: Integers) -> None:
    """Fill in the largest value that later states can add, by members and tokens so far."""
    members, memory = worth.shape[1] - 1, worth.shape[2] - 1
    for at in range(len(possible) - 1, -1, -1):
        price, hold, left = possible[at, PRICE], possible[at, HOLD], possible[at, LEFT]
        for many in range(members + 1):
            copy_into(worth[at, many], worth[at + 1, many], memory + 1)
        for many in range(members):
            for held in range(memory - hold - (many + 1) * left + 1):
                value = price + worth[at + 1, many + 1, held + hold]
                worth[at, many, held] = max(worth[at, many, held], value)


class Sets(NamedTuple):
    """Sets of members carried from one time to the next, in a hash table.

    Parameters
    ----------
    slots
        Numbers of sets, `NONE` in empty slots.
    keys, members, costs
        Hash, members and cost of each set.  Members are coded as peak times width plus completion,
        ascending.  The last row of members is for a set that is looked up.
    filled
        The number of sets, in an array of one.
    afters, begun
        For each set what it costs least with: the set of the next time, `NONE` for one that is not
        kept, and the members that start.  Empty unless lines of sets are followed.
    """

    slots: Integers
    keys: Integers
    members: Integers
    costs: Integers
    filled: Integers
    afters: Integers
    begun: Integers

    @classmethod
    def of(cls, size: int, together: int, *, lines: bool = False) -> Sets:
        """Return arrays for so many sets of so many members, and for lines of sets."""
        return cls(
            np.full(1 << (2 * size).bit_length(), NONE, dtype=np.int32),
            np.zeros(size, dtype=np.uint64),
            np.full((size + 1, together + 1), NONE, dtype=np.int32),
            np.zeros(size, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            np.full(size * lines, NONE, dtype=np.int32),
            np.full((size * lines + 1, together + 1), NONE, dtype=np.int32),
        )

    @property
    def number(self) -> int:
        """Return the number of sets."""
        return int(self.filled[0])

    def clear(self) -> None:
        """Drop all sets."""
        self.slots[:] = NONE
        self.filled[0] = 0

    def drop_dearest(self, limit: int) -> int:
        """Keep the cheapest sets, at most so many; return the least cost of the others.

        The hash table is invalid afterwards.
        """
        costs = self.costs[: self.number]
        cut = int(np.partition(costs, limit)[limit])
        which = np.flatnonzero(costs < cut)
        for part in (self.keys, self.members, self.costs, self.afters, self.begun):
            if len(part) >= len(costs):
                part[: len(which)] = part[which]
        self.filled[0] = len(which)
        return cut


@borrowing
def _other(rows: Integers, at: int) -> int:
    """Return the first row after this one with another state."""
    kind, left = rows[at, KIND], rows[at, LEFT]
    while at < len(rows) and rows[at, KIND] == kind and rows[at, LEFT] == left:
        at += 1
    return at


@borrowing
def add_configurations(
    requests: Requests,
    now: int,
    possible: Integers,
    worth: Integers,
    cut: int,
    below: int,
    into: Sets,
    limit: int,
) -> bool:
    """Add all sets that cost less than the limit if the rest costs the cut; return whether all fit.

    Depth first by rounds left, descending: a member fits if it does at its completion.
    """
    width = requests.ends.shape[1]
    stack, members, copies = requests.stack, requests.members, requests.left
    for kind in range(len(copies)):
        copies[kind] = requests.copies[kind]
    # A set of a smaller price has too much slack.
    lowest = requests.largest[now] - (below - cut) + 1
    at, many, held, value, count = 0, 0, 0, 0, 0
    while True:
        if at < len(possible) and value + worth[at, many, held] >= lowest:
            kind, hold, left = possible[at, KIND], possible[at, HOLD], possible[at, LEFT]
            fits = held + hold + (many + 1) * left <= requests.memory
            if many < requests.together and copies[kind] > 0 and fits:
                stack[many] = at
                members[many] = kind * width + now + left
                copies[kind] -= 1
                many, held, value = many + 1, held + hold, value + possible[at, PRICE]
            at += 1
            continue
        if at == len(possible) and value >= lowest:
            count += 1
            cost = requests.largest[now] - value + cut
            if count > limit or not _add_predecessors(
                requests, now, members, many, cost, below, into, NONE
            ):
                return False
        if many == 0:
            return True
        many -= 1
        at = stack[many]
        copies[possible[at, KIND]] += 1
        held, value = held - possible[at, HOLD], value - possible[at, PRICE]
        # Equal states next to it would only give the same set again.
        at = _other(possible, at)


@borrowing
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
    members, stack = requests.members, requests.stack
    for number in range(part[0], part[1]):
        many, held, cost = 0, 0, sets.costs[number] + requests.largest[now]
        while sets.members[number, many] != NONE:
            code = sets.members[number, many]
            kind, left = code // width, code % width - now
            members[many] = code
            held += requests.peaks[kind] - left
            cost -= requests.prices[now, requests.firsts[kind] + left]
            many += 1
        if not _fits(requests, members, many):
            continue
        carried, at, is_new = many, 0, True
        while True:
            all_fit = True
            if is_new and cost < below:
                all_fit = _add_predecessors(requests, now, members, many, cost, below, into, number)
            if not all_fit:
                return False
            at = _next_ending(requests, ending, at, members, many, held, cost, below)
            is_new = at < len(ending)
            if is_new:  # go down: one more member ends
                stack[many] = at
                members[many] = ending[at, KIND] * width + now + ending[at, LEFT]
                many, held, cost = many + 1, held + ending[at, HOLD], cost - ending[at, PRICE]
                at += 1
            elif many > carried:  # go up: another member in place of the last
                many -= 1
                at = stack[many]
                held, cost = held - ending[at, HOLD], cost + ending[at, PRICE]
                at = _other(ending, at)
            else:
                break
    return True


@borrowing
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
    while at < len(ending) and many < requests.together:
        if cost - min(room, requests.together - many) * ending[at, PRICE] >= below:
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


@borrowing
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


@borrowing
def _add_predecessors(
    requests: Requests,
    now: int,
    members: Integers,
    many: int,
    cost: int,
    below: int,
    into: Sets,
    after: int,
) -> bool:
    """Add all sets that may have led to a set; return whether all cheap ones fitted.

    Members that have just started were not carried: their starts are paid.  If copies of a member
    may also have started before, every number of starts among them is tried.
    """
    width, carried, begun = requests.ends.shape[1], into.members[-1], into.begun[-1]
    runs, paid, at, sure = 0, cost, 0, 0
    while at < many:
        code, first = members[at], at
        while at < many and members[at] == code:
            at += 1
        kind, end = code // width, code % width
        start = requests.starting[kind, end - now]
        # No earlier start leads there: all copies have just started.
        if requests.begins[kind, end] >= now - 1:
            paid += (at - first) * start
            for _ in range(at - first):
                begun[sure] = code
                sure += 1
        else:
            requests.runs[runs, _CODE], requests.runs[runs, _ALIKE] = code, at - first
            requests.runs[runs, _START], requests.runs[runs, _STARTED] = start, 0
            runs += 1
    alike = requests.runs[:runs]
    while paid < below:
        count, key, new = 0, np.uint64(0), sure
        for code, copies, _, started in alike:
            for _ in range(started):
                begun[new] = code
                new += 1
            for _ in range(copies - started):
                place = count
                while place > 0 and carried[place - 1] > code:
                    carried[place] = carried[place - 1]
                    place -= 1
                carried[place] = code
                count += 1
                key += requests.zobrist[code // width, code % width]
        begun[new] = NONE
        if not _put(into, key, carried, count, paid, after):
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


@borrowing
def _put(sets: Sets, key: np.uint64, members: Integers, many: int, cost: int, after: int) -> bool:
    """Add a set, or lower its cost; return whether it fitted."""
    last = np.uint64(len(sets.slots) - 1)
    place = np.int64((key ^ (key >> np.uint64(32))) & last)
    number = sets.slots[place]
    while number >= 0:
        at, same = 0, sets.keys[number] == key and sets.members[number, many] == NONE
        while same and at < many:
            same = sets.members[number, at] == members[at]
            at += 1
        if same:
            break
        place = (place + 1) & np.int64(last)
        number = sets.slots[place]
    is_new = number < 0
    if not is_new and sets.costs[number] <= cost:
        return True
    if is_new:
        number = sets.filled[0]
        if number == len(sets.costs):
            return False
        sets.filled[0] += 1
        sets.slots[place], sets.keys[number] = number, key
        for at in range(many):
            sets.members[number, at] = members[at]
        sets.members[number, many] = NONE
    sets.costs[number] = cost
    if len(sets.afters):
        sets.afters[number] = after
        for at in range(sets.begun.shape[1]):
            sets.begun[number, at] = sets.begun[-1, at]
    return True


@compiled
def fill_table(keys: Integers, costs: Integers, table: CostToGoTable) -> None:
    """Enter costs by their keys; where two sets have one key, the least."""
    for number in range(len(keys)):
        key = keys[number]
        place = place_of_key(key, table)
        if table.costs[place] < 0 or costs[number] < table.costs[place]:
            table.keys[place], table.costs[place] = key, costs[number]

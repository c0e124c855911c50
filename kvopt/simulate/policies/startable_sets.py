"""Sets that may start together, with the least sum of outputs for each number of members.

Take the members of a set by descending output.  When ``c`` of them with prompts of S tokens in
all run at least as long as a request of output o, they hold ``S + c o`` tokens when it
completes.  So only c, S and the sum of outputs O of a choice matter, and of two choices of one
c the one with more S and no less O is useless.  The others form fronts, one for each c,
with ascending S and descending O.

Candidates are in tie order, by ascending output, and are identified by their places in it.  Of
equally good sets the one whose first differing place is earlier wins everywhere.

The loops are written for a compiler, and run without one for small work.  They write into given
arrays: if compiled code creates the arrays that it returns, Ctrl-C in between may end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappush, heapreplace
from typing import Any, TypeVar

import numpy as np

from kvopt.errors import TooLarge
from kvopt.kernels.loop_calls import machine_code
from kvopt.problem.arrays import Integers

Function = TypeVar("Function", bound=Callable[..., Any])

FEW_ENTRIES = 200
"""Up to so many entries of a table loading a compiler takes longer than it saves."""


def undominated(prompts: Integers, limit: int) -> Integers:
    """Return the places that can be in a best set of at most so many, in ascending order.

    An earlier request with a prompt that is not longer can replace a member: the size of the set
    stays, its outputs do not grow, and it is earlier in tie order.  So a best set with a member has
    all such requests too, and they must fit.
    """
    smallest, places = list[int](), list[int]()  # the smallest prompts so far, negated, as a heap
    for place, prompt in enumerate(prompts.tolist()):
        if len(smallest) < limit:
            heappush(smallest, -prompt)
        elif prompt < -smallest[0]:
            heapreplace(smallest, -prompt)
        else:
            continue
        places.append(place)
    return np.array(places, dtype=np.int64)


LARGEST = 2**25
"""Limit of the sets that are kept for comparison: 16 bytes each."""

_FIRST_CHAINS = 2**15
"""First size of the arrays, in sets."""


class Together:
    """Candidates to start together with the running requests, in sets of limited size.

    Parameters
    ----------
    prompts, outputs
        Those of the candidates.
    memory, limit
        Limits of the tokens held, and of the members of a set.
    running
        Tokens held now, and rounds to the believed completion, of each active request.
    grows
        Whether each holds a token more in every round, or constantly its ``prompts``.
    few_entries
        Up to so many entries of a table loops are not compiled.

    Attributes
    ----------
    joins
        For each place and c: the most S with which it can be the c-th member.
    between
        For each place and c: the most S, with c members up to it, for the completions of
        running requests between the output before and its own.
    """

    def __init__(
        self,
        prompts: Integers,
        outputs: Integers,
        memory: int,
        limit: int,
        running: Sequence[tuple[int, int]] = (),
        *,
        grows: bool = True,
        few_entries: int = FEW_ENTRIES,
    ) -> None:
        self._few_entries = few_entries
        self.prompts, self.outputs, self.memory, self.limit = prompts, outputs, memory, limit
        # When the c-th member completes, c members hold S + c o next to the running requests.
        counts = np.arange(limit + 1)
        self.joins = memory - _times(outputs, counts * grows, memory)
        self.between = np.full(self.joins.shape, memory)
        if running:
            held, rest = np.array(sorted(running, key=lambda pair: pair[1]), dtype=np.int64).T
            self.joins -= _loads(held, rest, outputs)[:, None]
            # When a running request completes, members with no shorter outputs hold S + c rest.
            place = outputs.searchsorted(rest)
            inside = place < len(outputs)
            limits = memory - _loads(held, rest, rest)[:, None] - _times(rest, counts, memory)
            np.minimum.at(self.between, place[inside], limits[inside])

    def largest(self) -> int:
        """Return the size of the largest sets."""
        return int(self._quick(_largest)(self.prompts, self.joins, self.between))

    def best(self, minimum: int) -> dict[int, tuple[int, list[int]]]:
        """Return the least sum of outputs by size, and the places of the first such set.

        Sets of fewer members than ``minimum`` are ignored.
        """
        room = np.full((len(self.prompts) + 1, self.limit + 1), -1)
        self._quick(_rooms)(self.prompts, self.joins, self.between, minimum, room)
        best, size = np.full((self.limit + 1, 2), -1), _FIRST_CHAINS
        while size <= LARGEST:
            chains = np.empty((size, 2), np.int64)
            tables = self.prompts, self.outputs, self.joins, room
            if self._quick(_fronts)(*tables, best, chains):
                return {
                    count: (total, _chain(node, chains))
                    for count, (total, node) in enumerate(best.tolist())
                    if count >= minimum and total >= 0
                }
            size *= 4
        raise TooLarge(f"more than {LARGEST:,} sets would have to be compared")

    def _quick(self, function: Function) -> Function:
        """Return a function as machine code, unless loading a compiler takes longer."""
        return function if self.joins.size <= self._few_entries else machine_code(function)


def _times(outputs: Integers, counts: Integers, memory: int) -> Integers:
    """Return the tokens of so many requests when one completes, or any number above the memory."""
    return np.minimum(counts, memory // outputs[:, None] + 1) * outputs[:, None]


def _loads(held: Integers, rest: Integers, times: Integers) -> Integers:
    """Return the tokens that running requests hold after so many rounds, at their ends or not."""
    first = rest.searchsorted(times)
    later = np.append(held[::-1].cumsum()[::-1], 0)[first]
    return np.asarray(later + (len(rest) - first) * times)


def _chain(node: int, chains: Integers) -> list[int]:
    places = []
    while node >= 0:
        place, node = chains[node].tolist()
        places.append(place)
    return places


def _largest(prompts: Integers, joins: Integers, between: Integers) -> int:
    """Return the size of a largest set; the least S for every c suffices."""
    nothing = 2**62
    lowest = np.full(joins.shape[1], nothing)
    lowest[0] = 0
    for place in range(len(prompts) - 1, -1, -1):
        for count in range(joins.shape[1] - 1, 0, -1):
            grown = lowest[count - 1] + prompts[place]
            if grown < lowest[count] and grown <= joins[place, count]:
                lowest[count] = grown
        for count in range(joins.shape[1]):
            if lowest[count] > between[place, count]:
                lowest[count] = nothing
    size: int = joins.shape[1] - 1
    while size > 0 and lowest[size] == nothing:
        size -= 1
    return size


def _rooms(
    prompts: Integers, joins: Integers, between: Integers, size: int, room: Integers
) -> None:
    """Find, before each place is tried, the most S for each c from which a size is reached.

    The last row is for the beginning, before any request.
    """
    room[0, size:] = 2**62
    for place in range(len(prompts)):
        for count in range(joins.shape[1]):
            within = min(room[place, count], between[place, count])
            room[place, count] = within
            room[place + 1, count] = within
            # With this place there are c + 1 members, with its prompt more.
            if count + 1 < joins.shape[1]:
                after = min(
                    room[place, count + 1], between[place, count + 1], joins[place, count + 1]
                )
                room[place + 1, count] = max(within, after - prompts[place])


def _fronts(
    prompts: Integers,
    outputs: Integers,
    joins: Integers,
    room: Integers,
    best: Integers,
    chains: Integers,
) -> bool:
    """Find the least sum of outputs for each c and its node, and the sets as chains of places.

    A node is a place and the next node.  Returns False if there is no room for all chains.

    A chain has its earliest place first.  Of two chains of one c and sum that meet in a front,
    the one that the current place joins is earlier than the one that it does not join; and
    within each of the two lists the one with more S is, or it would have been dropped.
    """
    limit, width, nodes = joins.shape[1] - 1, 64, 0
    front = np.zeros((limit + 1, width, 3), np.int64)  # S, sum of outputs and node of chains
    merged = np.empty((2 * width, 3), np.int64)
    lengths = np.zeros(limit + 1, np.int64)
    front[0, 0, 2], lengths[0] = -1, 1
    for place in range(len(prompts) - 1, -1, -1):
        for count in range(min(limit, len(prompts) - place), -1, -1):
            stays, joined = lengths[count], lengths[count - 1] if count else 0
            if nodes + joined > len(chains):
                return False

            # Both lists ascend in S: one without the place, one with it, are merged.  Each has at
            # most ``width`` chains, so that all of them have room.
            left = right = length = 0
            last, last_joined = 2**62, False
            while left < stays or right < joined:
                within, is_joining = room[place, count], left == stays
                tokens = total = node = 0
                if right < joined:
                    tokens = front[count - 1, right, 0] + prompts[place]
                    total = front[count - 1, right, 1] + outputs[place]
                    if not is_joining:
                        gain = tokens - front[count, left, 0]
                        is_joining = gain < 0 or (gain == 0 and total <= front[count, left, 1])
                if is_joining:
                    node = front[count - 1, right, 2]
                    within = min(within, joins[place, count])
                    right += 1
                else:
                    tokens, total = front[count, left, 0], front[count, left, 1]
                    node = front[count, left, 2]
                    left += 1

                # A chain with more S is kept only if its sum is less, or equal and it is earlier.
                is_earlier = is_joining or not last_joined
                if tokens > within or total > last:
                    continue
                if total == last and not is_earlier:
                    continue
                last, last_joined = total, is_joining
                if is_joining:
                    chains[nodes, 0], chains[nodes, 1] = place, node
                    node = nodes
                    nodes += 1
                merged[length, 0], merged[length, 1], merged[length, 2] = tokens, total, node
                length += 1
            if length > width:
                front = np.concatenate((front, np.zeros_like(front)), axis=1)
                merged = np.concatenate((merged, np.empty_like(merged)))
                width *= 2
            for row in range(length):
                for entry in range(3):
                    front[count, row, entry] = merged[row, entry]
            lengths[count] = length
    for count in range(limit + 1):
        if lengths[count]:
            last = lengths[count] - 1
            best[count, 0], best[count, 1] = front[count, last, 1], front[count, last, 2]
    return True

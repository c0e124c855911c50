"""Sets that may start together, with the least sum of outputs for each number of members.

Take the members of a set by descending output.  When ``c`` of them with prompts of S tokens in
all run at least as long as a request of output o, they hold ``S + c o`` tokens when it
completes.  So c, S and the sum of outputs O are all that a choice leaves behind, and of two
choices of one c the one with more S and no less O is of no use.  What is left are fronts, one
for each c, with ascending S and descending O.

Candidates are in tie order, by ascending output, and are called by their places in it.  Of sets
that are equally good the one whose first differing place is earlier wins everywhere.

The loops are written for a compiler, and run without one where there is little to do.  They
write into arrays that they are given: where compiled code makes the arrays that it returns,
Ctrl-C may fall between and end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kvopt.errors import TooLarge
from kvopt.kernels.interruptible import machine_code
from kvopt.problem.arrays import Flags, Integers

Function = TypeVar("Function", bound=Callable[..., Any])

_FEW = 200
"""Entries of a table of rooms up to which loading a compiler takes longer than it saves."""

NO_LIMIT = 2**62
"""More than any sum of outputs."""


def undominated(prompts: Integers, most: int) -> Integers:
    """Return the places that can be in a best set of at most so many, in ascending order.

    A request that is earlier and has no longer prompt can take the place of a member: the set
    stays as large, gets no longer, and is earlier in tie order.  So a best set that has a member
    has every request of that kind too, and they must fit.
    """
    kept = np.zeros(len(prompts), np.bool_)
    _quick(_undominated, len(prompts))(prompts, most, kept)
    return np.flatnonzero(kept)


LARGEST = 2**25
"""Sets that are kept for comparison at most: 16 bytes each."""

_FIRST_CHAINS = 2**15
"""Sets that there is room for at first."""


class Chains(NamedTuple):
    """Best sets: by size their sum of outputs and their first node; by node place and next."""

    sums: Integers
    heads: Integers
    places: Integers
    tails: Integers


class Together:
    """Candidates that are to start together, beside what is running, in sets of limited size.

    Parameters
    ----------
    prompts, outputs
        Of the candidates.
    memory, most
        Tokens that may be held, and members that a set may have.
    running
        Tokens held now, and rounds to the believed completion, of each active request.
    grows
        Whether each holds a token more in every round, or its ``prompts`` all the time.

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
        most: int,
        running: Sequence[tuple[int, int]] = (),
        *,
        grows: bool = True,
    ) -> None:
        self.prompts, self.outputs, self.memory, self.most = prompts, outputs, memory, most
        counts = np.arange(most + 1)
        self.joins = memory - _times(outputs, counts * grows, memory)
        self.between = np.full(self.joins.shape, memory)
        if running:
            held, rest = np.array(sorted(running, key=lambda pair: pair[1]), dtype=np.int64).T
            self.joins -= _loads(held, rest, outputs)[:, None]
            place = outputs.searchsorted(rest)
            inside = place < len(outputs)
            limits = memory - _loads(held, rest, rest)[:, None] - _times(rest, counts, memory)
            np.minimum.at(self.between, place[inside], limits[inside])

    def largest(self) -> tuple[int, int]:
        """Return the size of the largest sets and the sum of outputs of one of them."""
        found = np.zeros(2, np.int64)
        self._quick(_largest)(self.prompts, self.outputs, self.joins, self.between, found)
        return int(found[0]), int(found[1])

    def best(self, sizes: range, longest: Sequence[int]) -> dict[int, tuple[int, list[int]]]:
        """Return the least sum of outputs by size, and the places of the first such set.

        Parameters
        ----------
        sizes
            Sizes that are of interest.
        longest
            For each of them the most that a sum of outputs may be; what is above is left out.
        """
        room = np.full((len(self.prompts) + 1, self.most + 1), -1)
        self._quick(_rooms)(self.prompts, self.joins, self.between, sizes.start, room)
        sums, heads, places, tails = self._searched(room, self._limits(sizes, longest))
        return {
            size: (int(sums[size]), _chain(int(heads[size]), places, tails))
            for size in sizes
            if sums[size] < NO_LIMIT
        }

    def _limits(self, sizes: range, longest: Sequence[int]) -> Integers:
        """Return the most that outputs may be for each place and c: the rest is the shortest."""
        shortest = np.append(0, self.outputs.cumsum())
        whole = np.full(self.most + 1, -NO_LIMIT)
        whole[sizes.start : sizes.stop] = longest
        limits = np.full((len(self.prompts) + 1, self.most + 1), -NO_LIMIT)
        for more in range(min(self.most, len(self.prompts)) + 1):
            part = limits[more:, : self.most + 1 - more]
            np.maximum(part, whole[more:] - shortest[more], out=part)
        return limits

    def _searched(
        self, room: Integers, limits: Integers
    ) -> tuple[Integers, Integers, Integers, Integers]:
        """Return what `_fronts` finds, with as much room for chains as it needs."""
        sums, heads = np.full(self.most + 1, NO_LIMIT), np.full(self.most + 1, -1)
        size = _FIRST_CHAINS
        while size <= LARGEST:
            places, tails = np.empty(size, np.int64), np.empty(size, np.int64)
            found = Chains(sums, heads, places, tails)
            if self._quick(_fronts)(self.prompts, self.outputs, self.joins, room, limits, found):
                return sums, heads, places, tails
            size *= 4
        raise TooLarge(f"more than {LARGEST:,} sets would have to be compared")

    def _quick(self, function: Function) -> Function:
        return _quick(function, self.joins.size)


def _quick(function: Function, size: int) -> Function:
    return function if size <= _FEW else machine_code(function)


def _times(outputs: Integers, counts: Integers, memory: int) -> Integers:
    """Return what so many have produced when one completes; beyond the memory, only that."""
    return np.minimum(counts, memory // outputs[:, None] + 1) * outputs[:, None]


def _loads(held: Integers, rest: Integers, times: Integers) -> Integers:
    """Return the tokens that running requests hold after so many rounds, at their ends or not."""
    first = rest.searchsorted(times)
    later = np.append(held[::-1].cumsum()[::-1], 0)[first]
    return np.asarray(later + (len(rest) - first) * times)


def _chain(node: int, places: Integers, tails: Integers) -> list[int]:
    chain = []
    while node >= 0:
        chain.append(int(places[node]))
        node = int(tails[node])
    return chain


def _undominated(prompts: Integers, most: int, kept: Flags) -> None:
    """Mark requests that have fewer than so many before it with prompts that are no longer."""
    least = np.full(most, 2**62)  # the smallest so far
    for place in range(len(prompts)):
        prompt, rank = prompts[place], most - 1
        if prompt >= least[rank]:
            continue
        kept[place] = True
        while rank > 0 and least[rank - 1] > prompt:
            least[rank] = least[rank - 1]
            rank -= 1
        least[rank] = prompt


def _largest(
    prompts: Integers, outputs: Integers, joins: Integers, between: Integers, found: Integers
) -> None:
    """Find size and sum of a largest set, for which the least S for every c is enough."""
    nothing = 2**62
    least, sums = np.full(joins.shape[1], nothing), np.zeros(joins.shape[1], np.int64)
    least[0] = 0
    for place in range(len(prompts) - 1, -1, -1):
        for count in range(joins.shape[1] - 1, 0, -1):
            grown = least[count - 1] + prompts[place]
            if grown < least[count] and grown <= joins[place, count]:
                least[count] = grown
                sums[count] = sums[count - 1] + outputs[place]
        for count in range(joins.shape[1]):
            if least[count] > between[place, count]:
                least[count] = nothing
    size = joins.shape[1] - 1
    while size > 0 and least[size] == nothing:
        size -= 1
    found[0], found[1] = size, sums[size]


def _rooms(
    prompts: Integers, joins: Integers, between: Integers, size: int, room: Integers
) -> None:
    """Find, before each place is asked, the most S for each c from which a size is reached.

    The last row is for the beginning, when no request was asked.
    """
    room[0, size:] = 2**62
    for place in range(len(prompts)):
        for count in range(joins.shape[1]):
            within = min(room[place, count], between[place, count])
            room[place, count] = within
            room[place + 1, count] = within
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
    limits: Integers,
    found: Chains,
) -> bool:
    """Find the least sum of outputs for each c, and the sets as chains of places.

    Returns False if there is no room for all chains.

    A chain has its earliest place first.  Of two chains of one c and sum that meet in a front,
    the one that the current place joins is earlier than the one that it does not join; and
    within each of the two lists the one with more S is, or it would have been dropped.
    """
    least, first, places, tails = found
    most, width, nodes = joins.shape[1] - 1, 64, 0
    held = np.zeros((most + 1, width), np.int64)
    sums = np.zeros((most + 1, width), np.int64)
    heads = np.full((most + 1, width), -1, np.int64)
    lengths = np.zeros(most + 1, np.int64)
    lengths[0] = 1
    new_held, new_sums = np.empty(2 * width, np.int64), np.empty(2 * width, np.int64)
    new_heads = np.empty(2 * width, np.int64)
    for place in range(len(prompts) - 1, -1, -1):
        prompt, output = prompts[place], outputs[place]
        for count in range(min(most, len(prompts) - place), -1, -1):
            within, limit = room[place, count], limits[place, count]
            stays, joined = lengths[count], lengths[count - 1] if count else 0
            taken = min(within, joins[place, count])
            if nodes + joined > len(places):
                return False
            left = right = length = 0
            best, best_joined = 2**62, False
            while left < stays or right < joined:
                join = left == stays
                if right < joined and not join:
                    gain = held[count - 1, right] + prompt - held[count, left]
                    ahead = sums[count - 1, right] + output <= sums[count, left]
                    join = gain < 0 or (gain == 0 and ahead)
                if join:
                    tokens, total = held[count - 1, right] + prompt, sums[count - 1, right] + output
                    useful = tokens <= taken
                    earlier = total <= best
                    right += 1
                else:
                    tokens, total = held[count, left], sums[count, left]
                    useful = tokens <= within
                    earlier = total < best or (total == best and not best_joined)
                    left += 1
                if not useful or not earlier or total > limit:
                    continue
                best, best_joined = total, join
                new_held[length], new_sums[length] = tokens, total
                if join:
                    places[nodes], tails[nodes] = place, heads[count - 1, right - 1]
                    new_heads[length] = nodes
                    nodes += 1
                else:
                    new_heads[length] = heads[count, left - 1]
                length += 1
            if length > width:
                empty = np.zeros((most + 1, width), np.int64)
                held = np.concatenate((held, empty), axis=1)
                sums = np.concatenate((sums, empty), axis=1)
                heads = np.concatenate((heads, empty), axis=1)
                width *= 2
                new_held = np.append(new_held, np.empty(width, np.int64))
                new_sums = np.append(new_sums, np.empty(width, np.int64))
                new_heads = np.append(new_heads, np.empty(width, np.int64))
            held[count, :length] = new_held[:length]
            sums[count, :length] = new_sums[:length]
            heads[count, :length] = new_heads[:length]
            lengths[count] = length
    for count in range(most + 1):
        if lengths[count]:
            least[count] = sums[count, lengths[count] - 1]
            first[count] = heads[count, lengths[count] - 1]
    return True

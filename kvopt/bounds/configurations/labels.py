"""Labels, the partial schedules of a forward search, and the data of a round.

A label holds completion rounds, `WAITING` for requests that have not started and `DONE` for
those that are no longer active.  Equal labels have the same continuations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kvopt.kernels.compiled import compiled

Integers = npt.NDArray[Any]
"""Integers of 64 bits; of 16 or 32 in labels, by how late their rounds are."""

WAITING, DONE = 0, -1
"""Entries of a label other than completion rounds."""

_BITS = 64
"""Bits of one word of a set of requests."""


class Layer(NamedTuple):
    """Labels that have decided every start before one round.

    Parameters
    ----------
    labels
        Completion rounds of each request, one row for each label.
    spent
        Reduced costs of their starts plus slacks so far, see
        `kvopt.bounds.configurations.forward_search`.
    began
        Sum of the start rounds.
    parents
        The label in the layer before that each of them extends.
    """

    labels: Integers
    spent: Integers
    began: Integers
    parents: Integers

    def only(self, which: Integers | slice) -> Layer:
        """Return some of the labels."""
        return Layer(*(part[which] for part in self))

    def waiting(self) -> Integers:
        """Return the set of waiting requests of each label, as bits of integers."""
        count = self.labels.shape[1]
        padded = np.zeros((len(self.labels), -(-count // _BITS) * _BITS), dtype=np.bool_)
        padded[:, :count] = self.labels == WAITING
        return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def members_of(bits: Integers, count: int) -> Integers:
    """Return the requests in a set of ``count`` at most, as `Layer.waiting` keeps them."""
    flags = np.unpackbits(np.ascontiguousarray(bits).view(np.uint8), bitorder="little")
    return np.flatnonzero(flags[:count])


OFFSETS = np.array([0, 1, 2, 3, 5, 8, 12, 18, 26])
"""Rounds after a time at which further requests must fit next to the active ones."""


class LookaheadTables(NamedTuple):
    """Data of the look-ahead from one round about the rounds after it.

    Parameters
    ----------
    first
        The first time of the look-ahead.
    prices
        For each completion and state the price of a request in that state that completes then;
        after the last priced time all prices are 0.
    largest
        Of all times, as in `Evaluation`.
    gains
        Largest price that further requests can add, for each round from ``first`` on, each of
        `OFFSETS` and each amount of free memory there.
    """

    first: int
    prices: Integers
    largest: Integers
    gains: Integers


_NOTHING = np.zeros(1, dtype=np.int64)
NO_LOOKAHEAD = LookaheadTables(
    0, *(np.zeros(size, dtype=np.int32) for size in ((1, 1), 1, (0, 1, 1)))
)
"""Look-ahead over no rounds: it finds no slack."""


class CostToGoTable(NamedTuple):
    """Least costs of the rest of a schedule above the bound, by the states that it carries.

    Parameters
    ----------
    zobrist, ends
        For each request and completion round its part of a key, and the last time at which it has
        a price; it counts only until then.
    keys, costs
        A hash table of sets of states; costs are negative in empty slots.
    cut
        The cost of all other sets.
    """

    zobrist: Integers
    ends: Integers
    keys: Integers
    costs: Integers
    cut: int


@compiled
def place_of_key(key: np.uint64, table: CostToGoTable) -> int:
    """Return the place of a key in the hash table, or the empty one where it belongs."""
    last = np.uint64(len(table.keys) - 1)
    place = np.int64((key ^ (key >> np.uint64(32))) & last)
    while table.costs[place] >= 0 and table.keys[place] != key:
        place = (place + 1) & np.int64(last)
    return int(place)


NO_COST_TO_GO = CostToGoTable(
    np.zeros((1, 1), dtype=np.uint64),
    _NOTHING[:, None],
    np.zeros(0, dtype=np.uint64),
    _NOTHING[:0],
    0,
)
"""No bounds on the cost to go."""


class Round(NamedTuple):
    """Data of a forward search in one round.

    Parameters
    ----------
    now
        Start round k; a request that starts is active from time k + 1.
    gap
        The most that a schedule below the target costs above the bound.
    reduced_costs
        Reduced cost of a start of each request now.
    later
        Least reduced cost of each request for a start after now.
    prices, largest
        Prices of states at time k + 1, and the largest price of a configuration then.
    predecessors
        As in `kvopt.bounds.configurations.forward_search.ForwardSearch`.
    horizon, cost_to_go
        Bounds on the costs of the rounds after it.
    """

    now: int
    gap: int
    reduced_costs: Integers
    later: Integers
    prices: Integers
    largest: int
    predecessors: Integers
    horizon: LookaheadTables = NO_LOOKAHEAD
    cost_to_go: CostToGoTable = NO_COST_TO_GO

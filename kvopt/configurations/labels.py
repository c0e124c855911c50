"""Partial schedules, and what a search forward in time knows of a round.

A partial schedule is a row of completion rounds, `WAITING` for requests that have not started
and `DONE` for those that are no longer active.  Rows that are equal leave the same work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]
"""Of 64 bits, or of fewer where there are many of them."""

WAITING, DONE = 0, -1

_BITS = 64
"""Of an integer."""


class Layer(NamedTuple):
    """Partial schedules that have decided every start before one round.

    Parameters
    ----------
    rows
        Completion rounds, one row for each of them.
    spent
        What their starts and their past cost above the bound, see
        `kvopt.configurations.forward_search`.
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


class Sight(NamedTuple):
    """What is seen from one round.

    Parameters
    ----------
    prices, largest
        Of all times, as in `Evaluation`; nothing is worth anything after the last priced one.
    gains
        The most that requests can add, for each round that is looked at, spot and room there.
    spots
        Rounds after a time at which what is added must fit beside the active requests.
    """

    prices: Integers
    largest: Integers
    gains: Integers
    spots: Integers


_NOTHING = np.zeros(1, dtype=np.int64)
BLIND = Sight(_NOTHING[:, None], _NOTHING, np.zeros((0, 1, 1), dtype=np.int64), _NOTHING)
"""Sees no slack."""

"""Tokens held over time: one sweep over begins and ends, in exact integers.

What holds prompt p from start k on holds ``p - k + t`` tokens at time t.  So memory grows in a
straight line from each begin or end to the next: what is held there follows from how many pieces
of work are active and from the sum of their ``p - k``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

_LARGEST_SUM = 2**62
"""Limit of sums in arrays; beyond, they hold Python's integers."""


class Sweep(NamedTuple):
    """What pieces of work hold, in columns.

    Parameters
    ----------
    starts, ends, before
        Of the pieces: each is active at the times ``start + 1 .. end``, and has as many tokens
        before.
    times
        Those at which a piece starts or ends, ascending.
    active, held
        Pieces, and all tokens in the round that ends at each of them.
    """

    starts: Sequence[int]
    ends: Sequence[int]
    before: Sequence[int]
    times: list[int]
    active: list[int]
    held: list[int]


def swept(starts: Sequence[int], ends: Sequence[int], before: Sequence[int]) -> Sweep:
    """Return what pieces of work hold over time, whether an eviction loses them or not."""
    import numpy as np  # not before there is something to count

    given = (starts, ends, before)
    largest = max((max(map(abs, column)) for column in given if column), default=0)
    dtype: Any = np.int64 if largest * 4 * (len(starts) + 1) <= _LARGEST_SUM else object
    begins, stops, held = (np.array(column, dtype) for column in given)
    times, places = np.unique(np.concatenate((begins, stops)), return_inverse=True)

    def sums(what: np.ndarray) -> np.ndarray:
        """Return the sums over what is active in the round that ends at each of the times."""
        change = np.zeros(len(times), dtype)
        np.add.at(change, places, np.concatenate((what, -what)))
        found: np.ndarray = change.cumsum() - change
        return found

    active = sums(np.ones_like(begins))
    columns = (times, active, sums(held - begins) + active * times)
    return Sweep(*given, *(column.tolist() for column in columns))

"""Tokens held over time by very many pieces of work, in exact integers of 64 bits.

What holds prompt p from start k on holds ``p - k + t`` tokens at time t.  Sums over what is
active at t are differences of sums over what has begun and over what has ended before it.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST = 2_000
"""Pieces from which on arrays are quicker than one piece after the other."""

_LARGEST_SUM = 2**62


def loads_at_ends(
    prompts: Sequence[int], starts: Sequence[int], ends: Sequence[int]
) -> tuple[list[int], list[int]] | None:
    """Return the times at which something ends, ascending, and the tokens held at each.

    None where sums might not fit into 64 bits.
    """
    largest = max(map(max, (prompts, starts, ends))) - min(0, *map(min, (starts, ends)))
    if largest * 2 * (len(starts) + 1) > _LARGEST_SUM:
        return None
    import numpy as np  # not before there is so much to count

    begins, offsets = np.array(starts), np.array(prompts) - np.array(starts)
    stops = np.array(ends)
    times = np.unique(stops)

    def before(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many pieces, and offsets, have their moment before each time."""
        order = moments.argsort(kind="stable")
        counts = moments[order].searchsorted(times)
        return counts, np.append(0, offsets[order].cumsum())[counts]

    begun, level = before(begins)
    ended, gone = before(stops)
    loads = level - gone + (begun - ended) * times
    return times.tolist(), loads.tolist()

"""Which partial schedules are beaten by others.

One beats another that has the same waiting requests if its latency is at most as large and it
holds at most as much at every time to come: then whatever completes the one completes the other,
at no more latency.
"""

from __future__ import annotations

import numpy as np

from kvopt.compiled import compiled
from kvopt.configurations.layers import Integers, Layer
from kvopt.configurations.parts import in_parts
from kvopt.configurations.states import States

_COMPARED = 20
"""Partial schedules with the same waiting requests that a new one is compared with."""


def undominated(layer: Layer, states: States, now: int, threads: int = 1) -> Layer:
    """Drop what another partial schedule with the same waiting requests beats."""
    waiting = layer.waiting()
    order = np.lexsort((layer.began, *waiting.T))
    keep = np.ones(len(order), dtype=np.bool_)
    peaks, longest = states.holds[states.firsts], int(states.outputs.max())

    def first_from(at: int) -> int:
        """Return where the next set of waiting requests begins."""
        while 0 < at < len(order) and (waiting[order[at]] == waiting[order[at - 1]]).all():
            at += 1
        return at

    def work(begin: int, end: int) -> None:
        some = order[first_from(begin) : first_from(end)]
        _clear_dominated(some, waiting, layer.rows, peaks, longest, now, keep)

    in_parts(work, len(order), threads)
    return layer.only(np.flatnonzero(keep))


@compiled
def _clear_dominated(
    order: Integers,
    waiting: Integers,
    rows: Integers,
    peaks: Integers,
    longest: int,
    now: int,
    keep: Integers,
) -> None:
    """Clear the flags of dominated rows; in order, rows come by waiting set, cheapest first."""
    profiles = np.zeros((_COMPARED, longest), dtype=np.int64)
    profile = np.zeros(longest, dtype=np.int64)
    kept = 0
    for at in range(len(order)):
        number = order[at]
        if at > 0 and not _are_equal(waiting[number], waiting[order[at - 1]]):
            kept = 0
        row = rows[number]
        profile[:] = 0
        for i in range(len(row)):
            for time in range(now + 2, row[i] + 1):
                profile[time - now - 2] += peaks[i] - (row[i] - time)
        for other in range(kept):
            if _is_below(profiles[other], profile):
                keep[number] = False
                break
        if keep[number] and kept < _COMPARED:
            profiles[kept] = profile
            kept += 1


@compiled
def _are_equal(one: Integers, other: Integers) -> bool:
    same = True
    for word in range(len(one)):
        if one[word] != other[word]:
            same = False
            break
    return same


@compiled
def _is_below(one: Integers, other: Integers) -> bool:
    below = True
    for t in range(len(one)):
        if one[t] > other[t]:
            below = False
            break
    return below

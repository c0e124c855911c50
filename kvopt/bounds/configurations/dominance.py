"""Which labels are dominated by others.

One dominates another that has the same waiting requests if its latency is at most as large and it
holds at most as much at every time to come: then whatever completes the one completes the other,
at no more latency.  The same holds if it has started one more request: the other one has that
still to pay for.
"""

from __future__ import annotations

import numpy as np

from kvopt.bounds.configurations.labels import WAITING, Integers, Layer
from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import compiled
from kvopt.kernels.parallel import map_ranges

_COMPARED = 20
"""Labels with the same waiting requests that a new one is compared with, at most."""
_EMPTY = -1
"""Mark of an empty place in the hash table."""


def undominated(
    layer: Layer, states: States, now: int, threads: int = 1, *, one_more: bool = False
) -> Layer:
    """Drop labels that another one with the same waiting requests dominates, or with one less.

    That nothing better is lost is Claim 15 of docs/configurations.md, and Claim 17 with one less.

    Parameters
    ----------
    layer, states, now
        Labels that have decided the starts up to now.
    threads
        Threads that share the work.
    one_more
        Whether one that has started one more request may dominate another: `kvopt verify` knows of
        the same waiting requests only.
    """
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
        _clear_dominated(some, waiting, layer.labels, peaks, longest, now, keep)

    map_ranges(work, len(order), threads)
    if one_more and len(order):
        _drop_outdone(
            layer, waiting, order[keep[order]], peaks, longest, states, now, threads, keep
        )
    return layer.only(np.flatnonzero(keep))


@compiled
def _clear_dominated(
    order: Integers,
    waiting: Integers,
    labels: Integers,
    peaks: Integers,
    longest: int,
    now: int,
    keep: Integers,
) -> None:
    """Clear the flags of dominated labels; in order, labels come by waiting set, cheapest first."""
    profiles = np.zeros((_COMPARED, longest), dtype=np.int64)
    profile = np.zeros(longest, dtype=np.int64)
    kept = 0
    for at in range(len(order)):
        number = order[at]
        if at > 0 and not _are_equal(waiting[number], waiting[order[at - 1]]):
            kept = 0
        _fill_profile(labels[number], peaks, now, profile)
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


def _drop_outdone(
    layer: Layer, waiting: Integers, order: Integers, peaks: Integers, longest: int,
    states: States, now: int, threads: int, keep: Integers,
) -> None:  # fmt: skip
    """Clear the flags of labels that one with one more start dominates."""
    ordered = waiting[order]
    changes = (ordered[1:] != ordered[:-1]).any(axis=1)
    begins = np.concatenate(([0], 1 + np.flatnonzero(changes), [len(order)]))
    sets = ordered[begins[:-1]]
    table = np.full(4 << len(sets).bit_length(), _EMPTY, dtype=np.int32)
    _fill_table(sets, table)
    due = np.maximum(now + 1, states.arrivals)
    hints = np.empty((len(order), 3), dtype=np.int32)

    def hint(begin: int, end: int) -> None:
        _fill_hints((begin, end), order, layer.labels, peaks, now, hints)

    def compare(begin: int, end: int) -> None:
        _clear_outdone(
            (begin, end), order, begins, sets, table, hints, layer, peaks, longest, now, due, keep
        )

    map_ranges(hint, len(order), threads)
    map_ranges(compare, len(sets), threads)


@compiled
def _place(words: Integers, sets: Integers, table: Integers) -> int:
    """Return where the table has a set, or would have it."""
    key, last = np.uint64(0), len(table) - 1
    for word in words:
        key = (key ^ word) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(32)
    place = int(np.int64(key)) & last
    while table[place] >= 0 and not _are_equal(sets[table[place]], words):
        place = (place + 1) & last
    return place


@compiled
def _fill_table(sets: Integers, table: Integers) -> None:
    """Enter the number of each set where `_place` looks for it."""
    for number in range(len(sets)):
        table[_place(sets[number], sets, table)] = number


@compiled
def _fill_hints(
    part: tuple[int, int], order: Integers, labels: Integers, peaks: Integers, now: int,
    hints: Integers,
) -> None:  # fmt: skip
    """Fill in the last completion, what is held at once, and the sum over all times to come."""
    for at in range(part[0], part[1]):
        label = labels[order[at]]
        last, held, area = 0, 0, 0
        for i in range(len(label)):
            left = label[i] - now - 2
            if left >= 0:
                last = max(last, left)
                held += peaks[i] - left
                area += (left + 1) * peaks[i] - left * (left + 1) // 2
        hints[at, 0], hints[at, 1], hints[at, 2] = last, held, area


@compiled
def _clear_outdone(
    part: tuple[int, int], order: Integers, begins: Integers, sets: Integers, table: Integers,
    hints: Integers, layer: Layer, peaks: Integers, longest: int, now: int, due: Integers,
    keep: Integers,
) -> None:  # fmt: skip
    """Go through some waiting sets, and those with one request less; ``due`` is its least cost."""
    labels, began = layer.labels, layer.began
    profile = np.zeros(longest, dtype=np.int64)
    other = np.zeros(longest, dtype=np.int64)
    words = np.empty(sets.shape[1], dtype=np.uint64)
    for number in range(part[0], part[1]):
        first, last = begins[number], begins[number + 1]
        for i in range(labels.shape[1]):
            if labels[order[first], i] != WAITING:
                continue
            words[:] = sets[number]
            words[i // 64] ^= np.uint64(1) << np.uint64(i % 64)
            rivals = table[_place(words, sets, table)]
            if rivals < 0:
                continue
            begin, end = begins[rivals], begins[rivals + 1]
            end = min(end, begin + _COMPARED)
            for at in range(first, last):
                if not keep[order[at]]:
                    continue
                known = False
                for near in range(begin, end):
                    if began[order[near]] > began[order[at]] + due[i]:
                        break
                    if (
                        hints[near, 0] <= hints[at, 0]
                        and hints[near, 1] <= hints[at, 1]
                        and hints[near, 2] <= hints[at, 2]
                    ):
                        if not known:
                            _fill_profile(labels[order[at]], peaks, now, profile)
                            known = True
                        _fill_profile(labels[order[near]], peaks, now, other)
                        if _is_below(other, profile):
                            keep[order[at]] = False
                            break


@compiled
def _fill_profile(label: Integers, peaks: Integers, now: int, profile: Integers) -> None:
    """Fill in what the active requests of a label hold from the time now + 2 on."""
    profile[:] = 0
    for i in range(len(label)):
        for time in range(now + 2, label[i] + 1):
            profile[time - now - 2] += peaks[i] - (label[i] - time)

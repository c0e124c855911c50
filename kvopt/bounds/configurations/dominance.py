"""Dominance: drop labels that another label is at least as good as.

A label dominates another one with the same waiting requests if its sum of starts is no larger and
it holds no more tokens at any later time: then each continuation of the other one fits it too, with
no more latency.  It may also have started one more request, whose start the other one has still to
pay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.configurations.labels import WAITING, Integers, Layer
from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import compiled
from kvopt.kernels.loop_calls import map_ranges
from kvopt.problem.arrays import Flags

_COMPARED = 20
"""Labels with the same waiting requests that a new one is compared with, at most."""


class _Groups(NamedTuple):
    """Labels with the same waiting requests, the cheapest first.

    Parameters
    ----------
    sets
        Sets of waiting requests, one for each group, in the form of `Layer.waiting`.
    begins
        Where each group begins in ``order``, and its end.
    order
        Labels, group by group.
    """

    sets: Integers
    begins: Integers
    order: Integers

    @classmethod
    def of(cls, waiting: Integers, order: Integers) -> _Groups:
        """Return the indices of the labels of one order, by the waiting requests of each."""
        ordered = waiting[order]
        changes = 1 + np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1))
        begins = np.concatenate(([0], changes, [len(order)]))
        return cls(ordered[begins[:-1]], begins, order)


def undominated(
    layer: Layer, states: States, now: int, threads: int = 1, *, one_more: bool = False
) -> Layer:
    """Drop labels that another one with the same waiting requests dominates, or with one less.

    No better schedule is lost: Claim 3.11 of docs/theory, and Claim 3.12 with one less.

    Parameters
    ----------
    layer, states, now
        Labels that have decided the starts up to now.
    threads
        Threads that share the work.
    one_more
        Whether a label that has started one more request may dominate another one (Claim 3.12).
        The checker that is proved in Coq compares labels with the same waiting requests only.
    """
    waiting = layer.waiting()
    # By sum of starts within a group: only a label before it can dominate a label (Claim 3.11).
    order = np.lexsort((layer.began, *waiting.T))
    keep = np.ones(len(order), dtype=np.bool_)
    if not len(order):
        return layer
    groups = _Groups.of(waiting, order)

    def compare(begin: int, end: int) -> None:
        first, last = np.searchsorted(groups.begins[:-1], (begin, end)).tolist()
        _clear_dominated(states, layer.labels, groups, (first, last), now, keep)

    map_ranges(compare, len(order), threads)
    if one_more:
        left = _Groups.of(waiting, order[keep[order]])
        count = len(left.order)
        conditions, labels = np.empty((count, 3), dtype=np.int32), layer.labels
        map_ranges(
            lambda *part: _fill_conditions(states, labels, left.order, part, now, conditions),
            count,
            threads,
        )
        map_ranges(
            lambda *part: _clear_dominated_by_superset(
                states, layer, left, part, now, conditions, keep
            ),
            len(left.sets),
            threads,
        )
    return layer.only(np.flatnonzero(keep))


@compiled
def _clear_dominated(
    states: States, labels: Integers, groups: _Groups, part: tuple[int, int], now: int, keep: Flags
) -> None:
    """Clear the flags of labels that one of the same group dominates."""
    # Profiles of labels that are kept, and in the last row that of the next label.
    profiles = np.zeros((_COMPARED + 1, states.outputs.max()), dtype=np.int64)
    for group in range(part[0], part[1]):
        kept = 0
        for place in range(groups.begins[group], groups.begins[group + 1]):
            number = groups.order[place]
            _fill_profile(states, labels, number, now, profiles, kept)
            for other in range(kept):
                if _is_below(profiles, other, profiles, kept):
                    keep[number] = False
                    break
            if keep[number] and kept < _COMPARED:  # not all: a label need not be dropped
                kept += 1


@compiled
def _is_below(ones: Integers, one: int, others: Integers, other: int) -> bool:
    """Whether no entry of a row is above that of another row."""
    below = True
    for t in range(ones.shape[1]):
        if ones[one, t] > others[other, t]:
            below = False
            break
    return below


@compiled
def _group_of(sets: Integers, words: Integers) -> int:
    """Return the place of a set among those sorted by their last word first, -1 if absent."""
    low, high = 0, len(sets) - 1
    while low <= high:
        middle = (low + high) >> 1
        word = len(words) - 1
        while word > 0 and sets[middle, word] == words[word]:
            word -= 1
        if sets[middle, word] == words[word]:
            return middle
        if sets[middle, word] < words[word]:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@compiled
def _fill_conditions(
    states: States,
    labels: Integers,
    order: Integers,
    part: tuple[int, int],
    now: int,
    conditions: Integers,
) -> None:
    """Fill in last completion, current tokens, and the sum over all later times.

    A profile that is nowhere above another one has none of these above it: a quick test.
    """
    for at in range(part[0], part[1]):
        last, held, area = 0, 0, 0
        for i in range(labels.shape[1]):
            left = labels[order[at], i] - now - 2
            if left >= 0:
                last = max(last, left)
                held += states.peaks[i] - left
                area += (left + 1) * states.peaks[i] - left * (left + 1) // 2
        conditions[at, 0], conditions[at, 1], conditions[at, 2] = last, held, area


@compiled
def _clear_dominated_by_superset(
    states: States,
    layer: Layer,
    groups: _Groups,
    part: tuple[int, int],
    now: int,
    conditions: Integers,
    keep: Flags,
) -> None:
    """Clear the flags of labels that one with one more start dominates, in some groups."""
    labels, began, begins, order = layer.labels, layer.began, groups.begins, groups.order
    # The profiles of a label, and of one that may dominate it.
    profiles = np.zeros((2, states.outputs.max()), dtype=np.int64)
    for number in range(part[0], part[1]):
        first = begins[number]
        words = groups.sets[number].copy()
        for i in range(labels.shape[1]):
            if labels[order[first], i] != WAITING:
                continue
            bit = np.uint64(1) << np.uint64(i % 64)
            words[i // 64] ^= bit
            rivals = _group_of(groups.sets, words)
            words[i // 64] ^= bit
            if rivals < 0:
                continue
            due = max(now + 1, states.arrivals[i])  # the least that the start costs
            begin, end = begins[rivals], min(begins[rivals + 1], begins[rivals] + _COMPARED)
            for at in range(first, begins[number + 1]):
                if not keep[order[at]]:
                    continue
                is_filled = False
                for near in range(begin, end):
                    # In order of the sums of starts: later rivals have larger ones.
                    if began[order[near]] > began[order[at]] + due:
                        break
                    if _is_below(conditions, near, conditions, at):
                        if not is_filled:
                            _fill_profile(states, labels, order[at], now, profiles, 0)
                            is_filled = True
                        _fill_profile(states, labels, order[near], now, profiles, 1)
                        if _is_below(profiles, 1, profiles, 0):
                            keep[order[at]] = False
                            break


@compiled
def _fill_profile(
    states: States, labels: Integers, number: int, now: int, profiles: Integers, row: int
) -> None:
    """Fill a row with the tokens that active requests of a label hold from time now + 2 on."""
    for t in range(profiles.shape[1]):
        profiles[row, t] = 0
    for i in range(labels.shape[1]):
        left = labels[number, i] - now - 2
        for t in range(left + 1):
            profiles[row, t] += states.peaks[i] - left + t

"""Dominance: drop labels that another label is at least as good as.

A label dominates another one with the same waiting requests if its sum of starts is no larger and
it holds no more tokens at any later time: then each continuation of the other one fits it too, with
no more latency.  It may also have started one more request, whose start the other one has still to
pay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kvopt.bounds.configurations.labels import WAITING, Integers, Layer
from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import compiled, inlined
from kvopt.kernels.loop_calls import map_ranges
from kvopt.problem.arrays import Flags

_COMPARED = 20
"""Labels with the same waiting requests that a new one is compared with, at most."""

_WORD, _FEW = 64, 500
"""Bits of a key that labels are sorted by, and labels from which on it is worth its steps."""

Place = int | np.unsignedinteger[Any]
"""A place in an array.  Without a sign it is none from the end, so loops over it use vectors."""


class _Groups(NamedTuple):
    """Labels by their waiting requests, the cheapest first, and tests of their profiles.

    Parameters
    ----------
    sets
        Sets of waiting requests, one for each group, in the form of `Layer.waiting`.
    begins, ends
        Where each group begins and ends in ``order``; dominated labels are moved out of it.
    order
        Labels, group by group.
    conditions
        For each of them the sum of starts, the last completion, current tokens, and the sum over
        all later times.  A profile that is nowhere above another one has none of the last three
        above it: a quick test.
    """

    sets: Integers
    begins: Integers
    ends: Integers
    order: Integers
    conditions: Integers

    @classmethod
    def of(cls, layer: Layer) -> _Groups:
        """Return the groups of a layer, without conditions yet."""
        waiting = layer.waiting()
        order = _order(waiting, layer.began)
        changed = np.ones(len(order) + 1, dtype=np.bool_)
        changed[1:-1] = (waiting[order[1:]] != waiting[order[:-1]]).any(axis=1)
        begins = np.flatnonzero(changed)
        conditions = np.empty((4, len(order)), dtype=np.int32)
        return cls(waiting[order[begins[:-1]]], begins[:-1], begins[1:].copy(), order, conditions)


def _order(waiting: Integers, began: Integers) -> Integers:
    """Return labels by their waiting requests, by the sum of their starts, by their numbers.

    If all fit into one number, that is sorted: ten times as fast as an order of the columns.
    """
    varying = [int(np.bitwise_or.reduce(word) ^ np.bitwise_and.reduce(word)) for word in waiting.T]
    first, many = int(began.min()), len(began)
    low = (varying[0] & -varying[0]).bit_length() - 1 if varying[0] else 0
    bits = [size.bit_length() for size in (varying[0] >> low, int(began.max()) - first, many)]
    if many < _FEW or any(varying[1:]) or sum(bits) > _WORD:
        return np.lexsort((began, *waiting.T))
    keys = (waiting[:, 0] >> np.uint64(low)) & np.uint64((1 << bits[0]) - 1)
    for column, size in zip((began - first, np.arange(many)), bits[1:], strict=True):
        keys = (keys << np.uint64(size)) | column.astype(np.uint64)
    keys.sort()
    return (keys & np.uint64((1 << bits[2]) - 1)).astype(np.int64)


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
    if not len(layer.began):
        return layer
    # By sum of starts within a group: only a label before it can dominate a label (Claim 3.11).
    groups, keep = _Groups.of(layer), np.zeros(len(layer.began), dtype=np.bool_)

    def compare(begin: int, end: int) -> None:
        part = np.searchsorted(groups.begins, (begin, end)).tolist()
        _clear_dominated(states, layer, groups, tuple(part), now, keep)

    map_ranges(compare, len(keep), threads)
    if one_more:
        map_ranges(
            lambda *part: _clear_dominated_by_superset(states, layer, groups, part, now, keep),
            len(groups.begins),
            threads,
        )
    return layer.only(np.flatnonzero(keep))


@compiled
def _clear_dominated(
    states: States, layer: Layer, groups: _Groups, part: tuple[int, int], now: int, keep: Flags
) -> None:
    """Keep the labels of some groups that no other one of the group dominates.

    It fills in their conditions, and moves them to the beginning of the group.
    """
    labels, began, peaks = layer.labels, layer.began, states.peaks
    begins, ends, order, conditions = groups.begins, groups.ends, groups.order, groups.conditions
    # Profiles of the first labels of a group and of the next one, filled once they are needed.
    profiles = np.zeros((_COMPARED + 1, states.outputs.max()), dtype=np.int32)
    is_filled = np.empty(_COMPARED + 1, dtype=np.bool_)
    for group in range(part[0], part[1]):
        first = to = np.uint64(begins[group])
        for at in range(begins[group], ends[group]):
            number = order[at]
            last, held, area = 0, 0, 0
            for i in range(labels.shape[1]):
                left = max(-1, labels[number, i] - now - 2)
                last = max(last, left)
                held += peaks[i] - left if left >= 0 else 0
                area += (left + 1) * peaks[i] - left * (left + 1) // 2
            promising, end = 0, min(to, first + np.uint64(_COMPARED))
            order[to], conditions[0, to], conditions[1, to] = number, began[number], last
            conditions[2, to], conditions[3, to] = held, area
            for other in range(first, end):
                promising += _may_be_below(conditions, other, to)
            is_filled[end - first] = False
            near, is_kept = first, True
            while promising > 0:
                if _may_be_below(conditions, near, to):
                    promising -= 1
                    for row, place in ((near - first, near), (end - first, to)):
                        if not is_filled[row]:
                            _fill_profile(states, labels, order[place], now, profiles, row)
                            is_filled[row] = True
                    if _is_below(profiles, near - first, end - first):
                        is_kept, promising = False, 0
                near += np.uint64(1)
            if is_kept:
                keep[number] = True
                to += np.uint64(1)
        ends[group] = to


@inlined
def _may_be_below(conditions: Integers, one: Place, other: Place) -> bool:
    """Whether a profile may be nowhere above another one."""
    return bool(
        (conditions[1, one] <= conditions[1, other])
        & (conditions[2, one] <= conditions[2, other])
        & (conditions[3, one] <= conditions[3, other])
    )


@inlined
def _is_below(profiles: Integers, one: Place, other: Place) -> bool:
    """Whether no entry of a row is above that of another row."""
    above = 0
    for t in range(profiles.shape[1]):
        above += profiles[one, t] > profiles[other, t]
    return above == 0


@inlined
def _group_of(sets: Integers, words: Integers) -> int:
    """Return the place of a set among those sorted by their last word first, -1 if absent."""
    low, high = 0, len(sets)  # the first set that is not below it
    while low < high:
        middle = (low + high) >> 1
        word = len(words) - 1
        while word > 0 and sets[middle, word] == words[word]:
            word -= 1
        if sets[middle, word] < words[word]:
            low = middle + 1
        else:
            high = middle
    word = 0
    while low < len(sets) and word < len(words) and sets[low, word] == words[word]:
        word += 1
    return low if word == len(words) else -1


@compiled
def _clear_dominated_by_superset(
    states: States, layer: Layer, groups: _Groups, part: tuple[int, int], now: int, keep: Flags
) -> None:
    """Clear the flags of labels that one with one more start dominates, in some groups."""
    labels, (sets, begins, ends, order, conditions) = layer.labels, groups
    # The profiles of a label, and of one that may dominate it.
    profiles = np.zeros((2, states.outputs.max()), dtype=np.int32)
    # Labels with one more start, and the least that the start costs.
    firsts = np.empty(labels.shape[1], dtype=np.uint64)
    lasts, costs = np.empty_like(firsts), np.empty(labels.shape[1], dtype=np.int64)
    words = np.empty_like(sets[0])
    for number in range(part[0], part[1]):
        count = 0
        for i in range(labels.shape[1]):
            if labels[order[begins[number]], i] == WAITING:
                for word in range(len(words)):
                    words[word] = sets[number, word]
                words[i // 64] ^= np.uint64(1) << np.uint64(i % 64)
                rivals = _group_of(sets, words)
                if rivals >= 0:
                    firsts[count] = begins[rivals]
                    lasts[count] = min(ends[rivals], begins[rivals] + _COMPARED)
                    costs[count] = max(now + 1, states.arrivals[i])
                    count += 1
        for at in range(begins[number], ends[number]):
            is_filled, place = False, 0
            while place < count and keep[order[at]]:
                limit, promising = conditions[0, at] + costs[place], 0
                for other in range(firsts[place], lasts[place]):
                    promising += (conditions[0, other] <= limit) & _may_be_below(
                        conditions, other, at
                    )
                near = firsts[place]
                while promising > 0:
                    if conditions[0, near] <= limit and _may_be_below(conditions, near, at):
                        promising -= 1
                        if not is_filled:
                            _fill_profile(states, labels, order[at], now, profiles, 0)
                            is_filled = True
                        _fill_profile(states, labels, order[near], now, profiles, 1)
                        if _is_below(profiles, 1, 0):
                            keep[order[at]], promising = False, 0
                    near += np.uint64(1)
                place += 1


@inlined
def _fill_profile(
    states: States, labels: Integers, number: int, now: int, profiles: Integers, row: Place
) -> None:
    """Fill a row with the tokens that active requests of a label hold from time now + 2 on."""
    for t in range(profiles.shape[1]):
        profiles[row, t] = 0
    for i in range(labels.shape[1]):
        left = labels[number, i] - now - 2
        for t in range(left + 1):
            profiles[row, t] += states.peaks[i] - left + t

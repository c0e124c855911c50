"""The largest set of waiting requests that can start now, beside what is running.

Take what runs and what is chosen in order of completion, last first.  When ``c`` requests
that now hold ``S`` tokens in all complete later, a request that holds h and completes in r
rounds needs ``S + h + (c + 1) r <= M`` at its completion.  So the count and S are all that a
choice leaves behind, and among choices of one count a smaller S never does worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Candidate(NamedTuple):
    """A waiting request: tokens held at its start, and believed output."""

    prompt: int
    output: int


class Running(NamedTuple):
    """An active request: tokens held now, and rounds to its believed completion."""

    held: int
    rest: int


class _Choice(NamedTuple):
    """What a choice leaves behind, the better one first.

    ``places`` has a bit for each chosen place, higher for earlier ones, and is negated: among
    sets of one size the smaller number is the set whose first differing place is earlier.
    """

    held: int
    outputs: int
    places: int


def largest_set(
    candidates: Sequence[Candidate], running: Sequence[Running], memory: int
) -> list[int]:
    """Return the places of the largest set that fits, in ascending order.

    Among largest sets the least sum of outputs wins, then the set whose first differing place
    is earlier.  ``candidates`` must be in ascending order of output.
    """
    size = _largest_size(candidates, running, memory)
    fronts: list[list[_Choice]] = [[] for _ in range(size + 1)]
    fronts[0] = [_Choice(0, 0, 0)]
    left, done = len(candidates), 0
    for item, place in _by_completion(candidates, running):
        if place is None:
            fronts = [
                _kept(front, item, count + done, memory) for count, front in enumerate(fronts)
            ]
            done += 1
            continue
        left -= 1
        bit = 1 << (len(candidates) - 1 - place)
        for count in range(size, 0, -1):
            added = [
                _Choice(choice.held, choice.outputs + item.rest, choice.places - bit)
                for choice in _kept(fronts[count - 1], item, count - 1 + done, memory)
            ]
            if added:
                fronts[count] = _front(fronts[count] + added)
        if size > left:
            fronts[size - left - 1] = []  # too few are left to get from there to the size
    best = min(fronts[size], key=lambda choice: (choice.outputs, choice.places))
    return [p for p in range(len(candidates)) if -best.places >> (len(candidates) - 1 - p) & 1]


def _largest_size(candidates: Sequence[Candidate], running: Sequence[Running], memory: int) -> int:
    """Return the size of a largest set: the least S for every count is enough for that."""
    most = memory // (1 + min((c.prompt for c in candidates), default=0))
    counts = np.arange(min(len(candidates), most) + 1)
    nothing = memory + 1  # stands for a count that cannot be reached
    least = np.full(len(counts), nothing)
    least[0] = done = 0
    for item, place in _by_completion(candidates, running):
        grown = least + item.held
        grown[grown + (counts + done + 1) * item.rest > memory] = nothing
        if place is None:
            least = grown
            done += 1
        else:
            least[1:] = np.minimum(least[1:], grown[:-1])
    return int(np.flatnonzero(least <= memory)[-1])


def _by_completion(
    candidates: Sequence[Candidate], running: Sequence[Running]
) -> list[tuple[Running, int | None]]:
    """Return everything by completion, last first; later places first among equals."""
    items: list[tuple[Running, int | None]] = [(item, None) for item in running]
    items += [(Running(*candidate), place) for place, candidate in enumerate(candidates)]
    return sorted(items, key=lambda pair: (-pair[0].rest, -(pair[1] or 0)))


def _kept(front: list[_Choice], item: Running, count: int, memory: int) -> list[_Choice]:
    """Add an item to every choice of a count, and drop those where it does not fit."""
    room = memory - item.held - (count + 1) * item.rest
    return [c._replace(held=c.held + item.held) for c in front if c.held <= room]


def _front(choices: list[_Choice]) -> list[_Choice]:
    """Keep what no other choice beats in tokens and in rank at once."""
    kept: list[_Choice] = []
    for choice in sorted(choices):
        if not kept or choice[1:] < kept[-1][1:]:
            kept.append(choice)
    return kept

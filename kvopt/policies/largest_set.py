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
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


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
    items = _by_completion(candidates, running)
    size = _largest_size(items, memory)
    rooms = _rooms(items, size, memory)
    fronts: list[list[_Choice]] = [[_Choice(0, 0, 0)], *([] for _ in range(size))]
    done = 0
    for number, (item, place) in enumerate(items, 1):
        room = rooms[number].tolist()
        if place is None:
            fronts = [_kept(front, item.held, room[count]) for count, front in enumerate(fronts)]
            done += 1
            continue
        bit = 1 << (len(candidates) - 1 - place)
        for count in range(size, 0, -1):
            stay = [choice for choice in fronts[count] if choice.held <= room[count]]
            limit = min(room[count], memory - (count + done) * item.rest)
            taken = [
                _Choice(choice.held, choice.outputs + item.rest, choice.places - bit)
                for choice in _kept(fronts[count - 1], item.held, limit)
            ]
            fronts[count] = _front(stay + taken) if taken else stay
        fronts[0] = _kept(fronts[0], 0, room[0])
    best = min(fronts[size], key=lambda choice: (choice.outputs, choice.places))
    return [p for p in range(len(candidates)) if -best.places >> (len(candidates) - 1 - p) & 1]


Item = tuple[Running, int | None]
"""Something active, or a candidate with its place."""


def _largest_size(items: Sequence[Item], memory: int) -> int:
    """Return the size of a largest set: the least S for every count is enough for that."""
    prompts = [item.held for item, place in items if place is not None]
    counts = np.arange(min(len(prompts), memory // (1 + min(prompts, default=0))) + 1)
    nothing = memory + 1  # stands for a count that cannot be reached
    least = np.full(len(counts), nothing)
    least[0] = done = 0
    for item, place in items:
        grown = least + item.held
        grown[grown + (counts + done + 1) * item.rest > memory] = nothing
        if place is None:
            least = grown
            done += 1
        else:
            least[1:] = np.minimum(least[1:], grown[:-1])
    return int(np.flatnonzero(least <= memory)[-1])


def _rooms(items: Sequence[Item], size: int, memory: int) -> list[Integers]:
    """Return, before each item, the largest S for each count from which ``size`` is reached."""
    counts = np.arange(size + 1)
    done = sum(place is None for _, place in items)
    room = np.full(size + 1, -1)
    room[size] = memory
    rooms = [room]
    for item, place in reversed(items):
        if place is None:
            done -= 1
            room = np.minimum(room, memory - (counts + done + 1) * item.rest) - item.held
        else:
            taken = np.minimum(room[1:], memory - (counts[:-1] + done + 1) * item.rest)
            room = room.copy()
            room[:-1] = np.maximum(room[:-1], taken - item.held)
        rooms.append(room)
    return rooms[::-1]


def _by_completion(candidates: Sequence[Candidate], running: Sequence[Running]) -> list[Item]:
    """Return everything by completion, last first; later places first among equals."""
    items: list[Item] = [(item, None) for item in running]
    items += [(Running(*candidate), place) for place, candidate in enumerate(candidates)]
    return sorted(items, key=lambda pair: (-pair[0].rest, -(pair[1] or 0)))


def _kept(front: list[_Choice], held: int, room: int) -> list[_Choice]:
    """Add tokens to every choice, and drop those that then hold more than there is room for."""
    return [c._replace(held=c.held + held) for c in front if c.held + held <= room]


def _front(choices: list[_Choice]) -> list[_Choice]:
    """Keep what no other choice beats in tokens and in rank at once."""
    kept: list[_Choice] = []
    for choice in sorted(choices):
        if not kept or choice[1:] < kept[-1][1:]:
            kept.append(choice)
    return kept

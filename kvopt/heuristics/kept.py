"""What a beam keeps: of all tries of a stretch the cheapest that differ, whatever a scene is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

import numpy as np

from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Floats, Integers

Room = TypeVar("Room")

ALIVE, NUMBER = range(2)  # entries of `Kept.counts`
_HEIRS = 4
"""Scenes that one scene may leave behind in the next stretch, so that the kept ones differ, where
there are as many as may be kept."""
_SAME = 1e-7
"""Costs that differ by less are those of the same scene."""
SHARED = 16
"""Tries of a stretch from which on threads share them; one does fewer in less time."""


class Kept(NamedTuple):
    """Scenes that are kept, in rows, and what a stretch tried and chose.

    Parameters
    ----------
    costs
        What each has cost so far above the bound of the prices.
    habits
        The parts of the habit that each was made with.
    counts
        How many scenes are kept, and the number of the stretch.
    seen, paid, states
        Of each try, row times draws plus draw: its cost with the look-ahead, and two numbers that
        tell it from others, its state and, where that does not say all, its cost without.
    chosen
        The cheapest tries.
    next_costs, next_habits
        What they lead to.
    """

    costs: Floats
    habits: Floats
    counts: Integers
    seen: Floats
    paid: Floats
    states: Integers
    chosen: Integers
    next_costs: Floats
    next_habits: Floats


def one_kept(width: int, draws: int, habit: Sequence[float]) -> Kept:
    """Return one scene with a usual habit, and room for as many as there may be."""
    habits, counts = np.tile(np.array(habit), (width, 1)), np.array([1, 0], dtype=np.int64)
    seen, paid = np.zeros((2, width * draws))
    states, chosen = (np.zeros(size, dtype=np.int64) for size in (width * draws, width))
    costs, next_costs = np.zeros((2, width))
    return Kept(
        costs, habits, counts, seen, paid, states, chosen, next_costs, np.zeros_like(habits)
    )


@compiled
def draws_of(kept: Kept, draws: int) -> int:
    """Return the tries to go on from each scene: together few have as many as all may have."""
    return int(draws * (len(kept.costs) // kept.counts[ALIVE]))


@compiled
def choose(kept: Kept, draws: int) -> int:
    """Choose the cheapest of so many tries of each scene that differ, and return how many."""
    most = _HEIRS * (len(kept.costs) // kept.counts[ALIVE])
    alive, taken, states, paid = kept.counts[ALIVE], 0, kept.states, kept.paid
    heirs = np.zeros(alive, dtype=np.int64)
    for x in np.argsort(kept.seen[: alive * draws]):
        new = heirs[x // draws] < most
        for place in range(taken):
            y = kept.chosen[place]
            new = new and (states[x] != states[y] or abs(paid[x] - paid[y]) > _SAME)
        if new:
            kept.chosen[taken] = x
            heirs[x // draws] += 1
            taken += 1
            if taken == len(kept.chosen):
                break
    return taken


@compiled
def end_stretch(kept: Kept, taken: int) -> None:
    """Go on with the chosen ones."""
    kept.costs[:taken], kept.habits[:taken] = kept.next_costs[:taken], kept.next_habits[:taken]
    kept.counts[ALIVE] = taken
    kept.counts[NUMBER] += 1


def share(
    pool: Executor, rooms: Sequence[Room], work: Callable[[Room, int, int], None], count: int
) -> None:
    """Do a part of so many tries, or of the chosen ones, in each room."""
    if len(rooms) == 1:
        work(rooms[0], 0, count)
        return
    cuts = [count * k // len(rooms) for k in range(len(rooms) + 1)]
    for part in [pool.submit(work, *each) for each in zip(rooms, cuts, cuts[1:], strict=False)]:
        part.result()

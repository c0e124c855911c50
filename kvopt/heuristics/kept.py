"""Beams for any kind of node: keep the cheapest distinct expansions of a layer.

A scene remembers of its past only which scene of the stretch before it came from, and by which
try.  What a try does follows from its numbers, so the run of the best scene is made once more at
the end, with its starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import copy_into
from kvopt.problem.arrays import Floats, Integers

ALIVE, NUMBER = range(2)  # entries of `Kept.counts`
_HEIRS = 4
"""Scenes that one scene may leave behind in the next stretch, so that the kept ones differ, where
there are as many as may be kept."""
_SAME = 1e-7
"""Costs that differ by less are those of the same scene."""
_GROWTH = 2.0
"""How many times as much effort the next beam takes at most; the first tells how long others do."""
_WORTH_WHILE = 0.5
"""Part of the effort of the last beam below which another one is not tried."""
SHARED = 16
"""Tries of a stretch from which on threads share them; one does fewer in less time."""


class Kept(NamedTuple):
    """Nodes of a beam, in rows, with the expansions and choices of a layer.

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
    """Return a beam of one node with the usual dispatch rule, and space for the largest beam."""
    habits, counts = np.tile(np.array(habit), (width, 1)), np.array([1, 0], dtype=np.int64)
    seen, paid = np.zeros((2, width * draws))
    states, chosen = (np.zeros(size, dtype=np.int64) for size in (width * draws, width))
    costs, next_costs = np.zeros((2, width))
    return Kept(
        costs, habits, counts, seen, paid, states, chosen, next_costs, np.zeros_like(habits)
    )


@compiled
def draws_of(kept: Kept, draws: int) -> int:
    """Return the expansions of each node: few nodes have as many in sum as a full beam."""
    return int(draws * (len(kept.costs) // kept.counts[ALIVE]))


@compiled
def choose(kept: Kept, draws: int) -> int:
    """Choose the cheapest distinct expansions, and return their number."""
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
    """Replace the nodes by the chosen expansions."""
    copy_into(kept.costs, kept.next_costs, taken)
    for place in range(taken):
        copy_into(kept.habits[place], kept.next_habits[place], kept.habits.shape[1])
    kept.counts[ALIVE] = taken
    kept.counts[NUMBER] += 1


class Past(NamedTuple):
    """History of a node: its row and draw in each layer, and the end of the layer."""

    rows: Integers
    draws: Integers
    ends: Integers


class Work(NamedTuple):
    """Work of one layer of a beam.

    Parameters
    ----------
    begin
        Given when the last one ended: whether all scenes are over, and when this one begins.
    attempt, keep
        Given when it ends, room, and a range: run these tries, or the chosen ones.
    """

    begin: Callable[[int], tuple[bool, int]]
    attempt: Callable[[int, Any, int, int], None]
    keep: Callable[[int, Any, int, int], None]


class Course(NamedTuple):
    """Layers of a beam: chosen expansions, expansions of each node, and ends."""

    chosen: list[Integers]
    draws: list[int]
    ends: list[int]

    def past(self, row: int) -> Past:
        """Return the history of the node of a row."""
        past = Past(*np.zeros((3, len(self.ends)), dtype=np.int64))
        past.ends[:] = self.ends
        for number in range(len(self.ends) - 1, -1, -1):
            row, draw = divmod(int(self.chosen[number][row]), self.draws[number])
            past.rows[number], past.draws[number] = row, draw
        return past


def run_beam(
    pool: Executor, rooms: Sequence[Any], kept: Kept, work: Work, length: int,
    is_late: Callable[[], bool],
) -> tuple[Course, bool]:  # fmt: skip
    """Run layers until all nodes are finished or time is up; return which."""
    until, course, draws = 0, Course([], [], []), len(kept.seen) // len(kept.costs)
    shared = rooms if len(kept.seen) >= SHARED else rooms[:1]
    while not is_late():
        over, begin = work.begin(until)
        if over:
            return course, True
        until, each = begin + length, draws_of(kept, draws)
        share(pool, shared, partial(work.attempt, until), int(kept.counts[ALIVE]) * each)
        taken = choose(kept, each)
        share(pool, shared, partial(work.keep, until), taken)
        course.chosen.append(kept.chosen[:taken].copy())
        course.draws.append(each)
        course.ends.append(until)
        end_stretch(kept, taken)
    return course, False


def next_effort(effort: float, took: float, left: float) -> float:
    """Return the effort of the next beam, 0 if too little time remains for a useful one."""
    took = max(took, 1e-3)
    more = _GROWTH if left > _GROWTH**2 * took else 0.9 * left / took
    return more * effort if more >= _WORTH_WHILE else 0.0


def share(
    pool: Executor, rooms: Sequence[Any], work: Callable[[Any, int, int], None], count: int
) -> None:
    """Do a part of so many tries, or of the chosen ones, in each room."""
    if len(rooms) == 1:
        work(rooms[0], 0, count)
        return
    cuts = [count * k // len(rooms) for k in range(len(rooms) + 1)]
    for part in [pool.submit(work, *each) for each in zip(rooms, cuts, cuts[1:], strict=False)]:
        part.result()

"""A beam of runs: many scenes of one window of time go on side by side, the cheapest are kept.

A rollout (`kvopt.heuristics.rollouts`) commits itself to a stretch as soon as it looked cheapest
some rounds ahead.  A beam keeps many scenes at the same round, so that a stretch is judged by
what it really led to.  Scenes are compared by reduced costs of their starts so far, the price of
memory left empty, and what waiting requests have lost by now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.passing import (
    FRONT,
    NOW,
    STOP,
    Crowd,
    Floats,
    Habit,
    Integers,
    Made,
    Rows,
    Scene,
    Worth,
    advance,
    copy_scene,
    cost_of_waiting,
    is_over,
    nothing_made,
    skip_idle_rounds,
    start_on,
)
from kvopt.heuristics.rollouts import USUAL, arrange
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import reseed

_HEIRS = 2
"""Scenes that one scene may leave behind in the next stretch, so that the kept ones differ."""
_SAME = 1e-7
"""Costs that differ by less are those of the same scene."""

_ALIVE, _NUMBER = range(2)  # entries of `Beam.counts`


class BeamPlan(NamedTuple):
    """How to search.

    Parameters
    ----------
    draws
        Tries to go on from each scene.
    stretch, ahead
        Rounds that are kept, and rounds of the look-ahead beyond.
    seed
        Seed of the random generator.
    """

    draws: int
    stretch: int
    ahead: int
    seed: int


class Side(NamedTuple):
    """Scenes at one round, in a row for each.

    Parameters
    ----------
    scenes
        Fields of `Scene` with one more dimension.
    starts
        Where each has started its requests.
    """

    scenes: Scene
    starts: Rows


class Beam(NamedTuple):
    """Scenes that are kept.

    Parameters
    ----------
    even, odd
        Those of every other stretch, and room for the next ones.
    costs
        What each has cost so far above the bound of the prices.
    habits
        Window, patience and choice of worker that each was made with.
    counts
        How many scenes are kept, and the number of the stretch.
    copy, made
        Room for a try.
    """

    even: Side
    odd: Side
    costs: Floats
    habits: Floats
    counts: Integers
    copy: Scene
    made: Made


def beam_from(crowd: Crowd, running: Rows, now: int, width: int) -> Beam:
    """Return a beam that begins where requests are running, of each the prompt and output left."""
    count = len(crowd.line)
    even, odd, room = (_side(rows, count, count + len(running)) for rows in (width, width, 1))
    copy, first = (Scene(*(field[0] for field in side.scenes)) for side in (room, even))
    _begin(first, running, now)
    habits, counts = np.tile(np.array(USUAL), (width, 1)), np.array([1, 0], dtype=np.int64)
    return Beam(even, odd, np.zeros(width), habits, counts, copy, nothing_made(count))


def _side(width: int, count: int, most: int) -> Side:
    counts = np.zeros((width, 4), dtype=np.int64)
    counts[:, [FRONT, STOP]] = count
    active, bases = np.zeros((2, width, 1), dtype=np.int64)
    queue, passed = (np.zeros((width, size), dtype=np.int64) for size in (2 * count, count))
    ends, offsets, loads = np.zeros((3, width, 1, most), dtype=np.int64)
    scenes = Scene(counts, active, bases, queue, passed, ends, offsets, loads)
    return Side(scenes, np.zeros((width, count), dtype=np.int64))


def starts_of(beam: Beam) -> Integers:
    """Return the starts of the cheapest scene, where all are over."""
    best = int(np.argmin(beam.costs[: beam.counts[_ALIVE]]))
    side = beam.odd if beam.counts[_NUMBER] % 2 else beam.even
    found: Integers = side.starts[best]
    return found


@compiled
def go_on(
    crowd: Crowd, worth: Worth, keys: Floats, beam: Beam, plan: BeamPlan, stretches: int
) -> bool:
    """Add so many stretches; return whether everything has been started."""
    for _ in range(stretches):
        side, other = beam.even, beam.odd
        if beam.counts[_NUMBER] % 2 == 1:
            side, other = beam.odd, beam.even
        over, idle = True, True
        for row in range(beam.counts[_ALIVE]):
            scene = _row(side.scenes, row)
            over = over and is_over(crowd, scene)
            idle = idle and scene.counts[FRONT] == scene.counts[STOP] and scene.active[0] == 0
        if over:
            return True
        if idle:
            for row in range(beam.counts[_ALIVE]):
                skip_idle_rounds(crowd, _row(side.scenes, row))
        kept = side.scenes.counts[0, NOW] + plan.stretch
        chosen = np.empty(len(beam.costs), dtype=np.int64)
        taken = _try_on(crowd, worth, keys, beam, plan, side, kept, chosen)
        _keep(crowd, worth, keys, beam, plan, side, other, kept, chosen[:taken])
        beam.counts[_NUMBER] += 1
    return False


@compiled
def _row(scenes: Scene, row: int) -> Scene:
    """Return one of many scenes, which shares their arrays."""
    return Scene(
        scenes.counts[row],
        scenes.active[row],
        scenes.bases[row],
        scenes.queue[row],
        scenes.passed[row],
        scenes.ends[row],
        scenes.offsets[row],
        scenes.loads[row],
    )


@compiled
def _begin(scene: Scene, running: Rows, now: int) -> None:
    """Let a scene begin at a round with some requests running, which have so much left."""
    scene.counts[NOW] = now
    for x in range(len(running)):
        start_on(scene, 0, running[x, 0], running[x, 1])


@compiled
def _habit_of(
    crowd: Crowd, keys: Floats, scene: Scene, beam: Beam, plan: BeamPlan, row: int, draw: int
) -> tuple[int, int, int]:
    """Shuffle the line of a scene for a draw of a row, and return its habit."""
    rng = np.zeros(1, dtype=np.int64)
    reseed(rng, plan.seed, beam.counts[_NUMBER] * len(beam.costs) + row, draw)
    return arrange(crowd, keys, scene, beam.habits[row], rng, draw == 0)


@compiled
def _try_on(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    beam: Beam,
    plan: BeamPlan,
    side: Side,
    kept: int,
    chosen: Integers,
) -> int:
    """Run each scene on in many ways, and choose the cheapest ones: row times draws plus draw.

    Returned is how many were chosen.
    """
    alive, draws, copy = beam.counts[_ALIVE], plan.draws, beam.copy
    seen, paid = np.empty((2, alive * draws))
    bases = np.empty(alive * draws, dtype=np.int64)
    for row in range(alive):
        for draw in range(draws):
            x = row * draws + draw
            copy_scene(_row(side.scenes, row), copy)
            habit = Habit(*_habit_of(crowd, keys, copy, beam, plan, row, draw))
            paid[x] = beam.costs[row] + advance(crowd, copy, worth, habit, kept, beam.made)
            bases[x] = copy.bases[0]
            seen[x] = paid[x] + advance(crowd, copy, worth, habit, kept + plan.ahead, beam.made)
            seen[x] += cost_of_waiting(crowd, copy, worth)
    heirs, taken = np.zeros(alive, dtype=np.int64), 0
    for x in np.argsort(seen):
        new = heirs[x // draws] < _HEIRS
        for place in range(taken):
            y = chosen[place]
            new = new and (bases[x] != bases[y] or abs(paid[x] - paid[y]) > _SAME)
        if new:
            chosen[taken] = x
            heirs[x // draws] += 1
            taken += 1
            if taken == len(chosen):
                break
    return taken


@compiled
def _keep(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    beam: Beam,
    plan: BeamPlan,
    side: Side,
    other: Side,
    kept: int,
    chosen: Integers,
) -> None:
    """Run the chosen ones on once more, into the other side."""
    costs, habits = np.empty(len(chosen)), np.empty((len(chosen), 3))
    for place in range(len(chosen)):
        row, draw = chosen[place] // plan.draws, chosen[place] % plan.draws
        scene = _row(other.scenes, place)
        _copy_all(_row(side.scenes, row), scene)
        other.starts[place] = side.starts[row]
        habit = Habit(*_habit_of(crowd, keys, scene, beam, plan, row, draw))
        made = Made(other.starts[place], beam.made.workers)
        costs[place] = beam.costs[row] + advance(crowd, scene, worth, habit, kept, made)
        habits[place, 0], habits[place, 1] = habit.window, habit.patience
        habits[place, 2] = habit.choice
    beam.costs[: len(chosen)], beam.habits[: len(chosen)] = costs, habits
    beam.counts[_ALIVE] = len(chosen)


@compiled
def _copy_all(scene: Scene, copy: Scene) -> None:
    """Copy a scene, with those far behind in its queue."""
    copy.counts[:], copy.active[:], copy.bases[:] = scene.counts, scene.active, scene.bases
    copy.passed[:] = scene.passed
    front, stop, active = scene.counts[FRONT], scene.counts[STOP], scene.active[0]
    copy.queue[front:stop] = scene.queue[front:stop]
    copy.ends[0, :active] = scene.ends[0, :active]
    copy.offsets[0, :active] = scene.offsets[0, :active]
    copy.loads[0, :active] = scene.loads[0, :active]

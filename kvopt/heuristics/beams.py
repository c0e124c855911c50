"""A beam of runs: many scenes of one window of time go on side by side, the cheapest are kept.

A rollout (`kvopt.heuristics.rollouts`) commits itself to a stretch as soon as it looked cheapest
some rounds ahead.  A beam keeps many scenes at the same round, so that a stretch is judged by
what it really led to.  Scenes are compared by reduced costs of their starts so far, the price of
memory left empty, and what waiting requests have lost by now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.coarse import CoarsePrices
from kvopt.heuristics.kept import ALIVE, NUMBER, Kept, choose, draws_of, end_stretch, one_kept
from kvopt.heuristics.passing import Habit, advance, cost_of_waiting
from kvopt.heuristics.reduced_costs import Worth, worth_of
from kvopt.heuristics.rollouts import USUAL, arrange, crowd_of, end_usually, note
from kvopt.heuristics.scenes import (
    FRONT,
    NOW,
    STATE,
    STOP,
    Crowd,
    Made,
    Rows,
    Scene,
    copy_scene,
    is_over,
    nothing_made,
    skip_idle_rounds,
    start_on,
)
from kvopt.kernels.arrays import Floats, Integers
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import reseed
from kvopt.search.incumbent import Search
from kvopt.search.proofs import SlotPrices

_FILLED = (0.85, 1.08)
"""Factor on the share of the memory that schedules fill, about: a range."""


class Trace(NamedTuple):
    """What does not change: requests in their line, what prices say about them, and its keys."""

    crowd: Crowd
    worth: Worth
    keys: Floats


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


class Room(NamedTuple):
    """Room for a try: a scene, and where it starts its requests."""

    copy: Scene
    made: Made


class Beam(NamedTuple):
    """Scenes that are kept.

    Parameters
    ----------
    even, odd
        Those of every other stretch, and room for the next ones.
    kept
        What they cost, and their habits: window, patience and choice of worker.
    room
        Room for them, where they are made one by one.
    """

    even: Side
    odd: Side
    kept: Kept
    room: Room


def trace_of(search: Search) -> Trace:
    """Return the instance of a search, with prices of a fluid.

    Requests line up by volume, or where slots have prices in the order in which these start them.
    """
    instance, (crowd, keys) = search.instance, crowd_of(search.instance)
    proof = None if search.checked is None else search.checked.proof
    if isinstance(proof, SlotPrices):
        starts = CoarsePrices.of(proof, instance).likely_starts(instance)
        crowd, keys = _lined_up(crowd, keys, starts)
    return Trace(crowd, worth_of(instance, None, search.threads), keys)


def refilled(search: Search, trace: Trace, random: np.random.Generator) -> Trace:
    """Return a trace with prices of a fluid that fills as much of the memory as schedules may.

    With less than all of it they last as long as requests really wait, as those of a bound do not.
    """
    share = min(1.0, filled_share(trace.crowd) * random.uniform(*_FILLED))
    return trace._replace(worth=worth_of(search.instance, None, search.threads, share))


def filled_share(crowd: Crowd) -> float:
    """Return about what share of the memory is filled if half of the next request does not fit."""
    volumes = crowd.outputs * (2 * crowd.prompts + crowd.outputs + 1) / 2
    peak = np.average(crowd.prompts + crowd.outputs, weights=volumes)
    return float(1.0 - peak / crowd.memory / 2)


def _lined_up(crowd: Crowd, keys: Floats, starts: Floats) -> tuple[Crowd, Floats]:
    """Line requests up by starts; they exchange their keys, so that as many are about as near."""
    line = np.lexsort((keys, starts))
    exchanged = np.empty_like(keys)
    exchanged[line] = np.sort(keys)
    coming = np.argsort(crowd.arrivals[line], kind="stable")
    return crowd._replace(line=line, coming=coming), exchanged


def between_starts(crowd: Crowd) -> float:
    """Return the mean rounds from start to start at full memory."""
    held = crowd.outputs * (2 * crowd.prompts + crowd.outputs + 1) / 2
    return float(held.mean()) / crowd.memory


def nothing_running() -> Rows:
    """Return what is running in an empty cache."""
    return np.zeros((0, 2), dtype=np.int64)


def beam_from(crowd: Crowd, running: Rows, now: int, width: int, draws: int) -> Beam:
    """Return a beam that begins where requests are running, of each the prompt and output left."""
    count, most = len(crowd.line), len(crowd.line) + len(running)
    even, odd = (_side(width, count, most) for _ in range(2))
    _begin(Scene(*(field[0] for field in even.scenes)), running, now)
    return Beam(even, odd, one_kept(width, draws, USUAL), room_for(crowd, len(running)))


def room_for(crowd: Crowd, running: int = 0) -> Room:
    """Return room for a try where so many requests are running at first."""
    count = len(crowd.line)
    scenes = _side(1, count, count + running).scenes
    return Room(Scene(*(field[0] for field in scenes)), nothing_made(count))


def _side(width: int, count: int, most: int) -> Side:
    counts = np.zeros((width, 5), dtype=np.int64)
    counts[:, [FRONT, STOP]] = count
    active, bases = np.zeros((2, width, 1), dtype=np.int64)
    queue, passed = (np.zeros((width, size), dtype=np.int64) for size in (2 * count, count))
    ends, offsets, loads = np.zeros((3, width, 1, most), dtype=np.int64)
    scenes = Scene(counts, active, bases, queue, passed, ends, offsets, loads)
    return Side(scenes, np.zeros((width, count), dtype=np.int64))


def starts_of(beam: Beam) -> Integers:
    """Return the starts of the cheapest scene, where all are over."""
    best = int(np.argmin(beam.kept.costs[: beam.kept.counts[ALIVE]]))
    side = beam.odd if beam.kept.counts[NUMBER] % 2 == 1 else beam.even
    found: Integers = side.starts[best]
    return found


@compiled
def go_on(
    crowd: Crowd, worth: Worth, keys: Floats, beam: Beam, plan: BeamPlan, stretches: int
) -> bool:
    """Add so many stretches; return whether everything has been started."""
    for _ in range(stretches):
        if is_ended(crowd, beam):
            return True
        draws = draws_of(beam.kept, plan.draws)
        tries = beam.kept.counts[ALIVE] * draws
        make_tries(crowd, worth, keys, beam, plan, beam.room, 0, tries)
        taken = choose(beam.kept, draws)
        keep_rows(crowd, worth, keys, beam, plan, beam.room, 0, taken)
        end_stretch(beam.kept, taken)
    return False


@compiled
def is_ended(crowd: Crowd, beam: Beam) -> bool:
    """Tell whether everything has been started; if nothing is there, go on to an arrival."""
    side, over, idle = _sides(beam)[0], True, True
    for row in range(beam.kept.counts[ALIVE]):
        scene = _row(side.scenes, row)
        over = over and is_over(crowd, scene)
        idle = idle and scene.counts[FRONT] == scene.counts[STOP] and scene.active[0] == 0
    if idle and not over:
        for row in range(beam.kept.counts[ALIVE]):
            skip_idle_rounds(crowd, _row(side.scenes, row))
    return over


@compiled
def _sides(beam: Beam) -> tuple[Side, Side]:
    """Return the side that is, and the one to come."""
    if beam.kept.counts[NUMBER] % 2 == 1:
        return beam.odd, beam.even
    return beam.even, beam.odd


@compiled
def end_early(crowd: Crowd, worth: Worth, beam: Beam) -> None:
    """Run the scene that looks cheapest on to its end, without tries, and keep no other one."""
    side = _sides(beam)[0]
    made = Made(side.starts[0], beam.room.made.workers)
    end_usually(crowd, worth, _row(side.scenes, 0), beam.kept.habits[0], made)
    beam.kept.counts[ALIVE] = 1


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
) -> tuple[int, int, int, float, float]:
    """Shuffle the line of a scene for a draw of a row, and return its habit."""
    rng = np.zeros(1, dtype=np.int64)
    reseed(rng, plan.seed, beam.kept.counts[NUMBER] * len(beam.kept.costs) + row, draw)
    return arrange(crowd, keys, scene, beam.kept.habits[row], rng, draw == 0)


@compiled
def make_tries(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    beam: Beam,
    plan: BeamPlan,
    room: Room,
    first: int,
    last: int,
) -> None:
    """Run scenes on in some of the many ways."""
    side, tries, copy = _sides(beam)[0], beam.kept, room.copy
    kept, draws = side.scenes.counts[0, NOW] + plan.stretch, draws_of(tries, plan.draws)
    for x in range(first, last):
        row, draw = x // draws, x % draws
        copy_scene(_row(side.scenes, row), copy)
        habit = Habit(*_habit_of(crowd, keys, copy, beam, plan, row, draw))
        paid = beam.kept.costs[row] + advance(crowd, copy, worth, habit, kept, room.made)
        tries.states[x] = copy.counts[STATE]
        seen = paid + advance(crowd, copy, worth, habit, kept + plan.ahead, room.made)
        tries.seen[x] = seen + cost_of_waiting(crowd, copy, worth)


@compiled
def keep_rows(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    beam: Beam,
    plan: BeamPlan,
    room: Room,
    first: int,
    last: int,
) -> None:
    """Run some of the chosen ones on once more, into the other side."""
    (side, other), tries = _sides(beam), beam.kept
    kept, draws = side.scenes.counts[0, NOW] + plan.stretch, draws_of(tries, plan.draws)
    for place in range(first, last):
        row, draw = tries.chosen[place] // draws, tries.chosen[place] % draws
        scene = _row(other.scenes, place)
        _copy_all(_row(side.scenes, row), scene)
        other.starts[place] = side.starts[row]
        habit = Habit(*_habit_of(crowd, keys, scene, beam, plan, row, draw))
        made = Made(other.starts[place], room.made.workers)
        cost = advance(crowd, scene, worth, habit, kept, made)
        tries.next_costs[place] = beam.kept.costs[row] + cost
        note(habit, tries.next_habits[place])


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

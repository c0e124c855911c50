"""A beam of runs: many scenes of one window of time go on side by side, the cheapest are kept.

The total latency of a schedule is the bound of any prices, plus the reduced costs of its starts,
plus the price of the memory it leaves empty.  All of that is known as time goes on.  So a
schedule can be judged by its first rounds: each scene is run on in many ways
(`kvopt.heuristics.habits`), a stretch and some rounds ahead.  As many scenes are kept at the same
round, a stretch is judged by what it really led to.  Scenes are compared by reduced costs of their
starts so far, the price of memory left empty, and what waiting requests have lost by now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.coarse import CoarsePrices
from kvopt.bounds.fluid import fluid_prices
from kvopt.heuristics.habits import USUAL, arrange, end_usually, note
from kvopt.heuristics.kept import ALIVE, NUMBER, Kept, draws_of, one_kept
from kvopt.heuristics.passing import Habit, advance, cost_of_waiting
from kvopt.heuristics.reduced_costs import Worth, worth_of
from kvopt.heuristics.scenes import (
    FRONT,
    NOW,
    SEEN,
    STATE,
    STOP,
    Crowd,
    Made,
    Scene,
    copy_scene,
    crowd_of,
    is_over,
    nothing_made,
    skip_idle_rounds,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import SlotPrices
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import reseed
from kvopt.problem.arrays import Floats

_FILLED = (0.85, 1.08)
"""Factor on the share of the memory that schedules fill, about: a range."""
_WEIGHTS = (1.0, 5.0)
"""Weight of what waiting requests have lost: a range.

A try ends too soon to see how long one will wait that only fits where room is made for it.
"""


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
    weight
        Of what waiting requests have lost.
    """

    draws: int
    stretch: int
    ahead: int
    seed: int
    weight: float


class Side(NamedTuple):
    """Scenes at one round, in a row for each.

    Parameters
    ----------
    scenes
        Fields of `Scene` with one more dimension.
    made
        Where each has started its requests, with one more dimension too.
    """

    scenes: Scene
    made: Made


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
    """

    even: Side
    odd: Side
    kept: Kept


def line_of(search: Search) -> tuple[Crowd, Floats]:
    """Return the requests of a search in their line, and its keys.

    They line up by volume, or where slots have prices in the order in which these start them.
    """
    instance, (crowd, keys) = search.instance, crowd_of(search.instance)
    proof = None if search.checked is None else search.checked.proof
    if isinstance(proof, SlotPrices):
        starts = CoarsePrices.of(proof, instance).likely_starts(instance)
        return _lined_up(crowd, keys, starts)
    return crowd, keys


def drawn_trace(search: Search, crowd: Crowd, keys: Floats, random: np.random.Generator) -> Trace:
    """Return a line with prices of a fluid that fills as much of the memory as schedules may.

    With less than all of it they last as long as requests really wait, as those of a bound do not.
    """
    share = min(1.0, filled_share(crowd) * random.uniform(*_FILLED))
    prices = fluid_prices(search.instance.pooled(), share)
    return Trace(crowd, worth_of(search.instance, prices, search.threads), keys)


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
    return float(held.mean()) / (crowd.memory * crowd.workers)


def drawn_weight(random: np.random.Generator) -> float:
    """Draw a weight of what waiting requests have lost."""
    least, most = _WEIGHTS
    return float(least * (most / least) ** random.uniform())


def beam_from(crowd: Crowd, width: int, draws: int) -> Beam:
    """Return a beam that begins with empty caches."""
    most = most_active(crowd)
    even, odd = (_side(crowd, width, most) for _ in range(2))
    return Beam(even, odd, one_kept(width, draws, USUAL))


def most_active(crowd: Crowd) -> int:
    """Return how many requests may be active on a worker, and one more."""
    held = np.sort(crowd.prompts) + 1
    return int(np.searchsorted(held.cumsum(), crowd.memory, side="right")) + 1


def room_for(crowd: Crowd) -> Room:
    """Return room for a try."""
    scenes = _side(crowd, 1, most_active(crowd)).scenes
    return Room(Scene(*(field[0] for field in scenes)), nothing_made(len(crowd.line)))


def _side(crowd: Crowd, width: int, most: int) -> Side:
    count, workers = len(crowd.line), crowd.workers
    counts = np.zeros((width, 5), dtype=np.int64)
    counts[:, [FRONT, STOP]] = count
    active, bases = np.zeros((2, width, workers), dtype=np.int64)
    queue, passed = (np.zeros((width, size), dtype=np.int64) for size in (2 * count, count))
    ends, offsets, loads = np.zeros((3, width, workers, most), dtype=np.int64)
    scenes = Scene(counts, active, bases, queue, passed, ends, offsets, loads)
    return Side(scenes, Made(*np.zeros((2, width, count), dtype=np.int64)))


def made_by(beam: Beam) -> Made:
    """Return what the cheapest scene has made, where all are over."""
    best = int(np.argmin(beam.kept.costs[: beam.kept.counts[ALIVE]]))
    side = beam.odd if beam.kept.counts[NUMBER] % 2 == 1 else beam.even
    return Made(side.made.starts[best], side.made.workers[best])


@compiled
def is_ended(crowd: Crowd, beam: Beam) -> bool:
    """Tell whether everything has been started; if nothing is there, go on to an arrival."""
    side, over, idle = _sides(beam)[0], True, True
    for row in range(beam.kept.counts[ALIVE]):
        scene = _row(side.scenes, row)
        over = over and is_over(crowd, scene)
        idle = idle and scene.counts[FRONT] == scene.counts[STOP] and not scene.active.any()
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
    made = Made(side.made.starts[0], side.made.workers[0])
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
        copy_scene(_row(side.scenes, row), copy, SEEN)
        habit = Habit(*_habit_of(crowd, keys, copy, beam, plan, row, draw))
        paid = beam.kept.costs[row] + advance(crowd, copy, worth, habit, kept, room.made)
        tries.states[x] = copy.counts[STATE]
        seen = paid + advance(crowd, copy, worth, habit, kept + plan.ahead, room.made)
        tries.seen[x] = seen + plan.weight * cost_of_waiting(crowd, copy, worth)


@compiled
def keep_rows(
    crowd: Crowd,
    worth: Worth,
    keys: Floats,
    beam: Beam,
    plan: BeamPlan,
    first: int,
    last: int,
) -> None:
    """Run some of the chosen ones on once more, into the other side."""
    (side, other), tries = _sides(beam), beam.kept
    kept, draws = side.scenes.counts[0, NOW] + plan.stretch, draws_of(tries, plan.draws)
    for place in range(first, last):
        row, draw = tries.chosen[place] // draws, tries.chosen[place] % draws
        scene = _row(other.scenes, place)
        copy_scene(_row(side.scenes, row), scene, len(crowd.line))
        made = Made(other.made.starts[place], other.made.workers[place])
        made.starts[:] = side.made.starts[row]
        made.workers[:] = side.made.workers[row]
        habit = Habit(*_habit_of(crowd, keys, scene, beam, plan, row, draw))
        cost = advance(crowd, scene, worth, habit, kept, made)
        tries.next_costs[place] = beam.kept.costs[row] + cost
        note(habit, tries.next_habits[place])

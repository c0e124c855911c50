"""Beam search over runs: nodes of one window of time advance together, the cheapest stay.

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
from kvopt.heuristics.kept import ALIVE, NUMBER, Kept, Past, draws_of, one_kept
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
    empty_scenes,
    first_scene,
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


class Room(NamedTuple):
    """Work arrays of one expansion: a node, and the starts of its requests."""

    copy: Scene
    made: Made


class Beam(NamedTuple):
    """Nodes of a beam.

    Parameters
    ----------
    even, odd
        Those of every other stretch, and room for the next ones, in a row for each.
    kept
        What they cost, and their habits: window, patience and choice of worker.
    """

    even: Scene
    odd: Scene
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
    count, most = len(crowd.line), most_active(crowd)
    even, odd = (empty_scenes(width, count, crowd.workers, most) for _ in range(2))
    return Beam(even, odd, one_kept(width, draws, USUAL))


def most_active(crowd: Crowd) -> int:
    """Return how many requests may be active on a worker, and one more."""
    held = np.sort(crowd.prompts) + 1
    return int(np.searchsorted(held.cumsum(), crowd.memory, side="right")) + 1


def room_for(crowd: Crowd) -> Room:
    """Return room for a try."""
    count = len(crowd.line)
    return Room(first_scene(count, crowd.workers, most_active(crowd)), nothing_made(count))


@compiled
def next_begin(crowd: Crowd, beam: Beam) -> tuple[bool, int]:
    """Return whether all nodes are finished, and the begin of the next layer."""
    scenes, over, idle = _sides(beam)[0], True, True
    for row in range(beam.kept.counts[ALIVE]):
        scene = _row(scenes, row)
        over = over and is_over(crowd, scene)
        idle = idle and scene.counts[FRONT] == scene.counts[STOP] and not scene.active.any()
    if idle and not over:
        for row in range(beam.kept.counts[ALIVE]):
            skip_idle_rounds(crowd, _row(scenes, row))
    return over, scenes.counts[0, NOW]


@compiled
def make_again(
    trace: Trace, plan: BeamPlan, past: Past, width: int, usual: Floats, room: Room
) -> None:
    """Replay the choices of a node, and run on to the end."""
    crowd, scene, rng = trace.crowd, room.copy, np.zeros(1, dtype=np.int64)
    for number in range(len(past.ends)):
        if not is_over(crowd, scene):
            skip_idle_rounds(crowd, scene)
        reseed(rng, plan.seed, number * width + past.rows[number], past.draws[number])
        parts = arrange(crowd, trace.keys, scene, usual, rng, past.draws[number] == 0)
        habit = Habit(*parts)
        advance(crowd, scene, trace.worth, habit, past.ends[number], room.made)
        note(habit, usual)
    end_usually(crowd, trace.worth, scene, usual, room.made)


@compiled
def _sides(beam: Beam) -> tuple[Scene, Scene]:
    """Return the side that is, and the one to come."""
    if beam.kept.counts[NUMBER] % 2 == 1:
        return beam.odd, beam.even
    return beam.even, beam.odd


@compiled
def _row(scenes: Scene, row: int) -> Scene:
    """Return one of many nodes, which share their arrays."""
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
    """Shuffle the line of a node for a draw of a row, and return its dispatch rule."""
    rng = np.zeros(1, dtype=np.int64)
    reseed(rng, plan.seed, beam.kept.counts[NUMBER] * len(beam.kept.costs) + row, draw)
    return arrange(crowd, keys, scene, beam.kept.habits[row], rng, draw == 0)


@compiled
def make_tries(
    trace: Trace, beam: Beam, plan: BeamPlan, until: int, room: Room, first: int, last: int
) -> None:
    """Expand nodes by random dispatch rules."""
    crowd, worth, tries, copy = trace.crowd, trace.worth, beam.kept, room.copy
    scenes, draws = _sides(beam)[0], draws_of(tries, plan.draws)
    for x in range(first, last):
        row, draw = x // draws, x % draws
        copy_scene(_row(scenes, row), copy, SEEN)
        habit = Habit(*_habit_of(crowd, trace.keys, copy, beam, plan, row, draw))
        paid = tries.costs[row] + advance(crowd, copy, worth, habit, until, room.made)
        tries.states[x] = copy.counts[STATE]
        seen = paid + advance(crowd, copy, worth, habit, until + plan.ahead, room.made)
        tries.seen[x] = seen + plan.weight * cost_of_waiting(crowd, copy, worth)


@compiled
def keep_rows(
    trace: Trace, beam: Beam, plan: BeamPlan, until: int, room: Room, first: int, last: int
) -> None:
    """Run some of the chosen ones on once more, into the other side."""
    crowd, (scenes, others), tries = trace.crowd, _sides(beam), beam.kept
    draws = draws_of(tries, plan.draws)
    for place in range(first, last):
        row, draw = tries.chosen[place] // draws, tries.chosen[place] % draws
        scene = _row(others, place)
        copy_scene(_row(scenes, row), scene, len(crowd.line))
        habit = Habit(*_habit_of(crowd, trace.keys, scene, beam, plan, row, draw))
        cost = advance(crowd, scene, trace.worth, habit, until, room.made)
        tries.next_costs[place] = tries.costs[row] + cost
        note(habit, tries.next_habits[place])

"""Beam search over runs in seconds: nodes of a server advance together.

As in rounds (`kvopt.heuristics.beams`), with prices of machine time for prices of memory, and up
to the same time instead of the same round: rounds of two runs last differently long.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

import numpy as np

from kvopt.heuristics.kept import (
    ALIVE,
    NUMBER,
    Course,
    Kept,
    Past,
    Work,
    draws_of,
    one_kept,
    run_beam,
)
from kvopt.heuristics.seconds.passing import (
    ACTIVE,
    BASE,
    COME,
    DONE,
    LATENCY,
    SEEN,
    WAITING,
    Done,
    Habits,
    Server,
    TimedScene,
    copy_timed,
    cost_of_line,
    empty_scene,
    run_on,
)
from kvopt.kernels.compiled import compiled
from kvopt.kernels.magnitudes import NEVER
from kvopt.kernels.random_numbers import State, normal, reseed, uniform
from kvopt.problem.arrays import Floats

_WIDEST, _FULLEST = 80.0, 100.0
"""Largest window in requests, and strongest preference for long prompts, that are drawn."""
_USUAL = (20.0, 50.0, 1.0)
"""Parts of `Habits` to begin with."""
_BLURRED = 200
"""Requests in line whose keys are blurred."""


class TimedPlan(NamedTuple):
    """How to search.

    Parameters
    ----------
    width, draws
        Scenes that are kept, and tries to go on from each.
    stretch, ahead
        Nanoseconds that are kept, and of the look-ahead beyond.
    seed
        Seed of the random generator.
    """

    width: int
    draws: int
    stretch: int
    ahead: int
    seed: int


class Room(NamedTuple):
    """Work arrays of one expansion: a node, its run, and changes to keys."""

    copy: TimedScene
    done: Done
    noise: Floats


class TimedBeam(NamedTuple):
    """Nodes of a beam in seconds.

    Parameters
    ----------
    even, odd
        Those of every other stretch, and room for the next ones, in a row for each.
    kept
        What they cost, and their habits.
    """

    even: TimedScene
    odd: TimedScene
    kept: Kept


def room_for(server: Server) -> Room:
    """Return room for a try."""
    count = len(server.timed.arrivals)
    done = Done(np.zeros(count, dtype=np.int64), np.zeros((count + 1, 2), dtype=np.int64))
    return Room(empty_scene(count), done, np.zeros(count))


def bytes_of_scene(server: Server) -> int:
    """Return the largest memory of a node on both sides."""
    return 16 * (len(server.timed.arrivals) + 3 * _most_active(server))


def _most_active(server: Server) -> int:
    timed = server.timed
    return int(min(len(timed.arrivals), timed.memory // (timed.prompts.min() + 1))) + 1


def run_alone(server: Server, room: Room) -> TimedScene:
    """Return how a run ends that is made without tries."""
    return _made_again(server, TimedPlan(1, 1, 0, 0, 0), room, Course([], [], []).past(0))


def run_of_beam(
    pool: Executor,
    rooms: list[Room],
    server: Server,
    plan: TimedPlan,
    is_late: Callable[[], bool],
) -> TimedScene:
    """Return the end of the best run of a beam; its events are in the first work array.

    Once it is late, the scene that looks cheapest goes on without tries.
    """
    beam = _beam_for(server, plan)
    work = Work(
        partial(next_begin, server, beam), partial(make_tries, server, beam, plan),
        partial(keep_rows, server, beam, plan),
    )  # fmt: skip
    course, over = run_beam(pool, rooms, beam.kept, work, plan.stretch, is_late)
    side = beam.odd if beam.kept.counts[NUMBER] % 2 == 1 else beam.even
    ended = side.counts[: beam.kept.counts[ALIVE]]
    row = int(np.argmin(ended[:, LATENCY])) if over else 0  # the first looks cheapest
    scene = _made_again(server, plan, rooms[0], course.past(row))
    assert not over or scene.counts[LATENCY] == ended[row, LATENCY], "the same tries"
    return scene


def _beam_for(server: Server, plan: TimedPlan) -> TimedBeam:
    """Return a beam of one node, before any request has arrived."""
    count, most, width = len(server.timed.arrivals), _most_active(server), plan.width
    first = empty_scene(0).counts
    even, odd = (
        TimedScene(
            np.tile(first, (width, 1)),
            np.zeros((width, count), dtype=np.int64),
            np.zeros((width, most, 3), dtype=np.int64),
        )
        for _ in range(2)
    )
    return TimedBeam(even, odd, one_kept(width, plan.draws, _USUAL))


def _made_again(server: Server, plan: TimedPlan, room: Room, past: Past) -> TimedScene:
    scene = empty_scene(len(server.timed.arrivals))
    make_again(server, plan, room, past, np.array(_USUAL), scene)
    return scene


@compiled
def make_again(
    server: Server, plan: TimedPlan, room: Room, past: Past, usual: Floats, scene: TimedScene
) -> None:
    """Replay the choices of a node, and run on to the end."""
    rng = np.zeros(1, dtype=np.int64)
    for number in range(len(past.ends)):
        reseed(rng, plan.seed, number * plan.width + past.rows[number], past.draws[number])
        habits = Habits(*_drawn(scene, usual, room.noise, rng, past.draws[number] == 0))
        run_on(server, room.noise, habits, scene, past.ends[number], room.done)
        usual[0], usual[1], usual[2] = habits.window, habits.fill, habits.together
    habits = Habits(*_drawn(scene, usual, room.noise, rng, True))
    run_on(server, room.noise, habits, scene, NEVER, room.done)


@compiled
def next_begin(server: Server, beam: TimedBeam, until: int) -> tuple[bool, int]:
    """Return whether all runs are finished, and the begin of the next layer."""
    side, arrivals, coming = _sides(beam)[0], server.timed.arrivals, NEVER
    over, idle = True, True
    for row in range(beam.kept.counts[ALIVE]):
        counts = side.counts[row]
        if counts[DONE] < len(arrivals):
            over = False
            idle = idle and counts[ACTIVE] + counts[WAITING] == 0
            if idle:
                coming = min(coming, arrivals[server.timed.coming[counts[COME]]])
    if idle and not over:
        until = max(until, coming)
    return over, until


@compiled
def _sides(beam: TimedBeam) -> tuple[TimedScene, TimedScene]:
    """Return the side that is, and the one to come."""
    if beam.kept.counts[NUMBER] % 2 == 1:
        return beam.odd, beam.even
    return beam.even, beam.odd


@compiled
def _row(scenes: TimedScene, row: int) -> TimedScene:
    """Return one of many nodes, which share their arrays."""
    return TimedScene(scenes.counts[row], scenes.queue[row], scenes.active[row])


@compiled
def make_tries(
    server: Server, beam: TimedBeam, plan: TimedPlan, until: int, room: Room, first: int, last: int
) -> None:
    """Expand nodes by random dispatch rules."""
    side, kept, copy = _sides(beam)[0], beam.kept, room.copy
    draws = draws_of(kept, plan.draws)
    for x in range(first, last):
        row, draw = x // draws, x % draws
        copy_timed(_row(side, row), copy, SEEN)
        habits = Habits(*_habits_of(copy, kept, plan, room, row, draw))
        paid = kept.costs[row]
        paid += run_on(server, room.noise, habits, copy, until, room.done)
        kept.paid[x], kept.states[x] = paid, copy.counts[BASE]
        seen = paid + run_on(server, room.noise, habits, copy, until + plan.ahead, room.done)
        kept.seen[x] = seen + cost_of_line(server, copy)


@compiled
def keep_rows(
    server: Server, beam: TimedBeam, plan: TimedPlan, until: int, room: Room, first: int, last: int
) -> None:
    """Run some of the chosen ones on once more, into the other side."""
    (side, other), kept = _sides(beam), beam.kept
    draws = draws_of(kept, plan.draws)
    for place in range(first, last):
        row, draw = kept.chosen[place] // draws, kept.chosen[place] % draws
        scene = _row(other, place)
        copy_timed(_row(side, row), scene, len(room.noise))
        habits = Habits(*_habits_of(scene, kept, plan, room, row, draw))
        cost = run_on(server, room.noise, habits, scene, until, room.done)
        kept.next_costs[place] = kept.costs[row] + cost
        kept.next_habits[place, 0], kept.next_habits[place, 1] = habits.window, habits.fill
        kept.next_habits[place, 2] = habits.together


@compiled
def _habits_of(
    scene: TimedScene, kept: Kept, plan: TimedPlan, room: Room, row: int, draw: int
) -> tuple[int, float, int]:
    """Blur keys for a draw of a row, and return its dispatch rule."""
    rng = np.zeros(1, dtype=np.int64)
    reseed(rng, plan.seed, kept.counts[NUMBER] * plan.width + row, draw)
    return _drawn(scene, kept.habits[row], room.noise, rng, draw == 0)


@compiled
def _drawn(
    scene: TimedScene, usual: Floats, noise: Floats, rng: State, plain: bool
) -> tuple[int, float, int]:
    """Blur the keys of the first in line, and return the parts of a dispatch rule.

    The plain way is to go on as before.  Otherwise it is near the one before, or new.
    """
    noise[:] = 0.0
    if plain:
        return int(usual[0]), float(usual[1]), int(usual[2])
    if uniform(rng) < 0.5:
        window, fill = usual[0] * np.exp(0.3 * normal(rng)), usual[1] * np.exp(0.3 * normal(rng))
    else:
        window, fill = 2.0 * (_WIDEST / 2.0) ** uniform(rng), _FULLEST * uniform(rng) ** 2
    together = int(usual[2]) if uniform(rng) < 0.7 else int(2.0 ** (5.0 * uniform(rng)))
    blur = 0.0 if uniform(rng) < 0.2 else (1.0 + fill / 30.0) * uniform(rng) ** 2
    for place in range(min(scene.counts[WAITING], _BLURRED)):
        noise[scene.queue[place]] = blur * normal(rng)
    return max(1, int(window)), float(fill), together

"""A list scheduler that lets a request be passed over, but not for ever.

One that waits for the first in line leaves memory empty that a request behind it could use.  One
that starts whatever fits never again has enough room for those that need much, and leaves them
to the end.  Between the two: look at the first ``window`` in line, start those that fit, and let
no request be passed over more than ``patience`` times; the next one then waits for it.

The workers of a fleet share one line, from which a request goes to a worker where it fits
(`FIRST`, `EMPTIEST`, `FULLEST`).

Everything here is compiled.  A `Scene` is how far a run has got; it can be copied, and run on
in different ways.  The rule is that of the policy `patient`, and the look-ahead that of
`kvopt.policies.lookahead_loops`, in loops of its own: a roll through the loops there took 1.3 to
1.4 times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.reduced_costs import Worth, cost_of_start, paid_for_slots
from kvopt.kernels.arrays import Integers
from kvopt.kernels.compiled import compiled

Rows = Integers
"""Integers in two dimensions: a row for each worker."""

FRONT, STOP, _COME, NOW = range(4)  # entries of `Scene.counts`
FIRST, EMPTIEST, FULLEST = range(3)
"""Which worker takes a request: the first where it fits, or one that holds least or most."""
_SEEN = 2048
"""Waiting requests that a copy of a scene has at most, the first in line."""
_UNHURRIED = 300
"""Requests in a row that lose nothing by waiting, after which those behind are not asked."""


class Crowd(NamedTuple):
    """An instance as arrays, and the line in which requests wait.

    Parameters
    ----------
    memory
        M, of each worker.
    arrivals, prompts, outputs
        Of each request.
    line
        Requests in the order in which they line up.  The place there is a request's **rank**.
    coming
        Ranks by arrival.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    line: Integers
    coming: Integers


class Made(NamedTuple):
    """Where requests have been started: rounds and workers."""

    starts: Integers
    workers: Integers


class Habit(NamedTuple):
    """How requests are taken from the line.

    Parameters
    ----------
    window, patience
        Requests that are looked at, and times that one is passed over.
    choice
        Which worker takes one: `FIRST`, `EMPTIEST` or `FULLEST`.
    """

    window: int
    patience: int
    choice: int


class Scene(NamedTuple):
    """How far a run has got.

    Parameters
    ----------
    counts
        Where the waiting begin and end in ``queue``, how many have arrived, and the round.
    active, bases
        How many requests are active on each worker, and the sum of their offsets.
    queue
        Ranks of waiting requests, about ascending.
    passed
        How often each rank was passed over.
    ends, offsets, loads
        In a row for each worker, of each active request: its completion, ascending, its prompt
        less its start (plus t that is what it holds at t), and what all of the worker hold
        together at its completion.
    """

    counts: Integers
    active: Integers
    bases: Integers
    queue: Integers
    passed: Integers
    ends: Rows
    offsets: Rows
    loads: Rows


def nothing_made(count: int) -> Made:
    """Return room for starts and workers."""
    return Made(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))


def first_scene(count: int, workers: int = 1) -> Scene:
    """Return the scene before any request has arrived."""
    counts = np.array([count, count, 0, 0], dtype=np.int64)
    active, bases = np.zeros((2, workers), dtype=np.int64)
    queue, passed = np.zeros(2 * count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    ends, offsets, loads = np.zeros((3, workers, count), dtype=np.int64)
    return Scene(counts, active, bases, queue, passed, ends, offsets, loads)


@compiled
def copy_scene(scene: Scene, copy: Scene) -> None:
    """Copy what matters for the next while: not those far behind in the queue."""
    copy.counts[:] = scene.counts
    copy.active[:] = scene.active
    copy.bases[:] = scene.bases
    front = scene.counts[FRONT]
    stop = min(scene.counts[STOP], front + _SEEN)
    copy.counts[STOP] = stop
    for place in range(front, stop):
        rank = scene.queue[place]
        copy.queue[place], copy.passed[rank] = rank, scene.passed[rank]
    for worker in range(len(scene.active)):
        active = scene.active[worker]
        copy.ends[worker, :active] = scene.ends[worker, :active]
        copy.offsets[worker, :active] = scene.offsets[worker, :active]
        copy.loads[worker, :active] = scene.loads[worker, :active]


@compiled
def is_over(crowd: Crowd, scene: Scene) -> bool:
    """Tell whether everything has been started."""
    waits = scene.counts[FRONT] < scene.counts[STOP]
    return not waits and scene.counts[_COME] == len(crowd.line)


@compiled
def skip_idle_rounds(crowd: Crowd, scene: Scene) -> None:
    """Go on to the next arrival if nothing is active and no request waits."""
    counts = scene.counts
    if counts[FRONT] == counts[STOP] and not scene.active.any():
        arrival = crowd.arrivals[crowd.line[crowd.coming[counts[_COME]]]]
        counts[NOW] = max(counts[NOW], arrival)


@compiled
def advance(
    crowd: Crowd,
    scene: Scene,
    worth: Worth,
    habit: Habit,
    until: int,
    made: Made,
) -> float:
    """Run a scene on until a round, and return what that cost above the bound of the prices.

    Requests are started at arrivals and completions only.
    """
    counts, cost = scene.counts, 0.0
    while counts[NOW] < until:
        now = counts[NOW]
        _meet(crowd, scene)
        cost += _admit(crowd, scene, worth, habit, made)
        following = until
        for worker in range(len(scene.active)):
            if scene.active[worker] > 0:
                following = min(following, scene.ends[worker, 0])
        if counts[_COME] < len(crowd.line):
            come = crowd.coming[counts[_COME]]
            following = min(following, crowd.arrivals[crowd.line[come]])
        cost += _idle_memory(crowd, scene, worth, now, following)
        counts[NOW] = following
    return cost


@compiled
def finish(crowd: Crowd, scene: Scene, worth: Worth, habit: Habit, made: Made) -> None:
    """Run a scene on to its end."""
    while not is_over(crowd, scene):
        skip_idle_rounds(crowd, scene)
        until = scene.counts[NOW] + 1_000
        advance(crowd, scene, worth, habit, until, made)


@compiled
def cost_of_waiting(crowd: Crowd, scene: Scene, worth: Worth) -> float:
    """Return what waiting requests have lost by now against their cheapest starts."""
    cost, unhurried, now = 0.0, 0, scene.counts[NOW]
    for place in range(scene.counts[FRONT], scene.counts[STOP]):
        i = crowd.line[scene.queue[place]]
        if worth.cheapest[i] < now:
            cost += _reduced_cost(crowd, worth, i, now)
            unhurried = 0
        else:
            unhurried += 1
            if unhurried > _UNHURRIED:
                break
    return cost


@compiled
def _reduced_cost(crowd: Crowd, worth: Worth, i: int, start: int) -> float:
    waiting = start - crowd.arrivals[i]
    return cost_of_start(worth, i, start, waiting, crowd.prompts[i], crowd.outputs[i])


@compiled
def _idle_memory(crowd: Crowd, scene: Scene, worth: Worth, begin: int, end: int) -> float:
    """Return the price of the memory and the slots that are not used between two rounds."""
    last = len(worth.paid) - 1
    begin, end = min(begin, last), min(end, last)
    paid = worth.paid[end] - worth.paid[begin]
    moment = worth.moment[end] - worth.moment[begin]
    memory = crowd.memory * len(scene.active)
    idle = (memory - scene.bases.sum()) * paid - scene.active.sum() * moment
    if len(worth.steps):
        idle += len(scene.active) * (worth.slots[end] - worth.slots[begin])
        for worker in range(len(scene.active)):
            for place in range(scene.active[worker]):
                idle -= paid_for_slots(worth, scene.offsets[worker, place], begin, end)
    return float(idle)


@compiled
def _meet(crowd: Crowd, scene: Scene) -> None:
    """Let arriving requests join the line, and completed ones leave."""
    counts = scene.counts
    now, come = counts[NOW], counts[_COME]
    while come < len(crowd.line) and crowd.arrivals[crowd.line[crowd.coming[come]]] <= now:
        _join(scene, crowd.coming[come])
        come += 1
    counts[_COME] = come
    for worker in range(len(scene.active)):
        _leave(scene, worker)


@compiled
def _leave(scene: Scene, worker: int) -> None:
    """Let completed requests leave a worker."""
    ends, offsets, loads = scene.ends[worker], scene.offsets[worker], scene.loads[worker]
    gone, active = 0, scene.active[worker]
    while gone < active and ends[gone] <= scene.counts[NOW]:
        scene.bases[worker] -= offsets[gone]
        gone += 1
    if gone == 0:
        return
    for x in range(gone, active):
        ends[x - gone], offsets[x - gone], loads[x - gone] = ends[x], offsets[x], loads[x]
    scene.active[worker] -= gone


@compiled
def _admit(crowd: Crowd, scene: Scene, worth: Worth, habit: Habit, made: Made) -> float:
    """Start requests that fit, and return the reduced costs of these starts."""
    counts, queue, cost = scene.counts, scene.queue, 0.0
    now, seen, place = counts[NOW], 0, counts[FRONT]
    room = _room(crowd, scene)
    while place < counts[STOP] and seen < habit.window:
        front = counts[FRONT]
        if place > front and scene.passed[queue[front]] >= habit.patience:
            break
        i, worker = crowd.line[queue[place]], -1
        if crowd.prompts[i] < room:  # most do not, and are passed over at once
            worker = _choose(crowd, scene, crowd.prompts[i], crowd.outputs[i], habit.choice)
        if worker >= 0:
            start_on(scene, worker, crowd.prompts[i], crowd.outputs[i])
            made.starts[i], made.workers[i] = now, worker
            cost += _reduced_cost(crowd, worth, i, now)
            if place > front:
                scene.passed[queue[front]] += 1
            for x in range(place, front, -1):
                queue[x] = queue[x - 1]
            counts[FRONT] += 1
            room = _room(crowd, scene)
        else:
            seen += 1
        place += 1
    return cost


@compiled
def _room(crowd: Crowd, scene: Scene) -> int:
    """Return the most tokens that a request may hold one round from now, on any worker."""
    room = -1
    for worker in range(len(scene.active)):
        held = scene.bases[worker] + scene.active[worker] * (scene.counts[NOW] + 1)
        room = max(room, crowd.memory - held)
    return room


@compiled
def _choose(crowd: Crowd, scene: Scene, prompt: int, output: int, choice: int) -> int:
    """Return the worker that takes a request now, -1 if it fits on none."""
    best, least, now = -1, 0, scene.counts[NOW]
    for worker in range(len(scene.active)):
        held = scene.bases[worker] + scene.active[worker] * now
        if choice == FULLEST:
            held = -held
        if best >= 0 and (choice == FIRST or held >= least):
            continue
        if _fits(crowd, scene, worker, prompt, output):
            best, least = worker, held
    return best


@compiled
def _join(scene: Scene, rank: int) -> None:
    """Insert a rank in its place, moving the shorter side."""
    scene.passed[rank] = 0  # what a copy of a scene was used for before may have passed it over
    queue, front, stop = scene.queue, scene.counts[FRONT], scene.counts[STOP]
    place = front + np.searchsorted(queue[front:stop], rank)
    if place - front < stop - place and front > 0:
        for x in range(front, place):
            queue[x - 1] = queue[x]
        queue[place - 1] = rank
        scene.counts[FRONT] -= 1
        return
    for x in range(stop, place, -1):
        queue[x] = queue[x - 1]
    queue[place] = rank
    scene.counts[STOP] += 1


@compiled
def _fits(crowd: Crowd, scene: Scene, worker: int, prompt: int, output: int) -> bool:
    """Tell whether a request that starts now fits at every completion, its own included."""
    active, now = scene.active[worker], scene.counts[NOW]
    if scene.bases[worker] + active * (now + 1) + prompt + 1 > crowd.memory:
        return False
    end, x = now + output, 0
    while x < active and scene.ends[worker, x] < end:
        if scene.loads[worker, x] + prompt + scene.ends[worker, x] - now > crowd.memory:
            return False
        x += 1
    own = prompt + output + (active - x) * end
    for later in range(x, active):
        own += scene.offsets[worker, later]
    return bool(own <= crowd.memory)


@compiled
def start_on(scene: Scene, worker: int, prompt: int, output: int) -> None:
    """Make a request active now."""
    ends, offsets, loads = scene.ends[worker], scene.offsets[worker], scene.loads[worker]
    now = scene.counts[NOW]
    end, offset = now + output, prompt - now
    x = active = scene.active[worker]
    own = prompt + output
    while x > 0 and ends[x - 1] >= end:
        x -= 1
        own += offsets[x] + end
    for y in range(active, x, -1):
        ends[y], offsets[y], loads[y] = ends[y - 1], offsets[y - 1], loads[y - 1]
    ends[x], offsets[x], loads[x] = end, offset, own
    for y in range(x):
        loads[y] += offset + ends[y]
    y = x + 1
    while y <= active and ends[y] == end:
        loads[y] += offset + end
        y += 1
    scene.active[worker] += 1
    scene.bases[worker] += offset

"""Nodes: the state of a run at a time, and its steps.

A `Scene` can be copied, and run on in different ways (`kvopt.heuristics.dispatch`).  The workers
of a fleet share one line, from which a request goes to a worker where it fits (`FIRST`,
`EMPTIEST`, `FULLEST`).

The look-ahead answers as that of `kvopt.simulate.policies.lookahead` does, in loops of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.bounds.shares import shared_out
from kvopt.kernels.compiled import compiled, inlined
from kvopt.kernels.copying import copy_into, place_of
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance

Rows = Integers
"""Integers in two dimensions: a row for each worker."""

FRONT, STOP, COME, STATE, NOW = range(5)  # entries of `Scene.counts`
FIRST, EMPTIEST, FULLEST = 0.0, 1.0, 2.0
"""Which worker takes a request: the first where it fits, or one that holds least or most."""


class Crowd(NamedTuple):
    """An instance as arrays, and the line in which requests wait.

    Parameters
    ----------
    memory
        M, of each worker.
    arrivals, prompts, outputs
        Of each request; prompts count shares of what several use (`kvopt.bounds.shares`).
    line
        Requests in the order in which they line up.  The place there is a request's **rank**.
    coming
        Ranks by arrival.
    mean_output
        Of all requests, in rounds.
    workers
        Of the fleet.
    private, paths, nodes
        Prompt tokens that a request holds alone, and its nodes of the forest:
        ``nodes[paths[i]:paths[i + 1]]``.
    weights
        Tokens of each node, which is held once on a worker.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    line: Integers
    coming: Integers
    mean_output: int
    workers: int
    private: Integers
    paths: Integers
    nodes: Integers
    weights: Integers


class Made(NamedTuple):
    """Where requests have been started: rounds and workers."""

    starts: Integers
    workers: Integers


class Scene(NamedTuple):
    """How far a run has got.

    Parameters
    ----------
    counts
        Where the waiting begin and end in ``queue``, how many have arrived, a hash of the state
        (what has been started, and what active requests will hold until when), and the round.
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
    until
        In a row for each worker, when the last active user of each node completes.
    """

    counts: Integers
    active: Integers
    bases: Integers
    queue: Integers
    passed: Integers
    ends: Rows
    offsets: Rows
    loads: Rows
    until: Rows


def crowd_of(instance: Instance) -> tuple[Crowd, Floats]:
    """Return an instance as arrays, lined up by volume, and the logarithms of the volumes."""
    arrivals, prompts, outputs = columns_of(plain := shared_out(instance))
    volumes = np.array([float(request.volume) for request in plain])
    forest = instance.without_common_prefix().forest
    line = np.lexsort((arrivals, prompts, volumes))
    coming = np.argsort(arrivals[line], kind="stable")
    mean = int(outputs.mean()) if len(outputs) else 0
    crowd = Crowd(
        plain.memory, arrivals, prompts, outputs, line, coming, mean, instance.workers,
        np.array(forest.private, dtype=np.int64),
        np.cumsum([0, *map(len, forest.paths)]),
        np.array([node for path in forest.paths for node in path], dtype=np.int64),
        np.array(forest.weights, dtype=np.int64),
    )  # fmt: skip
    return crowd, np.log(volumes)


def most_active(crowd: Crowd) -> int:
    """Return how many requests may be active on a worker, and one more."""
    held = np.sort(crowd.private) + 1
    return int(np.searchsorted(held.cumsum(), crowd.memory, side="right")) + 1


def nothing_made(count: int) -> Made:
    """Return room for starts and workers."""
    return Made(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64))


def first_scene(crowd: Crowd) -> Scene:
    """Return the node before any request has arrived."""
    return Scene(*(field[0] for field in empty_scenes(crowd, 1)))


def empty_scenes(crowd: Crowd, width: int) -> Scene:
    """Return empty nodes, one in each row."""
    count, workers, most = len(crowd.line), crowd.workers, most_active(crowd)
    counts = np.tile(np.array([count, count, 0, 0, 0], dtype=np.int64), (width, 1))
    active, bases = np.zeros((2, width, workers), dtype=np.int64)
    queue, passed = (np.zeros((width, size), dtype=np.int64) for size in (2 * count, count))
    ends, offsets, loads = np.zeros((3, width, workers, most), dtype=np.int64)
    until = np.zeros((width, workers, len(crowd.weights)), dtype=np.int64)
    return Scene(counts, active, bases, queue, passed, ends, offsets, loads, until)


@compiled
def copy_scene(scene: Scene, copy: Scene, seen: int) -> None:
    """Copy a node, with so many of its waiting requests."""
    copy_into(copy.counts, scene.counts, len(scene.counts))
    copy_into(copy.active, scene.active, len(scene.active))
    copy_into(copy.bases, scene.bases, len(scene.active))
    front = scene.counts[FRONT]
    stop = min(scene.counts[STOP], front + seen)
    copy.counts[STOP] = stop
    for place in range(front, stop):
        rank = scene.queue[place]
        copy.queue[place], copy.passed[rank] = rank, scene.passed[rank]
    for worker in range(len(scene.active)):
        active = scene.active[worker]
        copy_into(copy.ends[worker], scene.ends[worker], active)
        copy_into(copy.offsets[worker], scene.offsets[worker], active)
        copy_into(copy.loads[worker], scene.loads[worker], active)
        copy_into(copy.until[worker], scene.until[worker], scene.until.shape[1])


@inlined
def meet(crowd: Crowd, scene: Scene) -> None:
    """Let arriving requests join the line, and completed ones leave."""
    counts = scene.counts
    now, come = counts[NOW], counts[COME]
    while come < len(crowd.line) and crowd.arrivals[crowd.line[crowd.coming[come]]] <= now:
        _join(scene, crowd.coming[come])
        come += 1
    counts[COME] = come
    for worker in range(len(scene.active)):
        ends, offsets, loads = scene.ends[worker], scene.offsets[worker], scene.loads[worker]
        gone, active = 0, scene.active[worker]
        while gone < active and ends[gone] <= now:
            scene.bases[worker] -= offsets[gone]
            counts[STATE] -= mixed(ends[gone], offsets[gone])
            gone += 1
        if gone:
            for x in range(gone, active):
                ends[x - gone], offsets[x - gone], loads[x - gone] = ends[x], offsets[x], loads[x]
            scene.active[worker] -= gone


@compiled
def _join(scene: Scene, rank: int) -> None:
    """Insert a rank in its place, moving the shorter side."""
    scene.passed[rank] = 0  # what a copy of a scene was used for before may have passed it over
    queue, front, stop = scene.queue, scene.counts[FRONT], scene.counts[STOP]
    place = place_of(rank, queue, front, stop)
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


@inlined
def held_before(scene: Scene, worker: int, x: int, time: int) -> int:
    """Return the tokens held at a time up to the completion in place x, after the one before it."""
    active = scene.active[worker]
    if x == active:
        return 0
    return int(scene.loads[worker, x] - (active - x) * (scene.ends[worker, x] - time))


@inlined
def _added(crowd: Crowd, scene: Scene, worker: int, i: int, time: int) -> int:
    """Return the prompt tokens that a request adds at a time: nodes that are there it shares."""
    tokens = crowd.private[i]
    for place in range(crowd.paths[i], crowd.paths[i + 1]):
        node = crowd.nodes[place]
        if scene.until[worker, node] < time:
            tokens += crowd.weights[node]
    return int(tokens)


@inlined
def worker_for(crowd: Crowd, scene: Scene, i: int, choice: float) -> int:
    """Return the worker that takes a request now, -1 if it fits on none."""
    best, least, now = -1, 0, scene.counts[NOW]
    for worker in range(len(scene.active)):
        held = scene.bases[worker] + scene.active[worker] * now
        if choice == FULLEST:
            held = -held
        if best >= 0 and (choice == FIRST or held >= least):
            continue
        if _fits(crowd, scene, worker, i):
            best, least = worker, held
    return best


@inlined
def _fits(crowd: Crowd, scene: Scene, worker: int, i: int) -> bool:
    """Tell whether a request that starts now fits at every completion, its own included."""
    active, now, output = scene.active[worker], scene.counts[NOW], crowd.outputs[i]
    begun = held_before(scene, worker, 0, now + 1) + 1
    if begun + _added(crowd, scene, worker, i, now + 1) > crowd.memory:
        return False
    end, x = now + output, 0
    while x < active and scene.ends[worker, x] < end:
        more = _added(crowd, scene, worker, i, scene.ends[worker, x])
        if scene.loads[worker, x] + more + scene.ends[worker, x] - now > crowd.memory:
            return False
        x += 1
    own = held_before(scene, worker, x, end) + _added(crowd, scene, worker, i, end) + output
    return bool(own <= crowd.memory)


@compiled
def mixed(first: int, second: int) -> int:
    """Return a hash of two numbers; those of many are added up."""
    x = np.uint64(np.int64(first)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(np.int64(second))
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return int((x ^ (x >> np.uint64(27))) >> np.uint64(1))


@inlined
def start_on(crowd: Crowd, scene: Scene, worker: int, i: int) -> None:
    """Make a request active now."""
    ends, offsets, loads = scene.ends[worker], scene.offsets[worker], scene.loads[worker]
    now, output = scene.counts[NOW], crowd.outputs[i]
    end, offset = now + output, crowd.prompts[i] - now
    x = active = scene.active[worker]
    while x > 0 and ends[x - 1] >= end:
        x -= 1
    last = _added(crowd, scene, worker, i, end) + output
    own = held_before(scene, worker, x, end) + last
    for y in range(active, x, -1):
        ends[y], offsets[y], loads[y] = ends[y - 1], offsets[y - 1], loads[y - 1]
    ends[x], offsets[x], loads[x] = end, offset, own
    for y in range(x):
        loads[y] += _added(crowd, scene, worker, i, ends[y]) + ends[y] - now
    y = x + 1
    while y <= active and ends[y] == end:
        loads[y] += last
        y += 1
    for place in range(crowd.paths[i], crowd.paths[i + 1]):
        node = crowd.nodes[place]
        scene.until[worker, node] = max(scene.until[worker, node], end)
    scene.active[worker] += 1
    scene.bases[worker] += offset
    scene.counts[STATE] += mixed(end, offset)

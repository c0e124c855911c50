"""A list scheduler that lets a request be passed over, but not for ever.

One that waits for the first in line leaves memory empty that a request behind it could use.  One
that starts whatever fits never again has enough room for those that need much, and leaves them
to the end.  Between the two: look at the first ``window`` in line, start those that fit, and let
no request be passed over more than ``patience`` times; the next one then waits for it.

Of the requests in the window the first that fits is started, as the policy `patient` does, or
the one that gains most: what its start would cost more after a mean output, and the price of the
memory that it fills until then.

A request that would hold much of the memory for long is better kept back until others are done,
even where it fits: prices say so.  One waits for its cheapest start while a start costs more than
a habit allows.

Everything here is compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.nodes import (
    COME,
    FRONT,
    NOW,
    STATE,
    STOP,
    Crowd,
    Made,
    Scene,
    first_scene,
    held_before,
    meet,
    mixed,
    nothing_made,
    start_on,
    worker_for,
)
from kvopt.heuristics.reduced_costs import Worth, tokens_of
from kvopt.kernels.compiled import compiled, inlined
from kvopt.problem.arrays import Floats

_UNHURRIED = 300
"""Requests in a row that lose nothing by waiting, after which those behind are not asked."""


class Habit(NamedTuple):
    """How requests are taken from the line; all floats, so that loops can go through the parts.

    Parameters
    ----------
    window, patience
        Requests that are looked at, and times that one is passed over.
    choice
        Which worker takes one: `FIRST`, `EMPTIEST` or `FULLEST`.
    fill
        What filling memory at once is worth, in its price; below 0 the first that fits is taken.
    allowed
        Reduced cost up to which a request is started before its cheapest start.
    """

    window: float
    patience: float
    choice: float
    fill: float = -1.0
    allowed: float = np.inf


class Trace(NamedTuple):
    """Constants of a search: requests in their line, their prices, and the keys of the line."""

    crowd: Crowd
    worth: Worth
    keys: Floats


class Room(NamedTuple):
    """Work arrays of one expansion: a node, and the starts of its requests."""

    copy: Scene
    made: Made


def room_for(crowd: Crowd) -> Room:
    """Return work arrays of one expansion."""
    return Room(first_scene(crowd), nothing_made(len(crowd.line)))


@compiled
def advance(trace: Trace, scene: Scene, habit: Habit, until: int, room: Room) -> float:
    """Run a node until a round, and return its cost above the bound of the prices.

    Requests are started at arrivals and completions only.
    """
    crowd, counts, cost = trace.crowd, scene.counts, 0.0
    paid, moment, last = trace.worth.paid, trace.worth.moment, len(trace.worth.paid) - 1
    memory = crowd.memory * len(scene.active)
    while counts[NOW] < until:
        now = counts[NOW]
        meet(crowd, scene)
        cost += _admit(crowd, scene, trace.worth, habit, room.made)
        following = until
        for worker in range(len(scene.active)):
            if scene.active[worker] > 0:
                following = min(following, scene.ends[worker, 0])
        if counts[COME] < len(crowd.line):
            come = crowd.coming[counts[COME]]
            following = min(following, crowd.arrivals[crowd.line[come]])
        begin, end = min(now, last), min(following, last)  # idle memory in between has a price
        cost += (memory - scene.bases.sum()) * (paid[end] - paid[begin])
        cost -= scene.active.sum() * (moment[end] - moment[begin])
        counts[NOW] = following
    return cost


@compiled
def cost_of_waiting(trace: Trace, scene: Scene) -> float:
    """Return what waiting requests have lost by now against their cheapest starts."""
    cost, unhurried, now, crowd, worth = 0.0, 0, scene.counts[NOW], trace.crowd, trace.worth
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


@inlined
def _reduced_cost(crowd: Crowd, worth: Worth, i: int, start: int) -> float:
    """Return by how much a start costs more than the cheapest."""
    prompt, output = crowd.prompts[i], crowd.outputs[i]
    held = tokens_of(worth.paid, worth.moment, start, prompt, output)
    return float(start - crowd.arrivals[i] + output + held - worth.least[i])


@inlined
def _admit(crowd: Crowd, scene: Scene, worth: Worth, habit: Habit, made: Made) -> float:
    """Start the first that fits, or what gains most, as long as some fit; return the costs."""
    counts, queue, cost, worker = scene.counts, scene.queue, 0.0, 0
    paid, moment, gaining = worth.paid, worth.moment, habit.fill >= 0
    now, last = counts[NOW], len(paid) - 1
    later = now + crowd.mean_output
    price = habit.fill * (paid[min(later, last)] - paid[min(now, last)])
    while worker >= 0:
        free, front, worker, best, most = -1, counts[FRONT], -1, 0, -np.inf
        for each in range(len(scene.active)):
            free = max(free, crowd.memory - held_before(scene, each, 0, now + 1))
        stop = min(counts[STOP], front + int(habit.window))
        is_next = front < stop and scene.passed[queue[front]] >= habit.patience
        if is_next and not _is_kept_back(crowd, scene, worth, habit, crowd.line[queue[front]]):
            stop = front + 1
        for place in range(front, stop):
            i, gain = crowd.line[queue[place]], 0.0
            if crowd.private[i] >= free:  # most do not fit, and are passed over at once
                continue
            if gaining:
                prompt, output = crowd.prompts[i], crowd.outputs[i]
                gain = price * prompt + tokens_of(paid, moment, later, prompt, output)
                gain -= tokens_of(paid, moment, now, prompt, output)
            if gain > most and not _is_kept_back(crowd, scene, worth, habit, i):
                fits = worker_for(crowd, scene, i, habit.choice)
                if fits >= 0:
                    worker, best, most = fits, place, gain
                    if not gaining:
                        break
        if worker >= 0:
            i = crowd.line[queue[best]]
            start_on(crowd, scene, worker, i)
            made.starts[i], made.workers[i] = now, worker
            if best > front:
                scene.passed[queue[front]] += 1
            for x in range(best, front, -1):
                queue[x] = queue[x - 1]
            counts[FRONT] += 1
            counts[STATE] += mixed(i, -1)
            cost += _reduced_cost(crowd, worth, i, now)
    return cost


@inlined
def _is_kept_back(crowd: Crowd, scene: Scene, worth: Worth, habit: Habit, i: int) -> bool:
    """Tell whether a request waits for a start that is cheaper."""
    now = scene.counts[NOW]
    if now >= worth.cheapest[i] or habit.allowed == np.inf:
        return False
    return _reduced_cost(crowd, worth, i, now) > habit.allowed

"""Beam search over runs in seconds: nodes of a server advance together.

As in rounds (`kvopt.heuristics.trace_beams`), with prices of machine time instead of memory, and up
to the same time instead of the same round: rounds of two runs differ in length.
"""

from __future__ import annotations

from concurrent.futures import Executor
from functools import partial

import numpy as np

from kvopt.heuristics.layers import (
    Beam,
    BeamPlan,
    Operations,
    Past,
    Work,
    go_again,
    one_kept,
    run_beam,
    tries_of,
)
from kvopt.heuristics.seconds.timed_nodes import (
    ACTIVE,
    BASE,
    COME,
    LATENCY,
    WAITING,
    Done,
    Room,
    Rules,
    Server,
    TimedNode,
    copy_timed,
    cost_of_line,
    empty_node,
    run_on,
)
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import compiled
from kvopt.kernels.magnitudes import NEVER
from kvopt.kernels.random_numbers import State, factor, normal, uniform
from kvopt.problem.arrays import Flags, Floats, Integers

_WIDEST, _FULLEST = 80.0, 100.0
"""Limits of the draws: window in requests, and preference for long prompts."""
_USUAL = (20.0, 50.0, 1.0)
"""Parts of the first `Rules`."""
_BLURRED = 200
"""Requests in line whose keys are blurred."""


def room_for(server: Server) -> Room:
    """Return work arrays for an expansion."""
    count = len(server.timed.arrivals)
    done = Done(np.zeros(count, dtype=np.int64), np.zeros((count + 1, 2), dtype=np.int64))
    return Room(empty_node(count), done, np.zeros(count))


def bytes_of_node(server: Server) -> int:
    """Return the bytes of a node, in both layers."""
    return 16 * (len(server.timed.arrivals) + 3 * _most_active(server))


def _most_active(server: Server) -> int:
    timed = server.timed
    return int(min(len(timed.arrivals), timed.memory // (timed.prompts.min() + 1))) + 1


def run_alone(server: Server, room: Room) -> TimedNode:
    """Return the end of a run with the first rule alone."""
    return _made_again(server, BeamPlan(1, 1, NEVER, 0, 0), room, Past([], []))


def run_of_beam(
    pool: Executor,
    rooms: list[Room],
    server: Server,
    plan: BeamPlan,
    budget: Budget,
) -> TimedNode:
    """Return the end of the best run of a beam; its events are in the first work array.

    After the time limit the cheapest node is completed without other rules.
    """
    beam = _beam_for(server, plan)
    course, ended = run_beam(pool, rooms, beam, _work_on(server, plan), plan, budget)
    if ended is None:
        return _made_again(server, plan, rooms[0], course.past(0))  # the first is the cheapest
    latencies = ended.here.counts[: len(course.chosen[-1]), LATENCY]
    row = int(np.argmin(latencies))
    node = _made_again(server, plan, rooms[0], course.past(row))
    assert node.counts[LATENCY] == latencies[row], "the same tries"
    return node


def _beam_for(server: Server, plan: BeamPlan) -> Beam:
    """Return a beam of one node, before any request has arrived."""
    count, most, width = len(server.timed.arrivals), _most_active(server), plan.width
    first = empty_node(0).counts
    here, there = (
        TimedNode(
            np.tile(first, (width, 1)),
            np.zeros((width, count), dtype=np.int64),
            np.zeros((width, most, 3), dtype=np.int64),
        )
        for _ in range(2)
    )
    return Beam(here, there, one_kept(plan, _USUAL))


def _work_on(server: Server, plan: BeamPlan) -> Work:
    """Return the compiled loops of a beam, and the arrivals."""
    return Work(np.sort(server.timed.arrivals), _progress, partial(_make_tries, server, plan))


def _progress(nodes: TimedNode) -> tuple[Flags, Integers]:
    """Return whether each node has work, and its number of arrived requests."""
    counts = nodes.counts
    return counts[:, ACTIVE] + counts[:, WAITING] > 0, counts[:, COME]


def _made_again(server: Server, plan: BeamPlan, room: Room, past: Past) -> TimedNode:
    beam = _beam_for(server, plan._replace(width=1, draws=1))
    go_again(beam, _work_on(server, plan), past, plan.stretch, room)
    return TimedNode(*(field[0] for field in beam.here))


@compiled
def _row(nodes: TimedNode, row: int) -> TimedNode:
    """Return one of many nodes, which share their arrays."""
    return TimedNode(nodes.counts[row], nodes.queue[row], nodes.active[row])


@compiled
def _drawn(
    server: Server,  # noqa: ARG001
    node: TimedNode,
    usual: Floats,
    room: Room,
    rng: State,
    plain: bool,
) -> Rules:
    """Blur the keys of the first in line, and return a dispatch rule.

    By default it is the last rule again.  Otherwise it is near the last one, or new.
    """
    for rank in range(len(room.noise)):
        room.noise[rank] = 0.0
    if plain:
        return Rules(usual[0], usual[1], usual[2])
    if uniform(rng) < 0.5:
        window, fill = usual[0] * factor(rng, 0.3), usual[1] * factor(rng, 0.3)
    else:
        window, fill = 2.0 * (_WIDEST / 2.0) ** uniform(rng), _FULLEST * uniform(rng) ** 2
    together = usual[2] if uniform(rng) < 0.7 else float(int(2.0 ** (5.0 * uniform(rng))))
    blur = 0.0 if uniform(rng) < 0.2 else (1.0 + fill / 30.0) * uniform(rng) ** 2
    for place in range(min(node.counts[WAITING], _BLURRED)):
        room.noise[node.queue[place]] = blur * normal(rng)
    return Rules(max(1.0, float(int(window))), fill, together)


_make_tries = tries_of(
    "tries_in_seconds",
    Operations(_row, copy_timed, _drawn, run_on, cost_of_line, BASE, False),
)

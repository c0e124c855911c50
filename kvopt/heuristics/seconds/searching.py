"""Runs in seconds by beams, each wider than the one before.

The prices are those of the fluid of the bound, on a machine that is a little slower.  No run fills
its memory all the time, so a run is behind the fluid later on, and the prices of a slower fluid
fit its times better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kvopt.bounds.seconds_evaluation import shares
from kvopt.heuristics.seconds.beams import (
    TimedPlan,
    bytes_of_scene,
    room_for,
    run_alone,
    run_of_beam,
)
from kvopt.heuristics.seconds.passing import LATENCY, TIME, WAITS, Done, TimedScene
from kvopt.heuristics.seconds.servers import server_of
from kvopt.kernels.compiling import working_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.instance import Instance
from kvopt.simulation.clocks import Seconds
from kvopt.simulation.runs import Outcome, PolicyRun

SLOWER = (1.05, 1.03, 1.07, 1.0)
"""How many times as slow the machine of the prices is, in turn."""
STARTS, AHEAD = (2.0, 1.0, 4.0), (1.0, 2.0, 1.0)
"""Requests that start in a stretch, about, and look-ahead beyond it in mean outputs, in turn."""
DRAWS = 16
"""Tries to go on from a scene."""
WIDTHS, WIDEST = (1, 2, 4), 1024
"""Scenes that are kept where there is no limit of time, and at most where there is."""
_GROWTH = 2.0
"""How many times as much effort the next beam takes at most."""
_WORTH_WHILE = 0.5
"""Part of the effort of the last beam below which another one is not tried."""
IDLE_TURNS = 4
"""Beams without improvement after which they end."""
_MOST_ROUNDS = 20_000_000
"""Limit of rounds, which are gone through one by one."""
_LARGEST = 2**61
"""Nanoseconds that loops in 64 bits can count to."""
_ROOM = 2**29
"""Bytes for the scenes of a beam."""


def beams_in_seconds(
    instance: Instance,
    clock: Seconds,
    lines: Sequence[int],
    *,
    time_limit: float = math.inf,
    threads: int = 1,
    seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
) -> PolicyRun | None:
    """Return the best run of wider and wider beams; None where they would be too large.

    Parameters
    ----------
    instance, clock
        The requests, on one worker, and how long rounds last.
    lines
        Positions of the lines of the bound.
    time_limit
        Seconds; without a limit beams remain narrow.
    threads
        Threads that share the scenes of a beam.
    seed
        Of the random generator.
    should_stop
        Asked now and then.
    """
    model, arrivals, count = clock.batch_time, arrivals_ns(instance), len(instance)
    part = shares(instance, model, [model.lines[i] for i in lines], float)
    late = max(arrivals, default=0) + float(part.alone.sum())
    longest = late - min(arrivals, default=0)
    if count < 2 or instance.total_output > _MOST_ROUNDS or late >= _LARGEST:
        return None
    if longest * count >= _LARGEST:
        return None
    start = working_time()
    end = start + time_limit

    def is_over() -> bool:
        return should_stop() or working_time() >= end

    prices = partial(server_of, instance, model, lines, arrivals, part)
    server = prices(SLOWER[0])
    rooms = [room_for(server) for _ in range(threads)]
    scene = run_alone(server, rooms[0])
    best = _as_run(instance, clock, scene, rooms[0].done, start)
    span, batch = int(scene.counts[TIME]) - min(arrivals), float(part.alone.mean())
    widest = max(1, min(WIDEST, _ROOM // bytes_of_scene(server)))
    turn, idle, effort = 0, 0, 0.0
    with ThreadPoolExecutor(threads) as pool:
        while idle < IDLE_TURNS and not is_over():
            began = working_time()
            stretch = max(1, int(STARTS[turn % len(STARTS)] * span / count))
            ahead = int(AHEAD[turn % len(AHEAD)] * batch)
            each = DRAWS * (1 + ahead / stretch)
            width = max(1, min(int(effort / each), widest))
            if time_limit == math.inf:
                width = WIDTHS[turn]
            plan = TimedPlan(width, DRAWS, stretch, ahead, seed + turn)
            server = prices(SLOWER[turn % len(SLOWER)])
            scene = run_of_beam(pool, rooms, server, plan, is_over)
            turn, idle = turn + 1, idle + 1
            if scene.counts[LATENCY] < (best.objective or math.inf):
                best, idle = _as_run(instance, clock, scene, rooms[0].done, start), 0
            if time_limit == math.inf and turn == len(WIDTHS):
                break
            took, left = max(working_time() - began, 1e-3), end - working_time()
            more = min(_GROWTH, 0.9 * left / took)
            if more < _WORTH_WHILE:
                break
            effort = more * width * each
    return best


def _as_run(
    instance: Instance, clock: Seconds, scene: TimedScene, done: Done, start: float
) -> PolicyRun:
    """Return what a scene did as a run, whose times are computed again."""
    rows = done.resumed[: scene.counts[WAITS]].tolist()
    made = PolicyRun(
        instance, "beams", tuple(done.starts.tolist()), (), Outcome.COMPLETED,
        working_time() - start, clock=clock, resumed=dict(rows),
    )  # fmt: skip
    broken = made.violations()
    assert not broken, broken[0]
    assert made.objective == scene.counts[LATENCY], "both compute the same times"
    return made

"""Runs in seconds by beams, each wider than the one before.

The prices are those of the fluid of the bound, on a machine that is a little slower.  No run fills
its memory all the time, so a run is behind the fluid later on, and the prices of a slower fluid
fit its times better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from kvopt.bounds.seconds_evaluation import RequestTimes, request_times
from kvopt.heuristics.layers import BeamPlan, next_effort
from kvopt.heuristics.seconds.beams import (
    bytes_of_node,
    room_for,
    run_alone,
    run_of_beam,
)
from kvopt.heuristics.seconds.dispatch import LATENCY, WAITS, TimedNode
from kvopt.heuristics.seconds.servers import server_of
from kvopt.kernels.budget import Budget
from kvopt.kernels.clock import wall_time
from kvopt.kernels.magnitudes import fits
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.timetable.runs import PolicyRun

SLOWER = (1.05, 1.03, 1.07, 1.0)
"""Factors by which the machine of the prices is slower, in turn."""
STARTS, AHEAD = (2.0, 1.0, 4.0), (1.0, 2.0, 1.0)
"""In turn: requests that start in a layer, and look-ahead in mean times of requests alone."""
DRAWS = 16
"""Expansions of a node."""
WIDEST, WIDEST_WITHOUT_LIMIT = 1024, 8
"""Limits of the width of a beam with and without a time limit."""
_MOST_WITHOUT_LIMIT = 30_000
"""Limit of nodes times requests without a time limit: ten to thirty seconds for a beam."""
IDLE_TURNS = 4
"""The search ends after so many beams without improvement."""
_MOST_ROUNDS = 20_000_000
"""Limit of rounds, which are simulated one by one."""
_ROOM = 2**29
"""Limit of the bytes for the nodes of a beam."""


def beams_in_seconds(
    instance: Instance,
    clock: Seconds,
    lines: Sequence[int],
    *,
    budget: Budget | None = None,
    threads: int = 1,
    seed: int = 0,
) -> PolicyRun | None:
    """Return the best run of wider and wider beams; None if they would be too large.

    Parameters
    ----------
    instance, clock
        The requests, on one worker, and how long rounds last.
    lines
        Positions of the lines of the bound.
    budget
        Time and memory; without a limit of time beams remain narrow.
    threads
        Threads that share the expansions of a beam.
    seed
        Seed of the random generator.
    """
    start, budget = wall_time(), budget or Budget()
    beams = _beams_of(instance, clock, lines, threads, seed, min(budget.memory_left, _ROOM))
    if beams is None:
        return None

    turn, idle, effort, widest = 0, 0, 0.0, beams.widest
    if is_unlimited := budget.left == math.inf:
        widest = max(1, min(WIDEST_WITHOUT_LIMIT, _MOST_WITHOUT_LIMIT // len(instance), widest))
    with ThreadPoolExecutor(threads) as pool:
        while idle < IDLE_TURNS and not budget.over():
            began, before, each = wall_time(), beams.best.objective, beams.effort(turn)
            width = max(1, min(int(effort / each), widest))
            beams.search(pool, turn, width, budget)
            turn, idle = turn + 1, 0 if beams.best.objective != before else idle + 1
            effort = next_effort(width * each, wall_time() - began, budget.left)
            if not effort or (is_unlimited and width == widest):
                break
    return replace(beams.best, wall_seconds=wall_time() - start)


def _beams_of(
    instance: Instance, clock: Seconds, lines: Sequence[int], threads: int, seed: int, room: int
) -> _Beams | None:
    """Return a search over an instance, None if it is too large for the loops."""
    arrivals, count = arrivals_ns(instance), len(instance)
    chosen = [clock.batch_time.lines[line] for line in lines]
    part = request_times(instance, clock.batch_time, chosen, float)
    late = max(arrivals, default=0) + float(part.alone.sum())
    if count < 2 or instance.total_output > _MOST_ROUNDS:
        return None
    if not (fits(late) and fits((late - min(arrivals)) * count)):
        return None
    return _Beams(instance, clock, lines, part, threads, seed, room)


class _Beams:
    """Beams over one instance, and the best run so far: at first that of the first rule."""

    def __init__(
        self,
        instance: Instance,
        clock: Seconds,
        lines: Sequence[int],
        part: RequestTimes,
        threads: int,
        seed: int,
        room: int,
    ) -> None:
        arrivals = arrivals_ns(instance)
        self._instance, self._clock, self._seed = instance, clock, seed
        self._priced = partial(server_of, instance, clock.batch_time, lines, arrivals, part)
        server = self._priced(SLOWER[0])
        self._rooms = [room_for(server) for _ in range(threads)]
        self.widest = max(1, min(WIDEST, room // bytes_of_node(server)))
        self.best = self._as_run(run_alone(server, self._rooms[0]))
        self._between = float(part.takes.mean()) / instance.memory  # start-up on a busy machine
        self._alone = float(part.alone.mean())

    def effort(self, turn: int) -> float:
        """Return about the effort of a node of a beam, in runs."""
        stretch, ahead = self._horizons(turn)
        return DRAWS * (1 + ahead / stretch)

    def search(self, pool: Executor, turn: int, width: int, budget: Budget) -> None:
        """Keep the run of a beam if it is the best one."""
        plan = BeamPlan(width, DRAWS, *self._horizons(turn), self._seed + turn)
        server = self._priced(SLOWER[turn % len(SLOWER)])
        node = run_of_beam(pool, self._rooms, server, plan, budget)
        if node.counts[LATENCY] < (self.best.objective or math.inf):
            self.best = self._as_run(node)

    def _horizons(self, turn: int) -> tuple[int, int]:
        """Return the nanoseconds of a layer and of the look-ahead."""
        stretch = max(1, int(STARTS[turn % len(STARTS)] * self._between))
        return stretch, int(AHEAD[turn % len(AHEAD)] * self._alone)

    def _as_run(self, node: TimedNode) -> PolicyRun:
        """Return the events of a node as a run, whose times are computed again."""
        done = self._rooms[0].done
        resumed = dict(done.resumed[: node.counts[WAITS]].tolist())
        made = PolicyRun(
            self._instance,
            done.starts.tolist(),
            clock=self._clock,
            resumed=[resumed],
            policy="beams",
            wall_seconds=0.0,
        )
        broken = made.violations()
        assert not broken, broken[0]
        assert made.objective == node.counts[LATENCY], "both compute the same times"
        return made

"""Runs in seconds by beams, each wider than the one before: nodes of a server advance together.

As in rounds (`kvopt.heuristics.trace_beams`), with prices of machine time instead of memory, and up
to the same time instead of the same round: rounds of two runs differ in length.

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
from typing import Any

import numpy as np

from kvopt.bounds.fluid import machine_prices
from kvopt.bounds.seconds_evaluation import RequestTimes, request_times
from kvopt.heuristics.attaining.serving import timed_of
from kvopt.heuristics.layers import (
    Beam,
    BeamLoops,
    BeamPace,
    BeamPlan,
    Operations,
    beam_of,
    go_again,
    run_beam,
    tries_of,
)
from kvopt.heuristics.seconds.timed_nodes import (
    ACTIVE,
    BASE,
    COME,
    LATENCY,
    WAITING,
    WAITS,
    Done,
    NodeTimes,
    Room,
    Rules,
    TimedNode,
    TimedServer,
    copy_timed,
    cost_of_line,
    empty_nodes,
    find_cheapest,
    run_on,
)
from kvopt.kernels.budget import Budget, wall_time
from kvopt.kernels.compiled import compiled
from kvopt.kernels.magnitudes import NEVER, fits
from kvopt.kernels.random_numbers import State, normal, uniform
from kvopt.problem.arrays import Flags, Floats, Integers, columns_of
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.instance import Instance
from kvopt.timetable.policy_run import PolicyRun

_NEAR = 0.3
"""Deviation of the logarithm of a part of a rule that is near the last one."""
SLOWER = (1.05, 1.03, 1.07, 1.0)
"""Factors by which the machine of the prices is slower, in turn."""
STARTS, AHEAD = (2.0, 1.0, 4.0), (1.0, 2.0, 1.0)
"""In turn: requests that start in a layer, and look-ahead in mean times of requests alone."""
DRAWS = 16
"""Expansions of a node."""
WIDEST, WIDEST_WITHOUT_LIMIT = 1024, 8
"""Limits of the width of a beam with and without a time limit."""
_LARGEST_WITHOUT_LIMIT = 30_000
"""Limit of nodes times requests without a time limit: ten to thirty seconds for a beam."""
IDLE_TURNS = 4
"""The search ends after so many beams without improvement."""
_LARGEST_ROUNDS = 20_000_000
"""Limit of rounds, which are simulated one by one."""
_TIMES = 16_384
"""Number of times with stored prices."""
_ROOM = 2**29
"""Limit of the bytes for the nodes of a beam."""
_WIDEST, _FULLEST = 80.0, 100.0
"""Limits of the draws: window in requests, and preference for long prompts."""
_USUAL = (20.0, 50.0, 1.0)
"""Parts of the first `Rules`."""
_BLURRED = 200
"""Requests in line whose keys are blurred."""


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
    start, budget, arrivals = wall_time(), budget or Budget(), arrivals_ns(instance)
    chosen = [clock.batch_time.lines[line] for line in lines]
    part = request_times(instance, clock.batch_time, chosen, float)
    late, count = max(arrivals, default=0) + float(part.alone.sum()), len(instance)
    if count < 2 or instance.total_output > _LARGEST_ROUNDS:
        return None
    if not (fits(late) and fits((late - min(arrivals)) * count)):
        return None
    room = min(budget.memory_left, _ROOM)
    beams = _Beams(instance, clock, lines, part, threads, seed, room)

    turn, idle, widest = 0, 0, beams.widest
    if is_unlimited := budget.left == math.inf:
        widest = max(1, min(WIDEST_WITHOUT_LIMIT, _LARGEST_WITHOUT_LIMIT // count, widest))
    with ThreadPoolExecutor(threads) as pool:
        while idle < IDLE_TURNS and not budget.over():
            before = beams.best.objective
            width, is_useful = beams.search(pool, turn, widest, budget)
            turn, idle = turn + 1, 0 if beams.best.objective != before else idle + 1
            if not is_useful or (is_unlimited and width == widest):
                break
    return replace(beams.best, wall_seconds=wall_time() - start)


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
        self._instance, self._clock, self._seed = instance, clock, seed
        self._lines, self._shares, self._pace = lines, part, BeamPace()
        server, count = self._priced(0), len(instance)
        self._rooms = [_room_for(server) for _ in range(threads)]
        in_both_layers = 16 * (count + 3 * _active_limit(server))  # bytes of a node
        self.widest = max(1, min(WIDEST, room // in_both_layers))
        first = _made_again(server, BeamPlan(1, 1, NEVER, 0, 0), self._rooms[0], [])
        self.best = self._as_run(first)
        self._between = float(part.takes.mean()) / instance.memory  # start-up on a busy machine
        self._alone = float(part.alone.mean())

    def search(self, pool: Executor, turn: int, widest: int, budget: Budget) -> tuple[int, bool]:
        """Keep the run of a beam if it is the best one; return its width, and whether to go on."""
        began, (interval, ahead) = wall_time(), self._horizons(turn)
        effort = 1 + ahead / interval
        plan = BeamPlan(1, DRAWS, interval, ahead, self._seed + turn, effort=effort)
        plan = plan._replace(width=self._pace.width(plan, widest))
        node = run_of_beam(pool, self._rooms, self._priced(turn), plan, budget, self._pace)
        if node.counts[LATENCY] < (self.best.objective or math.inf):
            self.best = self._as_run(node)
        return plan.width, self._pace.go_on(plan, wall_time() - began, budget.left)

    def _priced(self, turn: int) -> TimedServer:
        """Return the server as arrays, with the prices of the fluid on a slower machine."""
        instance, model, part = self._instance, self._clock.batch_time, self._shares
        _, prompts, outputs = columns_of(instance)
        arrivals = arrivals_ns(instance)
        moments = np.array(arrivals, dtype=np.int64)
        timed = timed_of(instance.memory, model, moments, prompts, outputs)
        takes: Floats = part.takes / instance.memory
        line = np.argsort(takes, kind="stable")
        # Alone, a request completes delta_i after its mean service (docs/theory/seconds.md).
        waits: Floats = part.alone - part.delays / (2.0 * part.takes)
        chosen = [model.lines[i] for i in self._lines]
        fixed, decode = (max(x.round_ns + x.token_ns * b for x in chosen) for b in (0, 1))
        tokens = [x.round_ns + x.token_ns * (timed.prompts + 1) for x in chosen]
        works: Floats = np.max(tokens, axis=0) - float(fixed) + model.prompt_ns * timed.prompts
        slower = SLOWER[turn % len(SLOWER)]
        grid, prices = machine_prices(arrivals, slower * takes, _TIMES)
        begin, step = min(arrivals), float(grid[1] - grid[0])
        costs = np.zeros(len(line)), np.zeros(len(line))
        rest = float(fixed), float(decode - fixed)
        times = NodeTimes(prices, begin, step, takes, works, waits, *costs, *rest)
        find_cheapest(timed, times)
        return TimedServer(timed, times, line, line.argsort(), np.log(takes))

    def _horizons(self, turn: int) -> tuple[int, int]:
        """Return the nanoseconds of a layer and of the look-ahead."""
        stretch = max(1, int(STARTS[turn % len(STARTS)] * self._between))
        return stretch, int(AHEAD[turn % len(AHEAD)] * self._alone)

    def _as_run(self, node: TimedNode) -> PolicyRun:
        """Return the events of a node as a run, whose times are computed again."""
        done = self._rooms[0].done
        resumed = dict(done.resumed[: node.counts[WAITS]].tolist())
        work: dict[str, Any] = {"starts": done.starts.tolist(), "resumed": [resumed]}
        run = PolicyRun(self._instance, clock=self._clock, policy="beams", wall_seconds=0.0, **work)
        assert not (broken := run.violations()), broken[0]
        assert run.objective == node.counts[LATENCY], "both compute the same times"
        return run


# ---- one beam -----------------------------------------------------------------------------


def run_of_beam(
    pool: Executor,
    rooms: list[Room],
    server: TimedServer,
    plan: BeamPlan,
    budget: Budget,
    pace: BeamPace,
) -> TimedNode:
    """Return the end of the best run of a beam; its events are in the first work array.

    After the time limit the cheapest node is completed without other rules.
    """
    beam = _beam_for(server, plan)
    course, ended = run_beam(pool, rooms, beam, _work_on(server, plan), plan, budget, pace)
    if ended is None:
        return _made_again(server, plan, rooms[0], course.past(0))  # the first is the cheapest
    latencies = ended.nodes.counts[: len(course.chosen[-1]), LATENCY]
    row = int(np.argmin(latencies))
    node = _made_again(server, plan, rooms[0], course.past(row))
    assert node.counts[LATENCY] == latencies[row], "the same tries"
    return node


def _active_limit(server: TimedServer) -> int:
    """Return the length of rows for active requests."""
    timed = server.timed
    return int(min(len(timed.arrivals), timed.memory // (timed.prompts.min() + 1))) + 1


def _room_for(server: TimedServer) -> Room:
    """Return work arrays of one expansion."""
    count = len(server.timed.arrivals)
    nodes = empty_nodes(1, count, _active_limit(server))
    done = Done(np.zeros(count, dtype=np.int64), np.zeros((count + 1, 2), dtype=np.int64))
    return Room(nodes, TimedNode(*(field[0] for field in nodes)), done, np.zeros(count))


def _beam_for(server: TimedServer, plan: BeamPlan) -> Beam:
    """Return a beam of one node, before any request has arrived."""
    size = plan.width, len(server.timed.arrivals), _active_limit(server)
    return beam_of(empty_nodes(*size), empty_nodes(*size), plan, _USUAL)


def _work_on(server: TimedServer, plan: BeamPlan) -> BeamLoops:
    """Return the compiled loops of a beam, and the arrivals."""
    return BeamLoops(np.sort(server.timed.arrivals), _progress, partial(_make_tries, server, plan))


def _progress(nodes: TimedNode) -> tuple[Flags, Integers]:
    """Return whether each node has work, and its number of arrived requests."""
    counts = nodes.counts
    return counts[:, ACTIVE] + counts[:, WAITING] > 0, counts[:, COME]


def _made_again(
    server: TimedServer, plan: BeamPlan, room: Room, past: Sequence[tuple[int, int]]
) -> TimedNode:
    """Return the end of a run of a beam that is run again, with its events in a work array."""
    beam = _beam_for(server, plan._replace(width=1, draws=1))
    go_again(beam, _work_on(server, plan), past, plan.interval, room)
    return TimedNode(*(field[0] for field in beam.here.nodes))


@compiled
def _drawn(
    server: TimedServer,  # noqa: ARG001
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
        window, fill = (
            usual[0] * np.exp(_NEAR * normal(rng)),
            usual[1] * np.exp(_NEAR * normal(rng)),
        )
    else:
        window, fill = 2.0 * (_WIDEST / 2.0) ** uniform(rng), _FULLEST * uniform(rng) ** 2
    together = usual[2] if uniform(rng) < 0.7 else float(int(2.0 ** (5.0 * uniform(rng))))
    blur = 0.0 if uniform(rng) < 0.2 else (1.0 + fill / 30.0) * uniform(rng) ** 2
    for place in range(min(node.counts[WAITING], _BLURRED)):
        room.noise[node.queue[place]] = blur * normal(rng)
    return Rules(max(1.0, float(int(window))), fill, together)


_make_tries = tries_of(
    "tries_in_seconds", Operations(copy_timed, _drawn, run_on, cost_of_line, BASE, False)
)

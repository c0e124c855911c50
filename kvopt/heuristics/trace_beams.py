"""Beams over a whole trace, each wider than the one before.

They choose an order of thousands of waiting requests, by many nodes at a time
(`kvopt.heuristics.beams`).
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np

from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.shares import shared_out
from kvopt.heuristics.beams import (
    beam_from,
    between_starts,
    drawn_trace,
    drawn_weight,
    work_on,
)
from kvopt.heuristics.dispatch import Trace, room_for
from kvopt.heuristics.layers import BeamPlan, go_again, next_effort, run_beam
from kvopt.heuristics.nodes import Made, Requests, requests_of
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.kernels.clock import wall_time

_DRAWS, _STRETCHES, _AHEAD = (8, 20), (6.0, 14.0), (2.5, 5.0)
"""Ranges: expansions of a node, requests started in a layer at full memory, and look-ahead in mean
outputs.  Results of beams differ by as much as a doubled width adds."""
_COPY = 8
"""Fixed effort of an expansion, in started requests."""
_BYTES = 100
"""Bytes that a node takes for each request."""


def search_traces(search: Search, budget: Budget, seed: int = 0) -> None:
    """Improve the schedule of a search by wider and wider beams, while time and memory last."""
    instance = shared_out(search.instance)
    if search.schedule is None or len(instance) < 2:
        return
    if fluid_end(instance.pooled()) > search.limits.params.lagrangian_longest:
        return
    (requests, keys), effort = requests_of(search.instance), 0.0
    widest = budget.memory_left // (_BYTES * len(instance))
    widest = min(search.limits.params.improve_widest_beam, widest)
    random = np.random.default_rng(seed)
    with ThreadPoolExecutor(search.limits.threads) as pool:
        while widest and not budget.over():
            began = wall_time()
            trace, plan = drawn_trace(search, requests, keys, random), _plan(requests, random)
            each = _effort(requests, plan)
            width = min(max(1, int(effort / each)), widest)
            plan = plan._replace(width=width)
            made = started_by_beam(pool, search.limits.threads, trace, plan, budget)
            starts, workers = made.starts.tolist(), made.workers.tolist()
            search.offer_starts(starts, "beams over the whole trace", workers)
            effort = next_effort(width * each, wall_time() - began, budget.left)
            if width == widest or not effort:
                return


def _plan(requests: Requests, random: np.random.Generator) -> BeamPlan:
    """Draw parameters of a search."""
    stretch = max(1, int(between_starts(requests) * random.uniform(*_STRETCHES)))
    ahead = int(requests.outputs.mean() * random.uniform(*_AHEAD)) + 1
    draws, seed = random.integers(*_DRAWS, endpoint=True), random.integers(2**30)
    return BeamPlan(1, int(draws), stretch, ahead, int(seed), drawn_weight(random))


def _effort(requests: Requests, plan: BeamPlan) -> float:
    """Return about the effort of a node, in expansions of a layer."""
    copy = _COPY * between_starts(requests)
    return plan.draws * (copy + plan.stretch + plan.ahead) / plan.stretch


def started_by_beam(
    pool: Executor, threads: int, trace: Trace, plan: BeamPlan, budget: Budget
) -> Made:
    """Start all requests; after the time limit the rest is started without other rules."""
    beam, work = beam_from(trace.requests, plan), work_on(trace, plan)
    rooms = [room_for(trace.requests) for _ in range(threads)]
    course, ended = run_beam(pool, rooms, beam, work, plan, budget)
    row = 0  # the first is the cheapest
    if ended is not None:
        row = int(np.argmin(beam.kept.costs[: len(course.chosen[-1])]))
    one = plan._replace(width=1, draws=1)
    again = beam_from(trace.requests, one)
    go_again(again, work, course.past(row), plan.stretch, rooms[0])
    return rooms[0].made

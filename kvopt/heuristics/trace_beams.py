"""Beams over a whole trace: nodes advance together by an interval, and the cheapest are kept.

The total latency of a schedule is the bound of any prices, plus the reduced costs of its starts,
plus the price of the memory it leaves empty.  A prefix of a schedule determines its part of these
terms.  So each node is expanded by many dispatch rules (`kvopt.heuristics.patient_dispatch`), over
an interval and a look-ahead of some rounds.  Many nodes are kept at the same round, so that later
intervals can decide between them.  Nodes are compared by reduced costs of their starts so far, the
price of empty memory, and the loss of waiting requests by now.

Each beam is wider than the one before.  They choose an order of thousands of waiting requests.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

import numpy as np

from kvopt.bounds.fluid import fluid_end, fluid_prices
from kvopt.bounds.prefix_shares import shared_out
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
from kvopt.heuristics.nodes import (
    COME,
    FRONT,
    STATE,
    STOP,
    Decisions,
    JobArrays,
    Node,
    copy_node,
    empty_nodes,
    job_arrays,
)
from kvopt.heuristics.patient_dispatch import (
    USUAL,
    DispatchTrace,
    advance,
    cost_of_waiting,
    draw_rule,
    workspace_for,
)
from kvopt.heuristics.reduced_costs import start_prices
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget, wall_time
from kvopt.problem.arrays import Flags, Floats, Integers

_FILLED = (0.85, 1.08)
"""Factor on the share of the memory that schedules fill, about: a range."""
_WEIGHTS = (1.0, 5.0)
"""Weight of the loss of waiting requests: a range.

An expansion is too short to show how long a request waits that needs others to make room.
"""
_DRAWS, _INTERVALS, _AHEAD = (8, 20), (6.0, 14.0), (2.5, 5.0)
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
    (jobs, keys), pace = job_arrays(search.instance), BeamPace()
    widest = budget.memory_left // (_BYTES * len(instance))
    widest = min(search.limits.params.improve_widest_beam, widest)
    random = np.random.default_rng(seed)
    with ThreadPoolExecutor(search.limits.threads) as pool:
        while widest and not budget.over():
            began = wall_time()
            trace, plan = drawn_trace(search, jobs, keys, random), _plan(jobs, random)
            plan = plan._replace(width=pace.width(plan, widest))
            started = started_by_beam(pool, search.limits.threads, trace, plan, budget, pace)
            starts, workers = started.starts.tolist(), started.workers.tolist()
            search.offer_starts(starts, "beams over the whole trace", workers)
            is_useful = pace.go_on(plan, wall_time() - began, budget.left)
            if plan.width == widest or not is_useful:
                return


def _plan(jobs: JobArrays, random: np.random.Generator) -> BeamPlan:
    """Draw parameters of a search."""
    interval = max(1, int(between_starts(jobs) * random.uniform(*_INTERVALS)))
    ahead = int(jobs.outputs.mean() * random.uniform(*_AHEAD)) + 1
    draws, seed = random.integers(*_DRAWS, endpoint=True), random.integers(2**30)
    weight = _WEIGHTS[0] * (_WEIGHTS[1] / _WEIGHTS[0]) ** random.uniform()
    effort = (_COPY * between_starts(jobs) + interval + ahead) / interval
    return BeamPlan(1, int(draws), interval, ahead, int(seed), float(weight), effort)


def started_by_beam(
    pool: Executor,
    threads: int,
    trace: DispatchTrace,
    plan: BeamPlan,
    budget: Budget,
    pace: BeamPace,
) -> Decisions:
    """Start all requests; after the time limit the rest is started without other rules."""
    beam, loops = beam_from(trace.jobs, plan), loops_on(trace, plan)
    workspaces = [workspace_for(trace.jobs) for _ in range(threads)]
    course, ended = run_beam(pool, workspaces, beam, loops, plan, budget, pace)
    row = 0  # the first is the cheapest
    if ended is not None:
        row = int(np.argmin(ended.costs[: len(course.chosen[-1])]))
    again = beam_from(trace.jobs, plan._replace(width=1, draws=1))
    go_again(again, loops, course.past(row), plan.interval, workspaces[0])
    return workspaces[0].decisions


def drawn_trace(
    search: Search, jobs: JobArrays, keys: Floats, random: np.random.Generator
) -> DispatchTrace:
    """Return a line with prices of a fluid that fills as much of the memory as schedules may.

    With less than all memory these prices last as long as requests wait in schedules, unlike those
    of a bound.
    """
    share = min(1.0, filled_share(jobs) * random.uniform(*_FILLED))
    plain = shared_out(search.instance)
    prices = fluid_prices(plain.pooled(), share)
    return DispatchTrace(jobs, start_prices(plain, prices, search.limits.threads), keys)


def filled_share(jobs: JobArrays) -> float:
    """Return about the share of memory that is filled if half of the next request does not fit."""
    peak = np.average(jobs.prompts + jobs.outputs, weights=_volumes(jobs))
    return float(1.0 - peak / jobs.memory / 2)


def between_starts(jobs: JobArrays) -> float:
    """Return the mean rounds from start to start at full memory."""
    return float(_volumes(jobs).mean()) / (jobs.memory * jobs.workers)


def _volumes(jobs: JobArrays) -> Floats:
    """Return the tokens that each request holds, added up over its rounds."""
    volumes: Floats = jobs.outputs * (2 * jobs.prompts + jobs.outputs + 1) / 2
    return volumes


def beam_from(jobs: JobArrays, plan: BeamPlan) -> Beam:
    """Return a beam that begins with empty caches."""
    return beam_of(empty_nodes(jobs, plan.width), empty_nodes(jobs, plan.width), plan, USUAL)


def loops_on(trace: DispatchTrace, plan: BeamPlan) -> BeamLoops:
    """Return the compiled loops of a beam, and the arrivals."""
    return BeamLoops(np.sort(trace.jobs.arrivals), _progress, partial(make_tries, trace, plan))


def _progress(nodes: Node) -> tuple[Flags, Integers]:
    """Return whether each node has work, and its number of arrived requests."""
    waiting = nodes.counts[:, FRONT] < nodes.counts[:, STOP]
    return waiting | nodes.active.any(axis=1), nodes.counts[:, COME]


make_tries = tries_of(
    "tries_in_rounds",
    Operations(copy_node, draw_rule, advance, cost_of_waiting, STATE, True),
)

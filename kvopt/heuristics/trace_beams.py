"""Beams over a whole trace: nodes advance together by an interval, and the cheapest are kept.

The total latency of a schedule is the bound of any prices, plus the reduced costs of its starts,
plus the price of the memory it leaves empty.  A prefix of a schedule determines its part of these
terms.  So each node is expanded by many dispatch rules (`kvopt.heuristics.rules`), over an interval
and a look-ahead of some rounds.  Many nodes are kept at the same round, so that later intervals can
decide between them.  Nodes are compared by reduced costs of their starts so far, the price of empty
memory, and the loss of waiting requests by now.

Each beam is wider than the one before.  They choose an order of thousands of waiting requests.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

import numpy as np

from kvopt.bounds.fluid import fluid_end, fluid_prices
from kvopt.bounds.prefix_shares import shared_out
from kvopt.heuristics.dispatch import Trace, advance, cost_of_waiting, room_for
from kvopt.heuristics.layers import (
    Beam,
    BeamPlan,
    Operations,
    Work,
    go_again,
    next_effort,
    one_kept,
    run_beam,
    tries_of,
)
from kvopt.heuristics.nodes import (
    COME,
    FRONT,
    STATE,
    STOP,
    Made,
    Node,
    Requests,
    copy_node,
    empty_nodes,
    node_of,
    requests_of,
)
from kvopt.heuristics.reduced_costs import worth_of
from kvopt.heuristics.rules import USUAL, arrange
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.kernels.clock import wall_time
from kvopt.problem.arrays import Flags, Floats, Integers

_FILLED = (0.85, 1.08)
"""Factor on the share of the memory that schedules fill, about: a range."""
_WEIGHTS = (1.0, 5.0)
"""Weight of the loss of waiting requests: a range.

An expansion is too short to show how long a request waits that needs others to make room.
"""
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
    weight = _WEIGHTS[0] * (_WEIGHTS[1] / _WEIGHTS[0]) ** random.uniform()
    return BeamPlan(1, int(draws), stretch, ahead, int(seed), float(weight))


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


def drawn_trace(
    search: Search, requests: Requests, keys: Floats, random: np.random.Generator
) -> Trace:
    """Return a line with prices of a fluid that fills as much of the memory as schedules may.

    With less than all memory these prices last as long as requests wait in schedules, unlike those
    of a bound.
    """
    share = min(1.0, filled_share(requests) * random.uniform(*_FILLED))
    plain = shared_out(search.instance)
    prices = fluid_prices(plain.pooled(), share)
    return Trace(requests, worth_of(plain, prices, search.limits.threads), keys)


def filled_share(requests: Requests) -> float:
    """Return about the share of memory that is filled if half of the next request does not fit."""
    volumes = requests.outputs * (2 * requests.prompts + requests.outputs + 1) / 2
    peak = np.average(requests.prompts + requests.outputs, weights=volumes)
    return float(1.0 - peak / requests.memory / 2)


def between_starts(requests: Requests) -> float:
    """Return the mean rounds from start to start at full memory."""
    held = requests.outputs * (2 * requests.prompts + requests.outputs + 1) / 2
    return float(held.mean()) / (requests.memory * requests.workers)


def beam_from(requests: Requests, plan: BeamPlan) -> Beam:
    """Return a beam that begins with empty caches."""
    here, there = (empty_nodes(requests, plan.width) for _ in range(2))
    return Beam(here, there, one_kept(plan, USUAL))


def work_on(trace: Trace, plan: BeamPlan) -> Work:
    """Return the compiled loops of a beam, and the arrivals."""
    return Work(np.sort(trace.requests.arrivals), _progress, partial(make_tries, trace, plan))


def _progress(nodes: Node) -> tuple[Flags, Integers]:
    """Return whether each node has work, and its number of arrived requests."""
    waiting = nodes.counts[:, FRONT] < nodes.counts[:, STOP]
    return waiting | nodes.active.any(axis=1), nodes.counts[:, COME]


make_tries = tries_of(
    "tries_in_rounds",
    Operations(node_of, copy_node, arrange, advance, cost_of_waiting, STATE, True),
)

"""Beam search over runs: nodes advance together by an interval of time, and the cheapest are kept.

The total latency of a schedule is the bound of any prices, plus the reduced costs of its starts,
plus the price of the memory it leaves empty.  A prefix of a schedule determines its part of these
terms.  So each node is expanded by many dispatch rules (`kvopt.heuristics.rules`), over an interval
and a look-ahead of some rounds.  Many nodes are kept at the same round, so that later intervals can
decide between them.  Nodes are compared by reduced costs of their starts so far, the price of empty
memory, and the loss of waiting requests by now.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kvopt.bounds.fluid import fluid_prices
from kvopt.bounds.shares import shared_out
from kvopt.heuristics.dispatch import Trace, advance, cost_of_waiting
from kvopt.heuristics.layers import Beam, BeamPlan, Operations, Work, one_kept, tries_of
from kvopt.heuristics.nodes import (
    COME,
    FRONT,
    STATE,
    STOP,
    Node,
    Requests,
    copy_node,
    empty_nodes,
)
from kvopt.heuristics.reduced_costs import worth_of
from kvopt.heuristics.rules import USUAL, arrange
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Flags, Floats, Integers

_FILLED = (0.85, 1.08)
"""Factor on the share of the memory that schedules fill, about: a range."""
_WEIGHTS = (1.0, 5.0)
"""Weight of the loss of waiting requests: a range.

An expansion is too short to show how long a request waits that needs others to make room.
"""


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


def drawn_weight(random: np.random.Generator) -> float:
    """Draw a weight of the loss of waiting requests."""
    least, most = _WEIGHTS
    return float(least * (most / least) ** random.uniform())


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


@compiled
def _row(nodes: Node, row: int) -> Node:
    """Return one of many nodes, which share their arrays."""
    return Node(
        nodes.counts[row],
        nodes.active[row],
        nodes.bases[row],
        nodes.queue[row],
        nodes.passed[row],
        nodes.ends[row],
        nodes.offsets[row],
        nodes.loads[row],
        nodes.until[row],
    )


make_tries = tries_of(
    "tries_in_rounds",
    Operations(_row, copy_node, arrange, advance, cost_of_waiting, STATE, True),
)

"""Beam search over runs: nodes of one window of time advance together, the cheapest stay.

The total latency of a schedule is the bound of any prices, plus the reduced costs of its starts,
plus the price of the memory it leaves empty.  All of that is known as time goes on.  So a
schedule can be judged by its first rounds: each scene is run on in many ways
(`kvopt.heuristics.rules`), a stretch and some rounds ahead.  As many scenes are kept at the same
round, a stretch is judged by what it really led to.  Scenes are compared by reduced costs of their
starts so far, the price of memory left empty, and what waiting requests have lost by now.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kvopt.bounds.coarse import CoarsePrices
from kvopt.bounds.fluid import fluid_prices
from kvopt.bounds.shares import shared_out
from kvopt.heuristics.dispatch import Trace, advance, cost_of_waiting
from kvopt.heuristics.layers import Beam, BeamPlan, Operations, Work, one_kept, tries_of
from kvopt.heuristics.nodes import (
    COME,
    FRONT,
    STATE,
    STOP,
    Crowd,
    Scene,
    copy_scene,
    crowd_of,
    empty_scenes,
)
from kvopt.heuristics.reduced_costs import worth_of
from kvopt.heuristics.rules import USUAL, arrange
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import SlotPrices
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Flags, Floats, Integers

_FILLED = (0.85, 1.08)
"""Factor on the share of the memory that schedules fill, about: a range."""
_WEIGHTS = (1.0, 5.0)
"""Weight of what waiting requests have lost: a range.

A try ends too soon to see how long one will wait that only fits where room is made for it.
"""


def line_of(search: Search) -> tuple[Crowd, Floats]:
    """Return the requests of a search in their line, and its keys.

    They line up by volume, or where slots have prices in the order in which these start them.
    """
    instance, (crowd, keys) = shared_out(search.instance), crowd_of(search.instance)
    proof = None if search.checked is None else search.checked.proof
    if isinstance(proof, SlotPrices):
        starts = CoarsePrices.of(proof, instance).likely_starts(instance)
        return _lined_up(crowd, keys, starts)
    return crowd, keys


def drawn_trace(search: Search, crowd: Crowd, keys: Floats, random: np.random.Generator) -> Trace:
    """Return a line with prices of a fluid that fills as much of the memory as schedules may.

    With less than all of it they last as long as requests really wait, as those of a bound do not.
    """
    share = min(1.0, filled_share(crowd) * random.uniform(*_FILLED))
    plain = shared_out(search.instance)
    prices = fluid_prices(plain.pooled(), share)
    return Trace(crowd, worth_of(plain, prices, search.threads), keys)


def filled_share(crowd: Crowd) -> float:
    """Return about what share of the memory is filled if half of the next request does not fit."""
    volumes = crowd.outputs * (2 * crowd.prompts + crowd.outputs + 1) / 2
    peak = np.average(crowd.prompts + crowd.outputs, weights=volumes)
    return float(1.0 - peak / crowd.memory / 2)


def _lined_up(crowd: Crowd, keys: Floats, starts: Floats) -> tuple[Crowd, Floats]:
    """Line requests up by starts; they exchange their keys, so that as many are about as near."""
    line = np.lexsort((keys, starts))
    exchanged = np.empty_like(keys)
    exchanged[line] = np.sort(keys)
    coming = np.argsort(crowd.arrivals[line], kind="stable")
    return crowd._replace(line=line, coming=coming), exchanged


def between_starts(crowd: Crowd) -> float:
    """Return the mean rounds from start to start at full memory."""
    held = crowd.outputs * (2 * crowd.prompts + crowd.outputs + 1) / 2
    return float(held.mean()) / (crowd.memory * crowd.workers)


def drawn_weight(random: np.random.Generator) -> float:
    """Draw a weight of what waiting requests have lost."""
    least, most = _WEIGHTS
    return float(least * (most / least) ** random.uniform())


def beam_from(crowd: Crowd, plan: BeamPlan) -> Beam:
    """Return a beam that begins with empty caches."""
    here, there = (empty_scenes(crowd, plan.width) for _ in range(2))
    return Beam(here, there, one_kept(plan, USUAL))


def work_on(trace: Trace, plan: BeamPlan) -> Work:
    """Return the compiled loops of a beam, and the arrivals."""
    return Work(np.sort(trace.crowd.arrivals), _progress, partial(make_tries, trace, plan))


def _progress(scenes: Scene) -> tuple[Flags, Integers]:
    """Return whether each node has work, and its number of arrived requests."""
    waiting = scenes.counts[:, FRONT] < scenes.counts[:, STOP]
    return waiting | scenes.active.any(axis=1), scenes.counts[:, COME]


@compiled
def _row(scenes: Scene, row: int) -> Scene:
    """Return one of many nodes, which share their arrays."""
    return Scene(
        scenes.counts[row],
        scenes.active[row],
        scenes.bases[row],
        scenes.queue[row],
        scenes.passed[row],
        scenes.ends[row],
        scenes.offsets[row],
        scenes.loads[row],
        scenes.until[row],
    )


make_tries = tries_of(
    "tries_in_rounds",
    Operations(_row, copy_scene, arrange, advance, cost_of_waiting, STATE, True),
)

"""A beam of labels guided by prices of states: its parameters, its arrays, and its first label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kvopt.heuristics.state_beams.guides import Guide, fill_rows
from kvopt.heuristics.state_beams.labels import (
    ACTIVE,
    BEGAN,
    HASH,
    LEFT,
    SPENT,
    TRAIL,
    Labels,
    add_life,
    room_for,
)
from kvopt.heuristics.state_beams.rolls import Candidates, Work, no_candidates
from kvopt.kernels.compiled import steering
from kvopt.kernels.magnitudes import NEVER
from kvopt.kernels.random_numbers import State
from kvopt.problem.arrays import Floats, Integers

STEPS = 6
"""Most requests that a label may start in one round."""
_CHOICES = 256
"""Possible starts from which the best are chosen, for each label of the width."""
_TRAIL = 1 << 14
"""First length of the trail of starts."""

ALIVE, NOW, TRAILED, BEST, BEST_TRAIL = range(5)
"""Entries of `Beam.counts`."""


class Plan(NamedTuple):
    """How to search.

    Parameters
    ----------
    width, children
        Labels that are kept, and children of one label in one step.
    horizon
        Rounds of the greedy runs.
    listed, dearest
        Most candidates, and the largest extra cost of a start now over a later one.
    urgency
        Weight of the cost of waiting: above 1, since it often exceeds the least cost.
    noise
        Deviation of random numbers that are added to scores, times the largest sum of the time.
    depth
        Rounds over which the greedy runs compare the value of a start.
    """

    width: int
    children: int
    horizon: int
    listed: int
    dearest: float
    urgency: float
    noise: float
    depth: int


class Beam(NamedTuple):
    """Labels of a round, and arrays for the next.

    Parameters
    ----------
    kept, opened
        Labels at the begin and at the end of a round.
    rows, filled
        Prices of states in the next rounds, and the last time that has them.
    candidates, work
        Candidates of the round, and work arrays of a greedy run.
    parents, places, scores
        For children the label, the place of the request in the list, and the estimated cost.
    trail
        For each start the one before it, the request and the round.
    table
        Hashes of kept labels.
    salts
        Two random numbers of each request, for hashes.
    counts
        Number of labels, round, starts in the trail, and the least sum of starts with its trail.
    random
        State of the random numbers.
    """

    kept: Labels
    opened: Labels
    rows: Floats
    filled: Integers
    candidates: Candidates
    work: Work
    parents: Integers
    places: Integers
    scores: Floats
    trail: Integers
    table: Integers
    salts: Integers
    counts: Integers
    random: State


def beam_from(guide: Guide, plan: Plan, starts: Integers, now: int, seed: int) -> Beam:
    """Return a beam from the starts before a round; waiting requests are -1."""
    count, width = len(starts), plan.width
    ahead = plan.horizon + int(guide.outputs.max()) + 2
    opened = room_for(width * (STEPS + 1), guide, plan.horizon)
    rows = np.zeros((plan.horizon + 2, guide.prices.shape[1]))
    work = Work(
        np.zeros(ahead, dtype=np.int64),
        np.zeros(plan.horizon + 1),
        np.zeros(-(-count // 64), dtype=np.uint64),
        np.zeros(int(guide.outputs.max()) + 1, dtype=np.int64),
    )
    children = width * _CHOICES
    beam = Beam(
        kept=room_for(width, guide, plan.horizon),
        opened=opened,
        rows=rows,
        filled=np.array([now], dtype=np.int64),
        candidates=no_candidates(count),
        work=work,
        parents=np.zeros(children, dtype=np.int64),
        places=np.zeros(children, dtype=np.int64),
        scores=np.zeros(children),
        trail=np.zeros((3, max(_TRAIL, 4 * len(opened.floats))), dtype=np.int64),
        table=np.zeros(8 * len(opened.floats), dtype=np.int64),
        salts=np.random.default_rng(seed).integers(1, 2**62, (2, count), dtype=np.int64),
        counts=np.array([1, now, 0, NEVER, -1], dtype=np.int64),
        random=np.array([seed], dtype=np.int64),
    )
    _begin(guide, beam, starts)
    return beam


def with_room(beam: Beam) -> Beam:
    """Return a beam with twice the trail."""
    return beam._replace(trail=np.concatenate((beam.trail, np.zeros_like(beam.trail)), axis=1))


def starts_of(beam: Beam, starts: Integers) -> Integers:
    """Return the starts of the best complete label, with the given starts of the beam."""
    found = starts.copy()
    at = int(beam.counts[BEST_TRAIL])
    while at >= 0:
        found[beam.trail[1, at]] = beam.trail[2, at]
        at = int(beam.trail[0, at])
    return found


@steering
def _begin(guide: Guide, beam: Beam, starts: Integers) -> None:
    """Fill in the first label."""
    kept, now = beam.kept, beam.counts[NOW]
    fill_rows(guide, beam.rows, beam.filled, now + kept.values.shape[1] - 1)
    kept.integers[0, TRAIL], kept.floats[0, SPENT] = -1, 0.0
    for i in range(len(starts)):
        if starts[i] < 0:
            kept.waiting[0, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            kept.integers[0, LEFT] += 1
            kept.integers[0, HASH] += beam.salts[0, i]
        else:
            kept.integers[0, BEGAN] += starts[i]
        end = starts[i] + guide.outputs[i]
        if starts[i] >= 0 and end > now:
            x = kept.integers[0, ACTIVE]
            kept.members[0, x], kept.ends[0, x] = i, end
            kept.integers[0, ACTIVE] += 1
            kept.integers[0, HASH] += beam.salts[1, i] * end
            add_life(guide, beam.rows, i, now, starts[i] - now, kept.loads[0], kept.values[0])

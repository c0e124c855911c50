"""Labels of a beam by prices of states: running and waiting requests, and spent cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kvopt.heuristics.state_beams.guides import Guide
from kvopt.kernels.compiled import steering
from kvopt.problem.arrays import Floats, Integers

Words = npt.NDArray[np.uint64]
"""Sets of requests, 64 to a word."""

ACTIVE, LEFT, BEGAN, HASH, TRAIL, NEWEST = range(6)
"""Integers of a label: numbers of active and of waiting requests, the sum of starts, a hash of its
future work, the last start in the trail, and the candidate that this round started last; the last
two are -1 if there is none."""

SPENT, LATER, SLOPE, SCORE = range(4)
"""Floats of a label: reduced costs and slacks so far, least reduced costs of waiting requests and
their growth in a round, and the estimated cost of schedules that extend it."""


class Labels(NamedTuple):
    """Partial schedules, in a row for each.

    Parameters
    ----------
    members, ends
        Active requests, and their completions.
    waiting
        The set of requests that have not started.
    integers, floats
        Numbers of each label, see above.
    loads, values
        Tokens held, and their price, for each number of rounds after now.
    """

    members: Integers
    ends: Integers
    waiting: Words
    integers: Integers
    floats: Floats
    loads: Integers
    values: Floats


def room_for(many: int, guide: Guide, horizon: int) -> Labels:
    """Return arrays for so many labels."""
    members, ends = np.zeros((2, many, guide.most + 1), dtype=np.int64)
    return Labels(
        members,
        ends,
        waiting=np.zeros((many, -(-len(guide.outputs) // 64)), dtype=np.uint64),
        integers=np.zeros((many, 6), dtype=np.int64),
        floats=np.zeros((many, 4)),
        loads=np.zeros((many, horizon + int(guide.outputs.max()) + 2), dtype=np.int64),
        values=np.zeros((many, horizon + 1)),
    )


@steering
def waits(waiting: Words, i: int) -> bool:
    """Whether a request is in the set."""
    return bool((waiting[i >> 6] >> np.uint64(i & 63)) & np.uint64(1))


@steering
def take_out(waiting: Words, i: int) -> None:
    """Remove a request from the set."""
    waiting[i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))


@steering
def is_first(twins: Integers, waiting: Words, i: int) -> bool:
    """Whether a request waits, and no earlier twin of it does."""
    return waits(waiting, i) and (twins[i] < 0 or not waits(waiting, twins[i]))


@steering
def add_life(
    guide: Guide, rows: Floats, i: int, now: int, ahead: int, loads: Integers, values: Floats
) -> None:
    """Add the later holdings of a request, and their prices.

    It starts so many rounds after now, or before.
    """
    prompt, output, horizon = guide.prompts[i], guide.outputs[i], len(values) - 1
    youngest = max(1, 1 - ahead)
    for age in range(youngest, output + 1):
        loads[ahead + age] += prompt + age
    state = guide.firsts[i] + output
    for age in range(youngest, min(output, horizon - ahead) + 1):
        values[ahead + age] += rows[(now + ahead + age) % len(rows), state - age]


@steering
def copy_label(labels: Labels, row: int, others: Labels, other: int, passed: int) -> None:
    """Copy a label; after a round its later loads and prices are shifted."""
    for x in range(labels.integers[row, ACTIVE]):  # slices are slower
        others.members[other, x] = labels.members[row, x]
        others.ends[other, x] = labels.ends[row, x]
    for x in range(labels.waiting.shape[1]):
        others.waiting[other, x] = labels.waiting[row, x]
    for x in range(labels.integers.shape[1]):
        others.integers[other, x] = labels.integers[row, x]
    for x in range(labels.floats.shape[1]):
        others.floats[other, x] = labels.floats[row, x]
    width, horizon = labels.loads.shape[1], labels.values.shape[1]
    for x in range(width - passed):
        others.loads[other, x] = labels.loads[row, x + passed]
    others.loads[other, width - passed :] = 0
    for x in range(horizon - passed):
        others.values[other, x] = labels.values[row, x + passed]
    others.values[other, horizon - passed :] = 0.0

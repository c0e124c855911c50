"""Batches that are filled greedily, and improved by swaps.

*Local swap search* (wang-2025 section 5.2, Algorithm 3).  Fill a batch greedily by peak, then
exchange a member for an outsider as long as that lowers F.  The size stays, so F falls exactly when
the outsider's output is smaller.  The paper scans pairs, members first, makes the first exchange
that helps and begins again, with up to n^2 comparisons for an exchange.  The same pair is found
with one pass: among outsiders sorted by peak, the least output up to a peak tells each member
whether any small enough is shorter.

*Quantile greedy selection* (wang-2025 section 5.3, Algorithm 4).  Half of the waiting requests are
sampled.  A request within the sample's 0.3 quantiles of peak and of output forms the core,
shortest first; the rest fills up by ascending o / (s + o), that is, long prompts with short answers
first.  Both passes skip requests that do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from kvopt.problem.arrays import Flags, Integers
from kvopt.simulate.policies.phase1.batch import Candidate, columns, fill

_NEVER = 2**62
"""More than any output."""


def swap(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of the greedy fill by peak after local swaps, in the tie order given.

    Peaks are scanned in ascending order, ties by prompt, arrival, position.
    """
    prompts, outputs = columns(waiting)
    order = np.lexsort((prompts, outputs + prompts))  # stable; equal ones have equal outputs
    return swapped([waiting[place] for place in order.tolist()], memory)


def swapped(order: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Fill greedily in the given order and swap while that helps, scanning in that order.

    All batches satisfy the sufficient condition that all peaks fit together.
    """
    prompts, outputs = columns(order)
    peaks, chosen = outputs + prompts, np.zeros(len(order), dtype=np.bool_)
    slack = fill(chosen, np.arange(len(order)), peaks, memory)
    _exchange(peaks, outputs, chosen, slack)
    return sorted(order[place] for place in np.flatnonzero(chosen).tolist())


def _exchange(peaks: Integers, outputs: Integers, chosen: Flags, slack: int) -> None:
    """Exchange the first member that a shorter one can replace by the first that can.

    ``chosen`` is changed as long as there is such a pair.  Places are scanned in ascending order.
    """
    by_size = peaks.argsort(kind="stable")
    sizes, rank = peaks[by_size], by_size.argsort()
    outside = np.where(chosen[by_size], _NEVER, outputs[by_size])
    while True:
        members = np.flatnonzero(chosen)
        within = sizes.searchsorted(peaks[members] + slack, "right")
        gains = np.minimum.accumulate(outside)[within - 1] < outputs[members]
        if not gains.any():
            return
        first = gains.argmax()
        out, fitting = members[first], within[first]
        into = by_size[:fitting][outside[:fitting] < outputs[out]].min()
        chosen[out], chosen[into] = False, True
        outside[rank[out]], outside[rank[into]] = outputs[out], _NEVER
        slack += int(peaks[out] - peaks[into])


def quantile(waiting: Sequence[Candidate], memory: int, seed: int = 0) -> list[Candidate]:
    """Return a core of small requests, filled up by ratio; candidates come in tie order.

    The sample is drawn afresh for every batch, from the same seed: a batch depends on nothing
    but the candidates.
    """
    outputs, prompts, arrivals, positions = np.array(waiting, dtype=np.int64).T
    peaks = outputs + prompts
    sample = Random(seed).sample(range(len(waiting)), max(1, len(waiting) // 2))
    small = peaks <= _lower_quantile(peaks[sample])
    small &= outputs <= _lower_quantile(outputs[sample])
    chosen = np.zeros(len(waiting), dtype=np.bool_)
    memory = fill(chosen, np.flatnonzero(small), peaks, memory)
    rest = np.flatnonzero(~chosen)
    # Ratios over peaks up to P differ by at least 1 / P^2: floats distinguish them up to P = 2^26.
    keys = np.stack((positions, arrivals, prompts, outputs / peaks))
    fill(chosen, rest[np.lexsort(keys[:, rest])], peaks, memory)
    return [waiting[place] for place in np.flatnonzero(chosen).tolist()]


def _lower_quantile(values: Integers) -> int:
    """Return the 0.3 quantile, the lower one of the two values around it."""
    rank = 3 * (len(values) - 1) // 10
    return int(np.partition(values, rank)[rank])

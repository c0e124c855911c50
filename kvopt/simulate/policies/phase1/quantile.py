"""Quantile greedy selection (wang-2025 section 5.3, Algorithm 4).

Half of the waiting requests are sampled.  A request within the sample's 0.3 quantiles of peak
and of output forms the core, shortest first; the rest fills up by ascending o / (s + o), that
is, long prompts with short answers first.  Both passes skip what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from kvopt.problem.arrays import Integers
from kvopt.simulate.policies.phase1.batch import Candidate, columns, fill


def quantile(waiting: Sequence[Candidate], memory: int, seed: int = 0) -> list[Candidate]:
    """Return a core of small requests, filled up by ratio; candidates come in tie order.

    The sample is drawn afresh for every batch, from the same seed: a batch depends on nothing
    but the candidates.
    """
    prompts, outputs = columns(waiting)
    peaks = outputs + prompts
    sample = Random(seed).sample(range(len(waiting)), max(1, len(waiting) // 2))
    small = peaks <= _lower_quantile(peaks[sample])
    small &= outputs <= _lower_quantile(outputs[sample])
    chosen = np.zeros(len(waiting), dtype=np.bool_)
    memory = fill(chosen, np.flatnonzero(small), peaks, memory)
    rest = np.flatnonzero(~chosen)
    order = _by_ratio([waiting[place] for place in rest.tolist()], outputs[rest], peaks[rest])
    fill(chosen, rest[order], peaks, memory)
    return [waiting[place] for place in np.flatnonzero(chosen).tolist()]


def _lower_quantile(values: Integers) -> int:
    """Return the 0.3 quantile, the lower one of the two values around it."""
    rank = 3 * (len(values) - 1) // 10
    return int(np.partition(values, rank)[rank])


def _by_ratio(rest: Sequence[Candidate], outputs: Integers, peaks: Integers) -> Integers:
    """Return the places by ascending output / peak, ties by prompt, arrival, position."""
    largest = int(peaks.max(initial=0))
    # Fractions over peaks up to P differ by at least 1 / P^2, so the floors order them exactly.
    if largest**3 < 2**63:
        ratios = outputs * largest**2 // peaks
        positions = np.array([candidate.position for candidate in rest], dtype=np.int64)
        arrivals = np.array([candidate.arrival for candidate in rest], dtype=np.int64)
        return np.lexsort((positions, arrivals, peaks - outputs, ratios))
    keys = [(c.output * largest**2 // c.peak, *c[1:]) for c in rest]
    return np.array(sorted(range(len(rest)), key=keys.__getitem__), dtype=np.int64)

"""Quantile greedy selection (wang-2025 section 5.3, Algorithm 4).

Half of the waiting requests are sampled.  Who lies within the sample's 0.3 quantiles of peak
and of output forms the core, shortest first; the rest fills up by ascending o / (s + o), that
is, long prompts with short answers first.  Both passes skip what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kvopt.policies.phase1.batch import Candidate


def quantile(waiting: Sequence[Candidate], memory: int, seed: int = 0) -> list[Candidate]:
    """Return a core of small requests, filled up by ratio.

    The sample is drawn afresh for every batch, from the same seed: a batch depends on nothing
    but the candidates.
    """
    sample = Random(seed).sample(waiting, max(1, len(waiting) // 2))
    most_peak = _lower_quantile([candidate.peak for candidate in sample])
    most_output = _lower_quantile([candidate.output for candidate in sample])
    core, rest = [], []
    for candidate in waiting:
        peak = candidate.peak
        if peak <= most_peak and candidate.output <= most_output and peak <= memory:
            core.append(candidate)
            memory -= peak
        else:
            rest.append(candidate)
    return sorted(core + _filled(rest, memory))


def _lower_quantile(values: list[int]) -> int:
    """Return the 0.3 quantile, the lower one of the two values around it."""
    return sorted(values)[3 * (len(values) - 1) // 10]


def _filled(rest: list[Candidate], memory: int) -> list[Candidate]:
    """Take by ascending ratio whatever fits."""
    # Fractions over peaks up to P differ by at least 1 / P^2, so the floors order them exactly.
    scale = max((candidate.peak for candidate in rest), default=0) ** 2
    rest = sorted(rest, key=lambda c: (c.output * scale // c.peak, c[1:]))
    filled = []
    for candidate in rest:
        if candidate.peak <= memory:
            filled.append(candidate)
            memory -= candidate.peak
    return filled

"""Volumes of staircases: at most so many requests are in certain states, a resource as in a fluid.

Of the states (h, r) of a staircase with q - 1 thresholds at most q - 1 can occur together at any
time (Claim 3.14 of docs/theory).  So they are a resource of q - 1 units in each round, of
which each worker of a fleet has as many.
A request needs as many units as it passes states of the staircase, whenever it starts, and the
fluid of `kvopt.bounds.volume` bounds completions as it does for memory.  Different staircases
are best for different ranks: early ones for short requests, late ones for long ones.  So the
largest bound of each rank counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from kvopt.bounds.volume import completions_by_rank, fluid_completions
from kvopt.incumbent.proofs import CheckedBound, Staircase, VolumeProof
from kvopt.kernels.budget import Budget
from kvopt.kernels.magnitudes import fits
from kvopt.problem.arrays import Integers
from kvopt.problem.instance import Instance

_MAX_REQUESTS = 20_000
"""Limit of requests for staircases: a hundred fluids of so many take some ten seconds."""
FEW_REQUESTS = 300
"""Requests up to which staircases are tried under any time limit: hundredths of a second."""
_STEPS = 12
"""Limit of the steps of a staircase."""
_SHARES = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Thresholds that are tried, in units of memory shared evenly by one request more."""
_MOST_KEPT = 8
"""Limit of the staircases in a proof: more would hardly raise the bound."""


def best_staircases(instance: Instance, budget: Budget) -> CheckedBound | None:
    """Return the bound of staircases of equal thresholds, None for no or too many requests."""
    many = len(instance)
    if not 0 < many <= _MAX_REQUESTS:
        return None
    if not fits((instance.last_arrival + instance.total_output) * many):
        return None
    tried: dict[Staircase, Integers] = {}
    for steps in range(1, _STEPS + 1):
        lows = {max(1, int(share * instance.memory / (steps + 1))) for share in _SHARES}
        for low in sorted(low for low in lows if low <= instance.memory):
            if many <= FEW_REQUESTS or not budget.over():
                tried[(low,) * steps] = _completions(instance, (low,) * steps)
    envelope, kept = _begin(instance), list[Staircase]()
    # One by one the staircase that raises the bound most, until no other one raises it.
    while tried and len(kept) < _MOST_KEPT:
        best = max(tried, key=lambda one: int(np.maximum(envelope, tried[one]).sum()))
        raised = np.maximum(envelope, tried.pop(best))
        if raised.sum() == envelope.sum():
            break
        envelope = raised
        kept.append(best)
    return CheckedBound(staircase_bound(instance, kept), "volume", VolumeProof(tuple(kept)))


def staircase_bound(instance: Instance, staircases: Sequence[Staircase]) -> int:
    """Return the bound of the volumes of memory and of these staircases; exact integers."""
    completions = (_completions(instance, staircase) for staircase in staircases)
    latest = reduce(np.maximum, completions, _begin(instance))
    return int(latest.sum()) - sum(request.arrival for request in instance)


def units_needed(
    memory: int, staircase: Staircase, prompts: Integers, outputs: Integers
) -> Integers:
    """Return how many states of a staircase each request passes.

    With i thresholds up to h the state after g rounds, ``h = s + g`` and ``r = o - g``, is in it
    if ``h + (i + 1) r >= M + 1 - S``, that is ``i g <= s + (i + 1) o - M - 1 + S``, where S is the
    sum of these thresholds.  The bound depends on Claim 3.14 of docs/theory.
    """
    needed: Integers = np.zeros(len(prompts), dtype=np.int64)
    ends = [*staircase[1:], memory + 1]
    total = 0
    for i, (low, high) in enumerate(zip(staircase, ends, strict=True), 1):
        total += low
        first = np.maximum(1, low - prompts)
        last = np.minimum(outputs, high - 1 - prompts)
        last = np.minimum(last, (prompts + (i + 1) * outputs - memory - 1 + total) // i)
        needed += np.maximum(0, last - first + 1)
    return needed


def _begin(instance: Instance) -> Integers:
    """Return a bound on the completion of each rank, by memory and by single requests."""
    jobs = [(r.arrival, r.volume, r.output) for r in instance]
    return np.array(completions_by_rank(jobs, instance.total_memory), dtype=np.int64)


def _completions(instance: Instance, staircase: Staircase) -> Integers:
    shapes = np.array([request.shape for request in instance], dtype=np.int64)
    prompts, outputs = shapes.reshape(-1, 2).T
    needed = units_needed(instance.memory, staircase, prompts, outputs)
    jobs = [(r.arrival, units) for r, units in zip(instance, needed.tolist(), strict=True)]
    return np.array(fluid_completions(jobs, instance.used_workers * len(staircase)), dtype=np.int64)

"""Backlogs of one prompt with a given mix of outputs, and how policies do on them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from kvopt.model.instance import Instance, Prediction, Request
from kvopt.simulation.running import run
from kvopt.simulation.runs import PolicyRun

HINDSIGHT = "mc-sf"
"""For equal prompts it does what h-sf does, and faster: the shortest first are a largest set."""

PAIRS = ((1, 20), (2, 20), (4, 20), (8, 20), (12, 20), (16, 20))
"""Lower and upper ends (l, u) that are simulated."""
_MIXES = (0.5, 1.0, 2.0)
"""Multiples of u / l: short requests to one long one near which the bounds are largest."""


def backlog(
    counts: Mapping[int, int],
    memory: int,
    prompt: int = 0,
    interval: tuple[int, int] | None = None,
) -> Instance:
    """Return an instance with so many requests of each output, all there at once.

    Every request has the same interval, by default from the least to the largest output.
    """
    lower, upper = interval or (min(counts), max(counts))
    predicted = Prediction(lower, upper)
    return Instance(
        memory,
        [
            Request(0, prompt, output, predicted=predicted)
            for output, count in sorted(counts.items())
            for _ in range(count)
        ],
    )


def counts_of(weights: Mapping[int, float], n: int) -> dict[int, int]:
    """Return about n requests in the given shares, none where a share is less than half of one."""
    total = sum(weights.values())
    counts = {output: round(n * weight / total) for output, weight in weights.items()}
    return {output: count for output, count in counts.items() if count}


def two_point(lower: int, upper: int, mix: float, n: int) -> dict[int, int]:
    """Return n requests of two outputs, ``mix`` times as many short ones as long ones."""
    long = max(1, round(n / (1 + mix)))
    return {lower: n - long, upper: long}


def mixed_ratio(policy: str, lower: int, upper: int, mix: float, draws: int, scale: int) -> float:
    """Return the mean ratio on a backlog of two outputs and no prompt."""
    counts = two_point(lower, upper, mix, 1500 * scale)
    return mean_ratio(backlog(counts, memory_for(upper, scale)), policy, draws)


def worst_ratio(policy: str, lower: int, upper: int, draws: int, scale: int) -> float:
    """Return the largest of the mean ratios over some mixes of two outputs."""
    mixes = [mix * upper / lower for mix in _MIXES]
    return max(mixed_ratio(policy, lower, upper, mix, draws, scale) for mix in mixes)


def memory_for(upper: int, scale: int) -> int:
    """Return the memory of simulations with outputs up to ``upper``: 15 of the longest."""
    return 15 * upper * scale


def mean_ratio(instance: Instance, policy: str, draws: int) -> float:
    """Return the mean total latency over seeds as a multiple of that of h-sf."""
    best = total_latency(run(instance, HINDSIGHT))
    joint = "," if ":" in policy else ":"
    runs = (run(instance, f"{policy}{joint}seed={seed}") for seed in range(draws))
    return fmean(total_latency(found) for found in runs) / best


def total_latency(found: PolicyRun) -> int:
    """Return the total latency of a run that is known to end."""
    assert found.objective is not None, f"{found.policy} finishes every backlog"
    return found.objective

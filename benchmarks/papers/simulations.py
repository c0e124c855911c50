"""Simulate policies on backlogs of one prompt and on tiny instances."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from random import Random
from statistics import fmean
from typing import NamedTuple

from kvopt import Instance, Prediction, Request, ratio_to_optimum, run

HINDSIGHT = "mc-sf"
"""Same as h-sf for equal prompts, and faster: shortest first finds a largest set."""

PAIRS = ((1, 20), (2, 20), (4, 20), (8, 20), (12, 20), (16, 20))
"""Simulated lower and upper ends (l, u)."""
_MIXES = (0.5, 1.0, 2.0)
"""Multiples of u / l: short requests for each long one near which the bounds are largest."""


def latency(instance: Instance, policy: str) -> int:
    """Return the total latency of a policy that finishes every such instance."""
    found = run(instance, policy).objective
    assert found is not None, f"{policy} finishes every backlog"
    return found


def ratio_of(instance: Instance, policy: str) -> Fraction:
    """Return the total latency of a policy on a tiny instance over the optimum."""
    ratio = ratio_to_optimum(run(instance, policy))
    assert ratio.least is not None
    assert ratio.is_exact
    return ratio.least


def tiny_instance(rng: Random, memory: int, count: int) -> Instance:
    """Draw requests that are all there at round 0 and fit one by one."""

    def request() -> Request:
        prompt = rng.randrange(memory)
        return Request(rng.randint(0, 0), prompt, rng.randint(1, memory - prompt))

    return Instance(memory, [request() for _ in range(count)])


# ---- backlogs ---------------------------------------------------------------------------------


def backlog(
    counts: Mapping[int, int], memory: int, prompt: int = 0, interval: tuple[int, int] | None = None
) -> Instance:
    """Return an instance with so many requests of each output, all at round 0.

    Every request has the same interval, by default from the least to the largest output.
    """
    predicted = Prediction(*(interval or (min(counts), max(counts))))
    outputs = sorted(Counter(counts).elements())
    return Instance(memory, [Request(0, prompt, o, predicted=predicted) for o in outputs])


def counts_of(weights: Mapping[int, float], n: int) -> dict[int, int]:
    """Return about n requests in the given shares, none where a share is less than half of one."""
    total = sum(weights.values())
    counts = {output: round(n * weight / total) for output, weight in weights.items()}
    return {output: count for output, count in counts.items() if count}


def two_point(lower: int, upper: int, mix: float, n: int) -> dict[int, int]:
    """Return n requests of two outputs, ``mix`` times as many short ones as long ones."""
    long = max(1, round(n / (1 + mix)))
    return {lower: n - long, upper: long}


def mean_ratio(instance: Instance, policy: str, draws: int) -> float:
    """Return the mean total latency over seeds as a multiple of that of h-sf."""
    best = latency(instance, HINDSIGHT)
    joint = "," if ":" in policy else ":"
    return fmean(latency(instance, f"{policy}{joint}seed={seed}") for seed in range(draws)) / best


@dataclass(frozen=True)
class Simulation:
    """Backlogs of two outputs and no prompt.

    Parameters
    ----------
    draws
        Seeds of random policies.
    scale
        Factor on their size.
    """

    draws: int
    scale: int

    def memory(self, upper: int) -> int:
        """Return the memory for outputs up to ``upper``: 15 of the longest."""
        return 15 * upper * self.scale

    def mixed(self, policy: str, lower: int, upper: int, mix: float) -> float:
        """Return the mean ratio on ``mix`` times as many short requests as long ones."""
        counts = two_point(lower, upper, mix, 1500 * self.scale)
        return mean_ratio(backlog(counts, self.memory(upper)), policy, self.draws)

    def worst(self, policy: str, lower: int, upper: int) -> float:
        """Return the largest of the mean ratios over some mixes of two outputs."""
        return max(self.mixed(policy, lower, upper, mix * upper / lower) for mix in _MIXES)

    def by_alpha(
        self, policy: str, pairs: Iterable[tuple[int, int]] = PAIRS
    ) -> list[tuple[float, float]]:
        """Return ``alpha = l / u`` and the worst ratio for pairs of outputs."""
        return [(low / up, self.worst(policy, low, up)) for low, up in pairs]


# ---- how often a-min finishes what it starts (chen-2025, Lemma 1 and Proposition 1) -----------


class Tries(NamedTuple):
    """Attempts by belief at their start and true output, and the completed ones.

    Beliefs begin with 1; lost tokens raise them.
    """

    begun: Counter[tuple[int, int]]
    completed: Counter[tuple[int, int]]

    def share(self, belief: int, output: int) -> float | None:
        """Return the share of attempts that completed, or None without any."""
        begun = self.begun[belief, output]
        return self.completed[belief, output] / begun if begun else None


def counted(n: int, memory: int, u: int, prompt: int, draws: int) -> Tries:
    """Run a-min on backlogs with outputs uniform on 1..u and count its attempts."""
    tries = Tries(Counter(), Counter())
    for seed in range(draws):
        rng, interval = Random(seed), Prediction(1, u)
        requests = [Request(0, prompt, rng.randint(1, u), predicted=interval) for _ in range(n)]
        losses: dict[int, list[int]] = defaultdict(list)
        for piece in run(Instance(memory, requests), f"a-min:seed={seed}").lost:
            losses[piece.request].append(piece.end - piece.start)
        for position, request in enumerate(requests):
            beliefs = list(accumulate(losses[position], max, initial=1))
            tries.begun.update((belief, request.output) for belief in beliefs)
            tries.completed[beliefs[-1], request.output] += 1
    return tries


# ---- statements that a handful of requests refutes, in fractions ------------------------------


def worst_outputs(
    policy: str, n: int, memory: int, interval: tuple[int, int], allowed: Iterable[int]
) -> tuple[Fraction, tuple[int, ...]]:
    """Return the largest ratio to h-sf over vectors of n allowed outputs, and a vector with it.

    Requests have no prompt and know the interval.
    """
    predicted = Prediction(*interval)

    def ratio(outputs: tuple[int, ...]) -> Fraction:
        instance = Instance(memory, [Request(0, 0, o, predicted=predicted) for o in outputs])
        return Fraction(latency(instance, policy), latency(instance, HINDSIGHT))

    vectors = product(tuple(allowed), repeat=n)
    return max(((ratio(outputs), outputs) for outputs in vectors), key=lambda row: row[0])


def scaled_ratio(instance: Instance, memory: int) -> Fraction:
    """Return the total latency of first come, first served in a smaller memory over that in M.

    It serves the requests in order and as early as they fit, so its schedules are optimally packed
    and preserve the order; Proposition EC.1 says that the ratio is at most M over the memory.
    """
    smaller = Instance(memory, instance.requests)
    return Fraction(latency(smaller, "fcfs"), latency(instance, "fcfs"))

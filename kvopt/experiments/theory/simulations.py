"""Backlogs of one prompt and tiny instances, and how policies do on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, product
from random import Random
from statistics import fmean

from kvopt.problem.instance import Instance
from kvopt.problem.requests import Prediction, Request
from kvopt.simulate.running import run
from kvopt.timetable.runs import PolicyRun

HINDSIGHT = "mc-sf"
"""For equal prompts it does what h-sf does, and faster: the shortest first are a largest set."""

PAIRS = ((1, 20), (2, 20), (4, 20), (8, 20), (12, 20), (16, 20))
"""Lower and upper ends (l, u) that are simulated."""
_MIXES = (0.5, 1.0, 2.0)
"""Multiples of u / l: short requests to one long one near which the bounds are largest."""


def latency(instance: Instance, policy: str) -> int:
    """Return the total latency of a policy that finishes every such instance."""
    found = run(instance, policy).objective
    assert found is not None, f"{policy} finishes every backlog"
    return found


# ---- backlogs ---------------------------------------------------------------------------------


def backlog(
    counts: Mapping[int, int], memory: int, prompt: int = 0, interval: tuple[int, int] | None = None
) -> Instance:
    """Return an instance with so many requests of each output, all there at once.

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


def memory_for(upper: int, scale: int) -> int:
    """Return the memory of simulations with outputs up to ``upper``: 15 of the longest."""
    return 15 * upper * scale


def mixed_ratio(policy: str, lower: int, upper: int, mix: float, draws: int, scale: int) -> float:
    """Return the mean ratio on a backlog of two outputs and no prompt."""
    counts = two_point(lower, upper, mix, 1500 * scale)
    return mean_ratio(backlog(counts, memory_for(upper, scale)), policy, draws)


def worst_ratio(policy: str, lower: int, upper: int, draws: int, scale: int) -> float:
    """Return the largest of the mean ratios over some mixes of two outputs."""
    mixes = [mix * upper / lower for mix in _MIXES]
    return max(mixed_ratio(policy, lower, upper, mix, draws, scale) for mix in mixes)


def worst_ratios(policy: str, draws: int, scale: int) -> list[tuple[float, float]]:
    """Return ``alpha = l / u`` and the worst ratio for every pair of outputs."""
    return [(low / up, worst_ratio(policy, low, up, draws, scale)) for low, up in PAIRS]


def mean_ratio(instance: Instance, policy: str, draws: int) -> float:
    """Return the mean total latency over seeds as a multiple of that of h-sf."""
    best = latency(instance, HINDSIGHT)
    joint = "," if ":" in policy else ":"
    return fmean(latency(instance, f"{policy}{joint}seed={seed}") for seed in range(draws)) / best


# ---- how often a-min finishes what it starts (chen-2025, Lemma 1 and Proposition 1) -----------


@dataclass
class Tries:
    """Tries by belief at their start and true output.

    Parameters
    ----------
    begun, completed
        Number of tries, and of those that ended with the request.
    """

    begun: Counter[tuple[int, int]] = field(default_factory=Counter)
    completed: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, found: PolicyRun) -> None:
        """Count the tries of a run whose beliefs began with 1; what is lost raises them."""
        losses: dict[int, list[int]] = defaultdict(list)
        for piece in found.lost:
            losses[piece.request].append(piece.end - piece.start)
        for position, request in enumerate(found.instance):
            beliefs = list(accumulate(losses[position], max, initial=1))
            self.begun.update((belief, request.output) for belief in beliefs)
            self.completed[beliefs[-1], request.output] += 1

    def share(self, belief: int, output: int) -> float | None:
        """Return the share of tries that completed, None if there were none."""
        begun = self.begun[belief, output]
        return self.completed[belief, output] / begun if begun else None


def counted(n: int, memory: int, u: int, prompt: int, draws: int) -> Tries:
    """Run a-min on backlogs with outputs uniform on 1..u and count its tries."""
    tries = Tries()
    for seed in range(draws):
        rng, interval = Random(seed), Prediction(1, u)
        requests = [Request(0, prompt, rng.randint(1, u), predicted=interval) for _ in range(n)]
        tries.add(run(Instance(memory, requests), f"a-min:seed={seed}"))
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
        return Fraction(latency(instance, policy), latency(instance, "h-sf"))

    return max(((ratio(o), o) for o in product(tuple(allowed), repeat=n)), key=lambda row: row[0])


def scaling_counterexamples(most: int) -> Iterator[tuple[Instance, int, Fraction]]:
    """Yield cases against Proposition EC.1: an instance, a smaller memory, and the ratio.

    Both schedules serve the requests in order and as early as they fit, so they are optimally
    packed and preserve the order; the proposition says that the ratio is at most M over the
    smaller memory.
    """
    for memory, n in product(range(2, most + 1), range(1, 4)):
        shapes = [(s, o) for s in range(memory) for o in range(1, memory - s + 1)]
        for chosen in product(shapes, repeat=n):
            if len({prompt for prompt, _ in chosen}) > 1:
                continue
            instance = Instance(memory, [Request(0, s, o) for s, o in chosen])
            for smaller in range(max(request.peak for request in instance), memory):
                ratio = scaled_ratio(instance, smaller)
                if ratio > Fraction(memory, smaller):
                    yield instance, smaller, ratio


def scaled_ratio(instance: Instance, memory: int) -> Fraction:
    """Return the total latency of first come, first served in a smaller memory over that in M."""
    smaller = Instance(memory, instance.requests)
    return Fraction(latency(smaller, "fcfs"), latency(instance, "fcfs"))

"""Statements that a handful of requests refutes, checked in fractions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from kvopt.experiments.theory.backlogs import total_latency
from kvopt.model.instance import Instance, Prediction, Request
from kvopt.simulation.running import run


@dataclass(frozen=True, slots=True)
class Worst:
    """The largest ratio to h-sf over vectors of outputs, and a vector that has it."""

    ratio: Fraction
    outputs: tuple[int, ...]


def worst_outputs(
    policy: str, n: int, memory: int, interval: tuple[int, int], allowed: Iterable[int]
) -> Worst:
    """Try every vector of n allowed outputs; requests have no prompt and know the interval."""
    predicted = Prediction(*interval)
    best = Worst(Fraction(0), ())
    for outputs in product(tuple(allowed), repeat=n):
        instance = Instance(memory, [Request(0, 0, o, predicted=predicted) for o in outputs])
        values = [total_latency(run(instance, label)) for label in (policy, "h-sf")]
        ratio = Fraction(values[0], values[1])
        if ratio > best.ratio:
            best = Worst(ratio, outputs)
    return best


def scaling_counterexamples(most: int) -> Iterator[tuple[Instance, int, Fraction]]:
    """Yield cases against Proposition EC.1: an instance, a smaller memory, and the ratio.

    Both schedules serve the requests in order and as early as they fit, so they are optimally
    packed and preserve the order; the proposition says that the ratio is at most M over the
    smaller memory.
    """
    for memory, n in product(range(2, most + 1), range(1, 4)):
        for shapes in product(_shapes(memory), repeat=n):
            if len({prompt for prompt, _ in shapes}) > 1:
                continue
            instance = Instance(memory, [Request(0, s, o) for s, o in shapes])
            for smaller in range(max(s + o for s, o in shapes), memory):
                ratio = scaled_ratio(instance, smaller)
                if ratio > Fraction(memory, smaller):
                    yield instance, smaller, ratio


def scaled_ratio(instance: Instance, memory: int) -> Fraction:
    """Return the total latency of first come, first served in a smaller memory over that in M."""
    smaller = Instance(memory, instance.requests)
    values = [total_latency(run(case, "fcfs")) for case in (smaller, instance)]
    return Fraction(values[0], values[1])


def _shapes(memory: int) -> list[tuple[int, int]]:
    return [(s, o) for s in range(memory) for o in range(1, memory - s + 1)]

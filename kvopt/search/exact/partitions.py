"""The best partition of few requests among equal workers, from the best latency of each set."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvopt.problem.instance import Instance

Known = dict[int, tuple[int, list[int]]]
"""Least latency and starts of sets of requests, which are bits."""


def members_of(bits: int) -> list[int]:
    """Return the requests of a set."""
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def places_of(parts: Sequence[int], optima: Known, count: int) -> tuple[list[int], list[int]]:
    """Return the starts and the workers of requests, given the set of each worker."""
    starts, workers = [0] * count, [0] * count
    for worker, bits in enumerate(parts):
        for i, start in zip(members_of(bits), optima[bits][1], strict=True):
            starts[i], workers[i] = start, worker
    return starts, workers


def best_partition(instance: Instance, optima: Known, upper: float) -> list[int] | None:
    """Return the sets of the workers with the least latency below a limit, None without one."""
    count = 1 << len(instance)
    values = [optima[bits][0] if bits in optima else math.inf for bits in range(count)]
    best, chosen = values, list[list[int]]()
    for _ in range(instance.workers - 1):
        following, first = list(best), [0] * count
        for bits in range(1, count):
            low, part = bits & -bits, bits
            while part:  # all subsets with the first request
                if part & low and values[part] + best[bits ^ part] < following[bits]:
                    following[bits] = values[part] + best[bits ^ part]
                    first[bits] = part
                part = (part - 1) & bits
        best = following
        chosen.append(first)
    if best[-1] >= upper:
        return None
    parts, bits = [], count - 1
    for first in reversed(chosen):
        parts.append(first[bits])
        bits ^= first[bits]
    return [*parts, bits]

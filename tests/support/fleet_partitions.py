"""Fleets by brute force: every way to share requests out, and the best of each worker alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from oracle import Triple, optimum

from kvopt import Instance, Request


def partitions(count: int, workers: int) -> Iterator[list[int]]:
    """Yield a worker for each request; of those that differ in names of workers, one."""

    def extend(chosen: list[int]) -> Iterator[list[int]]:
        if len(chosen) == count:
            yield chosen
            return
        for worker in range(min(workers, max(chosen, default=-1) + 2)):
            yield from extend([*chosen, worker])

    yield from extend([])


def fleet_optimum(memory: int, requests: Sequence[Triple], workers: int) -> int:
    """Return the least total latency of a fleet."""
    return min(
        sum(
            optimum(memory, [r for r, w in zip(requests, where, strict=True) if w == worker])[0]
            for worker in range(workers)
        )
        for where in partitions(len(requests), workers)
    )


def drawn_fleet(seed: int, most_requests: int = 5, most_workers: int = 3) -> Instance:
    """Return a tiny random fleet in which requests are in each other's way."""
    rng = random.Random(seed)
    memory = rng.randint(2, 9)
    requests = []
    for _ in range(rng.randint(1, most_requests)):
        output = rng.randint(1, min(5, memory))
        prompt = rng.randint(0, memory - output)
        requests.append(Request(rng.choice((0, rng.randint(0, 5))), prompt, output))
    return Instance(memory, requests, workers=rng.randint(2, most_workers))


def triples(instance: Instance) -> list[Triple]:
    """Return the requests as the oracles take them."""
    return [request.kind for request in instance]

"""A fleet served from one line, written round by round from the rules alone."""

from __future__ import annotations

from collections.abc import Callable

from kvopt import Instance, Request


def served_centrally(
    instance: Instance, key: Callable[[Request], tuple[int, ...]]
) -> tuple[list[int], list[int]]:
    """Return starts and workers where the first in line by a key blocks those behind it.

    The worker that will hold the fewest tokens in the next round is asked first, and again after
    a start; a worker starts the first in line if that fits from now on.
    """
    requests = instance.requests
    starts, workers = [-1] * len(requests), [-1] * len(requests)
    running: list[list[int]] = [[] for _ in range(instance.workers)]
    now = 0
    while -1 in starts:
        for each in running:
            each[:] = [i for i in each if starts[i] + requests[i].output > now]
        line = [i for i, r in enumerate(requests) if starts[i] < 0 and r.arrival <= now]
        line.sort(key=lambda i: (*key(requests[i]), i))
        asking = set(range(instance.workers))
        while asking and line:
            loads = [
                sum(requests[i].prompt + now + 1 - starts[i] for i in each) for each in running
            ]
            worker = min(asking, key=lambda w: (loads[w], w))
            first = line[0]
            starts[first] = now
            if _fits(instance, starts, [*running[worker], first], now):
                workers[first] = worker
                running[worker].append(first)
                line.pop(0)
                asking = set(range(instance.workers))
            else:
                starts[first] = -1
                asking.remove(worker)
        now += 1
    return starts, workers


def _fits(instance: Instance, starts: list[int], members: list[int], now: int) -> bool:
    requests = instance.requests
    for i in members:
        time = starts[i] + requests[i].output
        held = sum(
            requests[j].prompt + time - starts[j]
            for j in members
            if starts[j] + requests[j].output >= time > now
        )
        if held > instance.memory:
            return False
    return True

"""Optimal schedules of fleets by trying every way to deal requests to workers.

Workers share nothing, so once requests are dealt each of them is a problem of one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from oracle import Triple, optimum
from timed_oracle import Server, timed_optimum

Parts = list[list[Triple]]
Dated = tuple[int, int, int, int]
"""A request, and how long it may take."""
Row = TypeVar("Row", Triple, Dated)


def dealt(requests: Sequence[Triple], workers: int) -> Iterator[Parts]:
    """Yield every way to deal requests to at most so many workers, which are all alike."""
    if not requests:
        yield []
        return
    *others, last = requests
    for parts in dealt(others, workers):
        for place in range(len(parts)):
            yield [[*part, last] if i == place else part for i, part in enumerate(parts)]
        if len(parts) < workers:
            yield [*parts, [last]]


def fleet_optimum(memory: int, workers: int, requests: Sequence[Triple]) -> int:
    """Return the least total latency of a fleet in rounds."""
    return _least(requests, workers, lambda part: optimum(memory, part)[0])


def timed_fleet_optimum(
    server: Server, memory: int, workers: int, requests: Sequence[Triple]
) -> int:
    """Return the same in nanoseconds, where each worker has rounds of its own."""
    return _least(requests, workers, lambda part: timed_optimum(server, memory, part))


def most_on_workers(
    workers: int, requests: Sequence[Dated], alone: Callable[[Sequence[Dated]], int]
) -> int:
    """Return how many attain at most, given how many of some requests do on one worker."""
    places, value = [(i, 0, 0) for i in range(len(requests))], _remembered(alone)
    return max(
        sum(value([requests[i] for i, _, _ in part]) for part in parts)
        for parts in dealt(places, workers)
    )


def _least(
    requests: Sequence[Triple], workers: int, alone: Callable[[tuple[Triple, ...]], int]
) -> int:
    value = _remembered(alone)
    return min(sum(map(value, parts)) for parts in dealt(requests, workers))


def _remembered(alone: Callable[[tuple[Row, ...]], int]) -> Callable[[Sequence[Row]], int]:
    """Return the value of sets of requests, each found once."""
    known: dict[tuple[Row, ...], int] = {}

    def value(part: Sequence[Row]) -> int:
        key = tuple(sorted(part))
        if key not in known:
            known[key] = alone(key)
        return known[key]

    return value

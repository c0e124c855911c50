"""A router that is told where to send requests, and what others go by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kvopt import Instance, PolicyRun, run
from kvopt.problem.clocks import Clock
from kvopt.simulate.routers import ArrivalRouter, Load


@dataclass
class Sent(ArrivalRouter):
    """Sends requests where it was told to, in the order of their arrival."""

    name: ClassVar[str] = "sent"

    to: Sequence[int] = ()

    def begin(self, workers: int) -> None:
        self._left = iter(self.to)

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        return next(self._left)


def tokens_of(run: PolicyRun, i: int, time: int) -> int:
    """Return the tokens that a request holds in the round that ends at a time."""
    times = [*run.active_times][i]
    if time in times:
        return run.instance.requests[i].prompt + sum(at <= time for at in times)
    rows = [each for each in run.chunks if each.request == i and each.start < time]
    return sum(sum(each.tokens[: time - each.start]) for each in rows if time <= each.end)


MEASURES: Mapping[str, Callable[[PolicyRun, int, int], int]] = {
    "least-requests": lambda *_: 1,
    "least-volume": lambda run, i, _: run.instance.requests[i].volume,
    "least-tokens": tokens_of,
}
"""What each router counts of a request that is not complete; tokens by times in rounds."""


def assert_routed(fleet: Instance, policy: str, clock: Clock) -> None:
    """The load at an arrival follows from when everything was active, and completed."""
    for way, measure in MEASURES.items():
        if way == "least-tokens" and not clock.is_even:
            continue
        found = run(fleet, policy, router=way, clock=clock)
        order = sorted(range(len(fleet)), key=lambda i: (found.arrivals[i], i))
        for place, i in enumerate(order):
            loads, time = [0] * fleet.workers, found.arrivals[i]
            for j in order[:place]:
                end, worker = found.completions[j], found.workers[j]
                assert end is not None
                assert worker is not None
                loads[worker] += measure(found, j, time) if end > time else 0
            assert found.workers[i] == loads.index(min(loads)), (way, loads)

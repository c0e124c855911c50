"""Routers that spread requests without a look at what workers hold, or with little of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from kvopt.simulate.routers.base import ArrivalRouter, Load
from kvopt.simulate.routers.registry import register


@register
@dataclass
class RoundRobin(ArrivalRouter):
    """Send requests to the workers in turn."""

    name = "round-robin"

    def begin(self, workers: int) -> None:
        """Begin with the first worker."""
        self._next, self._count = 0, workers

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the next one."""
        chosen = self._next
        self._next = (chosen + 1) % self._count
        return chosen


@register
@dataclass
class Uniform(ArrivalRouter):
    """Send each request to a worker drawn at random."""

    name = "random"

    def begin(self, workers: int) -> None:  # noqa: ARG002
        """Take the seed's draws from the first one."""
        self._random = Random(self.seed)

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return any."""
        return self._random.randrange(len(loads))


@register
@dataclass
class TwoChoices(Uniform):
    """Draw two workers at random and take the one with fewer requests."""

    name = "two-choices"
    source = "the power of two choices"

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the better of two, the first drawn where they are alike."""
        two = self._random.sample(range(len(loads)), min(2, len(loads)))
        return min(two, key=lambda worker: loads[worker].requests)

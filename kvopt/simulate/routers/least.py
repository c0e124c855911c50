"""Routers that send a request to where the least is; ties go to the first such worker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from kvopt.simulate.routers.base import ArrivalRouter, Load
from kvopt.simulate.routers.registry import register


@dataclass
class Least(ArrivalRouter):
    """Send each request to the worker where the least is."""

    @abstractmethod
    def measure(self, load: Load) -> int:
        """Return how much is at a worker."""

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the first worker with the least."""
        return min(range(len(loads)), key=lambda worker: self.measure(loads[worker]))


@register
@dataclass
class LeastRequests(Least):
    """Send each request to the worker with the fewest requests, waiting or active.

    Without prefix caching this is LMetric's choice too.
    """

    name = "least-requests"
    source = "join the shortest queue; LMetric (arXiv 2603.15202) without prefix caching"

    def measure(self, load: Load) -> int:
        """Return the requests that have not finished."""
        return load.requests


@register
@dataclass
class LeastTokens(Least):
    """Send each request to the worker that holds the fewest tokens."""

    name = "least-tokens"

    def measure(self, load: Load) -> int:
        """Return the tokens held now: requests that wait hold none."""
        return load.tokens()


@register
@dataclass
class LeastVolume(Least):
    """Send each request to the worker with the least outstanding volume.

    That are the token-rounds that its requests, waiting or active, are believed to hold over
    their lives.
    """

    name = "least-volume"

    def measure(self, load: Load) -> int:
        """Return the token-rounds of requests that have not finished."""
        return load.volume

"""The routers that are built in.

Some spread requests with little or no knowledge of the loads, and some send a request to the worker
with the least load; ties go to the first such worker.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from kvopt.problem.requests import checked_integer
from kvopt.simulate.routers.base import ArrivalRouter, Load, Router
from kvopt.simulate.routers.registry import ROUTERS, register


@dataclass
class Central(Router):
    """Let requests wait in one line, from which workers take those that their schedulers start.

    A request is assigned to a worker when it starts.  An evicted request waits for the same worker.
    Of several workers that may start requests at one time the one with the fewest tokens is first.
    """

    name = "central"
    is_irrevocable = False


ROUTERS.add(Central.name, Central)


@register
@dataclass
class RoundRobin(ArrivalRouter):
    """Send requests to the workers in turn."""

    name = "round-robin"

    def begin(self, workers: int) -> None:  # noqa: ARG002
        """Begin with the first worker."""
        self._next = 0

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the next one."""
        chosen = self._next % len(loads)
        self._next = chosen + 1
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
        """Return a random worker."""
        return self._random.randrange(len(loads))


@register
@dataclass
class TwoChoices(Uniform):
    """Draw two workers at random and take the one with fewer requests."""

    name = "two-choices"
    source = "the power of two choices"

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the better of two, in a tie the first drawn."""
        two = self._random.sample(range(len(loads)), min(2, len(loads)))
        return min(two, key=lambda worker: loads[worker].requests)


@dataclass
class Least(ArrivalRouter):
    """Send each request to the worker with the least load."""

    @abstractmethod
    def measure(self, load: Load) -> int:
        """Return the load of a worker."""

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the first worker with the least load."""
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
        """Return the tokens held now, without waiting requests."""
        return load.tokens()


@register
@dataclass
class LeastVolume(Least):
    """Send each request to the worker with the least outstanding volume.

    It is the sum of the believed token-rounds of its requests, waiting or active.
    """

    name = "least-volume"

    def measure(self, load: Load) -> int:
        """Return the token-rounds of requests that have not finished."""
        return load.volume


@register
@dataclass
class LongestPrefix(LeastRequests):
    """Send each request to the worker whose requests share most of its prefix.

    Of equal ones the worker with the fewest requests takes it.

    Parameters
    ----------
    slack
        Requests that a worker may have beyond the one with the fewest, to be considered.
    """

    name = "longest-prefix"
    source = "the cache-aware routing of SGLang and llm-d"

    slack: int = 8

    def __post_init__(self) -> None:
        checked_integer(self.slack, "slack", 0)

    def send(self, loads: Sequence[Load], i: int, prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the first worker with the longest match."""
        most = min(load.requests for load in loads) + self.slack
        fit = [worker for worker, load in enumerate(loads) if load.requests <= most]
        return min(fit, key=lambda w: (-loads[w].matched(i), loads[w].requests))

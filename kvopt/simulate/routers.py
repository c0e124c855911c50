"""Routers: they choose a worker of a fleet for each request, at its arrival or at its start.

Some spread requests with little or no knowledge of the loads, and some send a request to the worker
with the least load; ties go to the first such worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Protocol, TypeVar

from kvopt.kernels.extensions import Registry
from kvopt.kernels.guarding import Extensible
from kvopt.problem.requests import checked_integer
from kvopt.simulate.policies.by_name import built, pairs, registered

_BETWEEN = " + "


class Load(Protocol):
    """State of a worker that a router sees."""

    requests: int
    """Number of unfinished requests that were sent there."""
    volume: int
    """Believed token-rounds of these requests."""
    unprocessed: int
    """Tokens of their prompts, or lost in evictions, that are not processed yet."""

    def tokens(self) -> int:
        """Return the tokens that it holds now."""

    def matched(self, i: int) -> int:
        """Return the tokens of a request's prefix in use there; in seconds also cached ones."""


@dataclass
class Router(Extensible, ABC):
    """Assignment of requests to workers.  Subclasses are dataclasses: their fields are parameters.

    Parameters
    ----------
    seed
        Seed of random choices.
    """

    name: ClassVar[str]
    """Its name in commands."""
    source: ClassVar[str] = "-"
    """Its source."""
    is_irrevocable: ClassVar[bool] = True
    """Whether a request stays on the worker of its arrival."""

    seed: int = field(default=0, kw_only=True)


@dataclass
class ArrivalRouter(Router):
    """A router that sends every request to a worker when it arrives."""

    def begin(self, workers: int) -> None:
        """Reset the state for a run with so many workers."""

    def send(self, loads: Sequence[Load], i: int, prompt: int, output: int) -> int:
        """Return the worker for the request at a position."""
        return self.choose(loads, prompt, output)

    @abstractmethod
    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return the worker, from 0, for a request with that prompt and believed output."""


# ---- routers by name ----------------------------------------------------------------------

ROUTERS: Registry[type[Router]] = Registry("router", "kvopt.routers", {})
Kind = TypeVar("Kind", bound=type[Router])


def register(kind: Kind) -> Kind:
    """Register a router under its name; a class decorator."""
    return registered(kind, ArrivalRouter, ROUTERS)


def router(text: str) -> Router:
    """Return the router that ``NAME[:key=value,...]`` describes."""
    name, _, rest = text.partition(":")
    label = f"router {name}"
    built_router: Router = built(ROUTERS.find(name), pairs(rest, label), label)
    return built_router


def label_of(router: str, policy: str) -> str:
    """Return the label of a scheduler behind a router.

    Examples
    --------
    >>> label_of("least-volume", "svf")
    'least-volume + svf'
    """
    return f"{router}{_BETWEEN}{policy}"


def parts_of(label: str) -> tuple[str, str]:
    """Return router and scheduler of such a name; the default router is the central line.

    Examples
    --------
    >>> parts_of("least-volume + svf"), parts_of("svf")
    (('least-volume', 'svf'), ('central', 'svf'))
    """
    router, between, policy = label.partition(_BETWEEN)
    return (router, policy) if between else ("central", label)


# ---- built-in routers ---------------------------------------------------------------------


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

    def begin(self, workers: int) -> None:
        """Begin with the first worker."""
        self._next = 0

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return the next one."""
        chosen = self._next % len(loads)
        self._next = chosen + 1
        return chosen


@register
@dataclass
class Uniform(ArrivalRouter):
    """Send each request to a worker drawn at random."""

    name = "random"

    def begin(self, workers: int) -> None:
        """Take the seed's draws from the first one."""
        self._random = Random(self.seed)

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return a random worker."""
        return self._random.randrange(len(loads))


@register
@dataclass
class TwoChoices(Uniform):
    """Draw two workers at random and take the one with fewer requests."""

    name = "two-choices"
    source = "the power of two choices"

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return the better of two, in a tie the first drawn."""
        two = self._random.sample(range(len(loads)), min(2, len(loads)))
        return min(two, key=lambda worker: loads[worker].requests)


@register
@dataclass
class LeastRequests(ArrivalRouter):
    """Send each request to the worker with the fewest requests, waiting or active.

    Without prefix caching this is LMetric's choice too.
    """

    name = "least-requests"
    source = "join the shortest queue; LMetric (arXiv 2603.15202) without prefix caching"

    def measure(self, load: Load) -> int:
        """Return the load of a worker: requests that have not finished."""
        return load.requests

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return the first worker with the least load."""
        return min(range(len(loads)), key=lambda worker: self.measure(loads[worker]))


@register
@dataclass
class LeastTokens(LeastRequests):
    """Send each request to the worker that holds the fewest tokens."""

    name = "least-tokens"
    source = "-"

    def measure(self, load: Load) -> int:
        """Return the tokens held now, without waiting requests."""
        return load.tokens()


@register
@dataclass
class LeastVolume(LeastRequests):
    """Send each request to the worker with the least outstanding volume.

    It is the sum of the believed token-rounds of its requests, waiting or active.
    """

    name = "least-volume"
    source = "-"

    def measure(self, load: Load) -> int:
        """Return the token-rounds of requests that have not finished."""
        return load.volume


@register
@dataclass
class SoonestToken(ArrivalRouter):
    """Send each request to the worker that is likely to give its first token in the fewest rounds.

    All that waits there comes first, and every unfinished request takes a token of each round.  So
    a worker with many long requests, whose tokens become slow, gets fewer.

    Parameters
    ----------
    tokens
        Tokens that a worker processes in a round.
    """

    name = "soonest-token"
    source = "-"

    tokens: int = 512

    def __post_init__(self) -> None:
        checked_integer(self.tokens, "tokens", 1)

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return the worker with the fewest rounds, of equal ones that with fewest requests."""

        def rounds(worker: int) -> tuple[float, int]:
            load = loads[worker]
            left = max(self.tokens - load.requests, 1)
            return (load.unprocessed + prompt) / left, load.requests

        return min(range(len(loads)), key=rounds)


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

    def send(self, loads: Sequence[Load], i: int, prompt: int, output: int) -> int:
        """Return the first worker with the longest match."""
        limit = min(load.requests for load in loads) + self.slack
        fit = [worker for worker, load in enumerate(loads) if load.requests <= limit]
        return min(fit, key=lambda w: (-loads[w].matched(i), loads[w].requests))


@dataclass
class SwitchedRouter(ArrivalRouter):
    """Send requests by another router to the machines that are on, the first ones.

    Parameters
    ----------
    inner
        The router of these.
    counts
        Number of machines that take requests when each request arrives.
    """

    name = "switched"

    inner: ArrivalRouter
    counts: Sequence[int]

    def begin(self, workers: int) -> None:
        """Reset the state of the other router."""
        self.inner.begin(workers)

    def send(self, loads: Sequence[Load], i: int, prompt: int, output: int) -> int:
        """Return its choice among the machines that are on."""
        return self.inner.send(loads[: self.counts[i]], i, prompt, output)

    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return its choice among all machines."""
        return self.inner.choose(loads, prompt, output)

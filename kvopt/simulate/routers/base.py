"""Interface of routers: input, and the choice of a worker for each arrival."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from kvopt.kernels.guarding import Extensible


class Load(Protocol):
    """State of a worker that a router sees."""

    requests: int
    """Number of unfinished requests that were sent there."""
    volume: int
    """Believed token-rounds of these requests."""

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

    def send(self, loads: Sequence[Load], i: int, prompt: int, output: int) -> int:  # noqa: ARG002
        """Return the worker for the request at a position."""
        return self.choose(loads, prompt, output)

    @abstractmethod
    def choose(self, loads: Sequence[Load], prompt: int, output: int) -> int:
        """Return the worker, from 0, for a request with that prompt and believed output."""


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

"""``seconds_bound``: no schedule on the clock of a batch-time model has less total latency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kvopt.bounds.seconds_evaluation import shares_bound
from kvopt.bounds.seconds_weights import best_weights
from kvopt.kernels.compiling import working_time
from kvopt.model.arrivals import arrivals_ns
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.search.proofs import SharesProof


@dataclass(frozen=True, slots=True)
class SecondsBound:
    """A lower bound on total latency in nanoseconds, evaluated in integers.

    Parameters
    ----------
    value_ns
        No schedule has a smaller total latency.
    proof
        What proves it.
    seconds
        Time that it took.
    """

    value_ns: int
    proof: SharesProof
    seconds: float


def seconds_bound(
    instance: Instance,
    model: BatchTime,
    *,
    time_limit: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> SecondsBound:
    """Return a proved lower bound on total latency in nanoseconds.

    `kvopt.model.scope` says what it does not cover: pauses and prompts in pieces.

    Parameters
    ----------
    instance
        Requests, and when they arrive (`kvopt.model.arrivals.arrivals_ns`).
    model
        How long rounds last; they may last longer than it says, never less.
    time_limit
        Seconds for the search for weights; without it the search ends after some steps.
    should_stop
        Asked at every step; when it turns true, the best weights so far are the last ones.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt import BatchTime, Line
    >>> two = Instance(3, [Request(0, 2, 1), Request(0, 2, 1)])
    >>> seconds_bound(two, BatchTime([Line(1000, 0)])).value_ns
    3000
    """
    began = working_time()
    arrivals = arrivals_ns(instance)

    def is_late() -> bool:
        late = time_limit is not None and working_time() - began > time_limit
        return late or should_stop()

    best = best_weights(instance, model, arrivals, is_late)
    value = shares_bound(instance, model, best, arrivals)
    return SecondsBound(value, best, working_time() - began)

"""``seconds_bound``: no schedule on the clock of a batch-time model has less total latency.

Each request takes a part of the machine (`kvopt.seconds.bounds_shares`), and the machine has one
second in a second.  So a schedule is a *fluid*: request i is served at rates that sum to at most
1, from its arrival on.  With the mean B_i of the times at which it is served and the least time
e_i from there to its completion,

    completion of i  >=  weight_i (B_i + e_i)  +  (1 - weight_i) (arrival of i + its time alone)

for any weight in 0 .. 1.  The least sum of weighted B_i over all fluids is that of one
that always serves the largest weight_i / takes_i.  ``docs/seconds-bounds.md`` has the proofs.

Floats only look for good weights.  What is returned was evaluated in integers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from kvopt.instance import Instance
from kvopt.seconds.arrivals import arrivals_ns
from kvopt.seconds.bounds_shares import Shares, shares
from kvopt.seconds.model import BatchTime

Floats = npt.NDArray[np.float64]

FULL = 64
"""Weights are counted in parts of this."""

MOST_STEPS = 60
"""Changes of the weights that are tried."""
_STEP = 0.5
"""First change of the weight of a request whose two sides are an average difference apart."""
_FINE = 30
"""Bits by which slopes are finer than what the request that takes most needs."""


@dataclass(frozen=True, slots=True)
class SharesProof:
    """What proves a bound in seconds, with the instance and the model.

    Parameters
    ----------
    lines
        Positions of the lines of the model that say what requests take.
    weights
        For each request a number in 0 .. 64, in parts of 64; empty if all are 64.
    """

    lines: tuple[int, ...]
    weights: tuple[int, ...] = ()


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
    instance: Instance, model: BatchTime, *, time_limit: float | None = None
) -> SecondsBound:
    """Return a proved lower bound on total latency in nanoseconds.

    Parameters
    ----------
    instance
        Requests, and when they arrive (`kvopt.seconds.arrivals.arrivals_ns`).
    model
        How long rounds last; they may last longer than it says, never less.
    time_limit
        Seconds for the search for weights; without it the search ends after some steps.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt.seconds import BatchTime, Line
    >>> two = Instance(3, [Request(0, 2, 1), Request(0, 2, 1)])
    >>> seconds_bound(two, BatchTime([Line(1000, 0)])).value_ns
    3000
    """
    began = time.monotonic()
    end = None if time_limit is None else began + time_limit
    arrivals = arrivals_ns(instance)
    best = max(_proofs(instance, model, arrivals, end), key=lambda found: found[0])[1]
    value = shares_bound(instance, model, best, arrivals)
    return SecondsBound(value, best, time.monotonic() - began)


def _proofs(
    instance: Instance, model: BatchTime, arrivals: Sequence[int], end: float | None
) -> Iterator[tuple[float, SharesProof]]:
    """Yield proofs and about what they give: neighbouring lines, then weights with the best."""
    when = np.array(arrivals, dtype=float)
    choices = [
        tuple(range(first, last))
        for first in range(len(model.lines))
        for last in range(first + 1, len(model.lines) + 1)
    ]
    values = {}
    for lines in choices:
        part = shares(instance, model, [model.lines[i] for i in lines], float)
        values[lines] = _Weights(instance.memory, when, part).value
        yield values[lines], SharesProof(lines)
    lines = max(values, key=values.__getitem__)
    part = shares(instance, model, [model.lines[i] for i in lines], float)
    weights = _Weights(instance.memory, when, part)
    for step in range(MOST_STEPS if len(instance) else 0):
        if end is not None and time.monotonic() > end:
            break
        weights.change(_STEP / (1 + step) ** 0.5)
        yield weights.value, SharesProof(lines, tuple(weights.parts.tolist()))


class _Weights:
    """Weights that follow a slope of the bound, which is concave in them."""

    def __init__(self, memory: int, arrivals: Floats, part: Shares) -> None:
        self._arrivals = arrivals
        self._takes: Floats = part.takes / memory
        self._ends: Floats = part.delays / (2.0 * part.takes)  # from mean service to completion
        self._earliest: Floats = arrivals + part.alone
        self._set(np.ones(len(arrivals)))

    def _set(self, weights: Floats) -> None:
        self._weights = weights
        self.parts = np.rint(weights * FULL).astype(int)
        rounded = self.parts / FULL
        served = _served(self._arrivals.tolist(), self._takes.tolist(),
                         (rounded / self._takes).tolist())  # fmt: skip
        means = np.array(served) / (2.0 * self._takes)
        self._gain: Floats = means + self._ends - self._earliest
        self.value = float((self._earliest + rounded * self._gain - self._arrivals).sum())

    def change(self, step: float) -> None:
        """Give weight to the requests whose fluid side is the later one, and take it away."""
        scale = float(np.abs(self._gain).mean()) or 1.0
        self._set(np.clip(self._weights + step / scale * self._gain, 0.0, 1.0))


def shares_bound(
    instance: Instance, model: BatchTime, proof: SharesProof, arrivals: Sequence[int] | None = None
) -> int:
    """Return the lower bound in nanoseconds that a proof gives, exactly and rounded up."""
    memory = instance.memory
    when = arrivals_ns(instance) if arrivals is None else arrivals
    part = shares(instance, model, [model.lines[i] for i in proof.lines], object)
    takes, delays, alone = (column.tolist() for column in (part.takes, part.delays, part.alone))
    weights = proof.weights or (FULL,) * len(instance)
    unit = max(takes, default=1) << _FINE
    slopes = [w * unit // (FULL * x) for w, x in zip(weights, takes, strict=True)]
    served = _served([a * memory for a in when], takes, slopes)
    # Everything is 2 M unit times a time in nanoseconds.
    total = 0
    for a, x, delay, own, slope, square in zip(
        when, takes, delays, alone, slopes, served, strict=True
    ):
        total += 2 * memory * ((unit - slope * x) * (a + own) - unit * a)
        total += slope * (memory * delay + square)
    return -(-total // (2 * memory * unit))


def _served(arrivals: list[Any], takes: list[Any], slopes: list[Any]) -> list[Any]:
    """Serve one at a time, the largest slope first; return of each request 2 * (sum of t dt)."""
    arriving = sorted(range(len(arrivals)), key=lambda i: -arrivals[i])
    left, squares = list(takes), [0 * x for x in takes]
    waiting: list[tuple[Any, int]] = []
    clock: Any = 0
    while arriving or waiting:
        if not waiting:
            clock = max(clock, arrivals[arriving[-1]])
        while arriving and arrivals[arriving[-1]] <= clock:
            i = arriving.pop()
            heappush(waiting, (-slopes[i], i))
        i = waiting[0][1]
        until = clock + left[i]
        if arriving and arrivals[arriving[-1]] < until:
            until = arrivals[arriving[-1]]
            left[i] -= until - clock
        else:
            heappop(waiting)
        squares[i] += (until - clock) * (until + clock)
        clock = until
    return squares

"""``seconds_bound``: no schedule on the clock of a batch-time model has less total latency.

Weights and interference are found in floats: they steer, and
`kvopt.bounds.seconds_evaluation` proves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from operator import itemgetter
from typing import Generic, TypeVar

import numpy as np
from msgspec.structs import replace

from kvopt.bounds.gradient_ascent import Point, Steps, ascend
from kvopt.bounds.prefix_shares import Processed, processed, shared_out
from kvopt.bounds.seconds_evaluation import (
    FULL,
    InterferenceWindows,
    Parts,
    fixed_parts,
    mixed_lines,
    parts_of,
    request_times,
    served,
    shares_bound,
)
from kvopt.incumbent.proofs import SharedRoundsProof, SharesProof
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats
from kvopt.problem.batch_time import BatchTime
from kvopt.problem.clocks import arrivals_ns
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.problem.requests import LARGEST_INTEGER
from kvopt.problem.scopes import Scope

MIX = 8
"""Parts in which two lines are mixed."""
_STEPS = Steps(60, 0.1, 1.0, 0.5, 0.9, recent=1.0, patience=100)
"""Steps of weights, of which each has its usual slope at first."""
_SHORT = 0.05
"""First step with interference, or with requests in parts: these start near the best shares."""
_ENOUGH = 1e-5
"""Expected gain, as a share of the bound, at which an ascent of weights ends."""
_BY_MEMORY = (48, 32, 16, 0)
"""Parts of f(0), in 64, that tokens in memory pay if the number of active requests is limited."""
PARTS = 8
"""Parts of the rounds of a request after the first."""
_BUSY = 0.98
"""Mean weight from which on requests wait so long that interference adds nothing."""
_WORTH = 1e-4
"""Lowest gain of parts, as a share of the bound, that justifies the longer proof."""
_COMPANY = 0.8
"""First interference, as a share of the rest of the weights."""


ProofInSeconds = TypeVar("ProofInSeconds", SharesProof, SharedRoundsProof)


@dataclass(frozen=True)
class SecondsBound(Generic[ProofInSeconds]):
    """A lower bound on total latency in nanoseconds, and its proof.

    Parameters
    ----------
    value_ns
        No schedule has less total latency.
    proof
        Its proof.
    is_final
        Whether the search for it ended, so that more time gains nothing.
    """

    value_ns: int
    proof: ProofInSeconds
    is_final: bool = True


def seconds_bound(
    instance: Instance,
    model: BatchTime,
    *,
    scope: Scope | str = Scope.PAUSES,
    budget: Budget | None = None,
) -> SecondsBound[SharesProof]:
    """Return a proved lower bound on total latency in nanoseconds.

    Parameters
    ----------
    instance
        Requests, and when they arrive (`kvopt.problem.clocks.arrivals_ns`).
    model
        The batch-time model; rounds may last longer, never less.
    scope
        Schedules to cover.  All proofs cover pauses; those that cover prompts in pieces use one
        line of the model or a mix of two, and interference of pieces; they cover pauses too.
        Interference is of one worker, so a fleet has none.  With ``sharing`` a request holds
        its share of a prefix, and only work that is surely done counts
        (`kvopt.bounds.prefix_shares`).
    budget
        Time for the search for weights; without a limit it ends after some steps.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> from kvopt import BatchTime, Line
    >>> two = Instance(3, [Request(0, 2, 1), Request(0, 2, 1)])
    >>> seconds_bound(two, BatchTime([Line(1000, 0)])).value_ns
    3000
    """
    refuse_blocks(instance, "the bound in seconds")
    arrivals = arrivals_ns(instance)
    chunks, done = Scope.parse(scope).covers(Scope.CHUNKS), None
    if Scope.parse(scope).covers(Scope.SHARING) and "prefix" in instance.extras:
        done = processed(instance, arrivals)
        instance = shared_out(instance, chunks=chunks)
    alone = request_times(instance, model, model.lines, float).alone
    times = _without_gaps(arrivals, 2.0 * alone.sum())
    best = _Proofs(instance, model, times, chunks, done, budget or Budget()).best()
    value = shares_bound(instance, model, best, arrivals, chunks=chunks, done=done)
    return SecondsBound(value, best)


@dataclass
class _Proofs:
    """Proofs with their values in floats: of lines, then with weights, then with interference.

    Parameters
    ----------
    instance, model, chunks, done
        The problem, as of `shares_bound`.
    times
        Arrivals, without gaps.
    budget
        Time for the search.
    """

    instance: Instance
    model: BatchTime
    times: Floats
    chunks: bool
    done: Processed | None
    budget: Budget

    def best(self) -> SharesProof:
        """Return the best proof."""
        model = self.model
        # Lines first: ascents from all of them would take too long, values at full weights do not.
        choices = _mixes(model) if self.chunks else _roofs(model)
        if self.instance.max_active is not None:
            choices = _shared_out(self.instance, model, choices)
        started = [(_Latency(self, proof), proof) for proof in choices]
        starts = [max(started, key=lambda pair: pair[0].value)]
        if self.chunks:
            singles = [SharesProof((line,)) for line in range(len(model.lines))]
            starts = [*((_Latency(self, proof), proof) for proof in singles), *starts]
        best = max((self._climbed(*start) for start in starts), key=itemgetter(0))
        if not len(self.instance) or self.chunks or self.budget.over():
            return best[1]
        counts = np.array([float(request.weight) for request in self.instance])
        weights = np.array(best[1].weights or FULL * counts) / (FULL * counts)
        proof = replace(best[1], weights=(), company=(), parts=PARTS)
        # Parts make longer proofs, so they have to gain enough.  Where weights are nearly full
        # interference adds nothing: there parts have to gain without it.
        latency, lowest = _Latency(self, proof), best[0] * (1 + _WORTH)
        if weights.mean() <= _BUSY or latency.value > lowest:
            value, proof = self._climbed(latency, proof, weights)
            return proof if value > lowest else best[1]
        return best[1]

    def _climbed(
        self, latency: _Latency, proof: SharesProof, earlier: Floats | None = None
    ) -> tuple[float, SharesProof]:
        """Return the best proof by some lines with its value in floats.

        Interference begins with the best of these weights, none, and those of an ``earlier``
        ascent.
        """
        start = latency.start
        steps = _STEPS._replace(length=_SHORT) if proof.parts else _STEPS
        top = ascend(latency, start, steps, self.budget)
        weights = top.point[0]
        best = (top.value, proof)
        if top.point is not start:
            best = top.value, replace(proof, weights=latency.rounded(top.point)[0])
        earlier = weights if earlier is None else earlier
        is_busy = not len(weights) or earlier.mean() > _BUSY
        if self.instance.workers > 1 or is_busy or self.budget.over():
            return best
        latency.let_interfere()
        points = [
            (share, _COMPANY * (1.0 - share))
            for share in (weights, np.zeros_like(weights), earlier)
        ]
        start = max(points, key=lambda point: latency.evaluate(point)[0])
        steps = _STEPS._replace(length=_SHORT, limit=_STEPS.limit - 1)
        top = ascend(latency, start, steps, self.budget)
        if top.value <= best[0]:
            return best
        whole, interference = latency.rounded(top.point)
        return top.value, replace(proof, weights=whole, company=interference)


def _roofs(model: BatchTime) -> Iterator[SharesProof]:
    """Yield neighbouring lines, whose maximum counts."""
    for ends in combinations(range(len(model.lines) + 1), 2):
        yield SharesProof(tuple(range(*ends)))


def _mixes(model: BatchTime) -> Iterator[SharesProof]:
    """Yield a line, and mixes of two."""
    yield SharesProof((0,))
    coefficients = (x for line in model.lines for x in (line.round_ns, line.token_ns))
    if MIX * max(*coefficients, model.kv_ns, model.prompt_ns) > LARGEST_INTEGER:
        return
    for pair in combinations(range(len(model.lines)), 2):
        for share in range(1, MIX):
            yield SharesProof(pair, mix=(share, MIX - share))


def _shared_out(
    instance: Instance, model: BatchTime, proofs: Iterable[SharesProof]
) -> Iterator[SharesProof]:
    """Yield proofs, and the same with other shares of f(0) that leave a round some time."""
    for proof in proofs:
        yield proof
        lines = mixed_lines(model, proof)[1]
        for part in _BY_MEMORY:
            if max(fixed_parts(instance, lines, part)) > 0:
                yield replace(proof, by_memory=part)


def _without_gaps(arrivals: Sequence[int], longest: float) -> Floats:
    """Return arrivals from 0 on, with no gap longer than that.

    Nothing is active after so long, so values of weights are the same, and floats keep their digits
    on a clock that counts from 1970.
    """
    times = sorted({*arrivals})
    gaps = (min(float(after - before), longest) for before, after in pairwise(times))
    near = dict(zip(times, accumulate(gaps, initial=0.0), strict=False))
    return np.array([near[arrival] for arrival in arrivals], dtype=float)


class _Latency:
    """The bound as a concave function of weights and interference, parts of those of requests.

    ``value`` is that of the largest weights, the first point.
    """

    def __init__(self, problem: _Proofs, proof: SharesProof) -> None:
        instance = problem.instance
        slow, lines, by = mixed_lines(problem.model, proof)
        fixed = fixed_parts(instance, lines, proof.by_memory)
        times = request_times(
            instance, slow, lines, float, chunks=problem.chunks, done=problem.done, fixed=fixed
        )
        owners, *columns = parts_of(instance, slow, lines, times, proof.parts, fixed)
        self._cut = Parts(owners, *(column / by for column in columns))
        memory, takes = instance.total_memory, times.takes / by
        self._arrivals, self._alone = problem.times, times.alone / by
        self._counts = np.array([float(request.weight) for request in instance])
        self._works: Floats = self._cut.takes / memory
        self._takes: Floats = takes / memory
        # From mean service to completion.
        self._ends: Floats = times.delays / by**2 / (2.0 * takes)
        self._begins: Floats = self._arrivals[owners] + self._cut.begins
        self._windows: InterferenceWindows | None = None
        self.start: Point = np.ones(len(instance)), np.zeros(len(instance))
        self.value = self.evaluate(self.start)[0]

    def let_interfere(self) -> None:
        """Let interference count from now on."""
        self._windows = InterferenceWindows.of(self._arrivals, self._alone, self._cut)

    def rounded(self, point: Point) -> tuple[tuple[int, ...], ...]:
        """Return weights and interference in whole numbers, as in a proof."""
        weights, interference = point
        limit = FULL * self._counts
        whole = np.rint(weights * limit)
        beside = np.minimum(np.rint(interference * limit), limit - whole)
        return tuple(tuple(share.astype(int).tolist()) for share in (whole, beside))

    def evaluate(self, point: Point) -> tuple[float, tuple[float, Floats, Floats]]:
        """Return the bound at a point; and again with slopes by weights and by interference."""
        whole = self.rounded(point)
        weights, interference = (np.array(share, dtype=float) / FULL for share in whole)
        # Weights count the mean time of service by the fluid, and from there to the completion.
        slopes = (weights / self._takes)[self._cut.owners]
        squares = self._cut.summed(served(self._begins, self._works, slopes))
        fluid = squares / (2.0 * self._takes) + self._ends - self._arrivals
        value = float((self._counts * self._alone + weights * (fluid - self._alone)).sum())
        if self._windows is None:
            return value, (value, fluid - self._alone, 0.0 * interference)
        rest = self._counts - weights - interference
        added, delays, met = _with_interference(self._windows, interference, rest)
        value += added
        return value, (value, fluid - (self._alone + delays), met - delays)

    def slope(self, point: Point, data: tuple[float, Floats, Floats]) -> Point | None:
        """Return the slope, None if weights gain too little and interference does not count."""
        value, by_weight, by_interference = data
        part = np.where(by_weight > 0, 1.0 - point[0], -point[0])
        gain = float((part * self._counts * by_weight).sum())
        if self._windows is None and gain <= _ENOUGH * value:
            return None
        return by_weight, by_interference

    def moved(self, point: Point, directions: Point, step: float) -> Point:
        """Move a share to the later side of each request, from the other side."""
        weights, interference = (
            np.clip(share + step * direction, 0.0, 1.0)
            for share, direction in zip(point, directions, strict=True)
        )
        excess = np.maximum(weights + interference - 1.0, 0.0) / 2.0
        weights = np.clip(weights - excess, 0.0, 1.0)
        return weights, np.clip(interference - excess, 0.0, 1.0 - weights)


def _with_interference(
    windows: InterferenceWindows, interference: Floats, per_delay: Floats
) -> tuple[float, Floats, Floats]:
    """Return the gain by interference, each request's delay, and others' works in its window.

    These are Claim 5.5 of docs/theory, and its slopes by the rest and by interference.
    """
    cut, works = windows.cut, windows.works
    part = cut.works / np.maximum(works, np.finfo(float).tiny)[cut.owners]
    costs, waits = windows.cheapest(interference, per_delay)
    begins, delays = windows.first + waits, np.maximum(waits - cut.early, 0.0)
    ranked = np.argsort(begins, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(cut.works[ranked])])
    first, last = (np.searchsorted(begins[ranked], x) for x in (windows.begins, windows.ends))
    met = sums[last] - sums[first] - works
    return float(costs @ part - interference @ works), cut.summed(delays * part), met

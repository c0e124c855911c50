"""``seconds_bound``: no schedule on the clock of a batch-time model has less total latency.

Weights and company are found in floats: they steer, and `kvopt.bounds.seconds_evaluation` proves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from operator import itemgetter
from typing import Generic, TypeVar

import numpy as np
from msgspec.structs import replace

from kvopt.bounds.seconds_evaluation import (
    FULL,
    Parts,
    Shares,
    Windows,
    fixed_parts,
    mixed,
    parts_of,
    served,
    shares,
    shares_bound,
)
from kvopt.bounds.shares import Processed, processed, shared_out
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
MOST_STEPS = 60
"""Limit of the changes of the weights in each of the two stages."""
_STEP = 0.1
"""First change of a share whose two sides have their usual difference."""
_STEP_BESIDE = 0.05
"""The same with company, or with requests in parts: these start near the best shares."""
_MOMENTUM, _MEMORY = 0.5, 0.9
"""Decay, in each step, of the means of the difference and of its square."""
_ENOUGH = 1e-5
"""Expected gain, as a share of the bound, at which a stage ends."""
_BY_MEMORY = (48, 32, 16, 0)
"""Parts of f(0), in 64, that tokens in memory pay if the number of active requests is limited."""
PARTS = 8
"""Parts of the rounds of a request after the first."""
_BUSY = 0.98
"""Mean weight from which on requests wait so long that company adds nothing."""
_WORTH = 1e-4
"""Least gain of parts, as a share of the bound, that justifies the longer proof."""
_COMPANY = 0.8
"""First company, as a share of the rest of the weights."""


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
        line of the model or a mix of two, and company of pieces; they cover pauses too.  Company
        is of one worker, so a fleet has none.  With ``sharing`` a request holds its share of
        a prefix, and only work that is surely done counts (`kvopt.bounds.shares`).
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

    is_late = (budget or Budget()).over
    proofs = _proofs(instance, model, arrivals, chunks, done, is_late)
    _, best = max(proofs, key=itemgetter(0))
    value = shares_bound(instance, model, best, arrivals, chunks=chunks, done=done)
    return SecondsBound(value, best)


def _proofs(
    instance: Instance,
    model: BatchTime,
    arrivals: Sequence[int],
    chunks: bool,
    done: Processed | None,
    is_late: Callable[[], bool],
) -> Iterator[tuple[float, SharesProof]]:
    """Yield proofs with their values in floats: of lines, then of weights, then of company."""
    single = [SharesProof((line,)) for line in range(len(model.lines))]
    counts = np.array([float(request.weight) for request in instance])
    alone = _taken(instance, model, single[0])[0].alone
    when = _without_gaps(arrivals, 2.0 * alone.sum())

    def started(chosen: SharesProof) -> tuple[_Weights, SharesProof]:
        taken = _taken(instance, model, chosen, chunks, done)
        return _Weights(instance.total_memory, when, counts, *taken), chosen

    choices = _mixes(model) if chunks else _roofs(model)
    if instance.max_active is not None:
        choices = _shared_out(instance, model, choices)
    largest = max(map(started, choices), key=_value)
    best = largest[0].value, largest[1]
    for climb, chosen in (*map(started, single if chunks else ()), largest):
        for pair in _climbed(climb, chosen, instance.workers == 1, is_late):
            best = max(best, pair, key=itemgetter(0))
            yield pair
    if len(instance) and not (chunks or is_late()):
        weights = np.array(best[1].weights or FULL * counts) / (FULL * counts)
        climb, chosen = started(replace(best[1], weights=(), company=(), parts=PARTS))
        least = best[0] * (1 + _WORTH)
        if weights.mean() <= _BUSY or climb.value > least:
            found = _climbed(climb, chosen, instance.workers == 1, is_late, weights)
            yield from (pair for pair in found if pair[0] > least)


def _value(pair: tuple[_Weights, SharesProof]) -> float:
    return pair[0].value


def _climbed(
    climb: _Weights,
    chosen: SharesProof,
    company: bool,
    is_late: Callable[[], bool],
    known: Floats | None = None,
) -> Iterator[tuple[float, SharesProof]]:
    """Yield proofs by some lines with their values in floats, with better and better weights.

    Company then begins with the best of these weights, none, and those that are known.
    """
    yield climb.value, chosen
    best, weights = climb.value, climb.weights
    first = _STEP_BESIDE if chosen.parts else _STEP
    for step in range(MOST_STEPS):
        if is_late() or climb.room <= _ENOUGH * climb.value:
            break
        climb.change(first / (1 + step) ** 0.5)
        yield climb.value, replace(chosen, weights=climb.parts)
        if climb.value > best:
            best, weights = climb.value, climb.weights
    least = weights if known is None else known
    if not company or not len(weights) or least.mean() > _BUSY:
        return
    climb.accompany([weights, np.zeros_like(weights), least])
    for step in range(MOST_STEPS):
        if is_late():
            break
        yield climb.value, replace(chosen, weights=climb.parts, company=climb.company_parts)
        climb.change(_STEP_BESIDE / (1 + step) ** 0.5)


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
        lines = mixed(model, proof)[1]
        for part in _BY_MEMORY:
            if max(fixed_parts(instance, lines, part)) > 0:
                yield replace(proof, by_memory=part)


def _taken(
    instance: Instance,
    model: BatchTime,
    chosen: SharesProof,
    chunks: bool = False,
    done: Processed | None = None,
) -> tuple[Shares, Parts]:
    """Return the machine time of requests, in all and in parts, in floats."""
    slow, lines, by = mixed(model, chosen)
    fixed = fixed_parts(instance, lines, chosen.by_memory)
    part = shares(instance, slow, lines, float, chunks=chunks, done=done, fixed=fixed)
    cut = parts_of(instance, slow, lines, part, chosen.parts, fixed)
    once = (part.alone / by, part.prompts / by, part.early / by)
    whole = Shares(part.takes / by, part.delays / by**2, *once)
    return whole, cut.map(lambda column: column / by)


def _without_gaps(arrivals: Sequence[int], longest: float) -> Floats:
    """Return arrivals from 0 on, with no gap longer than that.

    Nothing is active after so long, so values of weights are the same, and floats keep their digits
    on a clock that counts from 1970.
    """
    times = sorted({*arrivals})
    gaps = (min(float(after - before), longest) for before, after in pairwise(times))
    near = dict(zip(times, accumulate(gaps, initial=0.0), strict=False))
    return np.array([near[arrival] for arrival in arrivals], dtype=float)


class _Weights:
    """Weights and company that follow a slope of the bound, which is concave in them.

    They are parts of the weight of each request, which counts its latency.
    """

    def __init__(
        self, memory: int, arrivals: Floats, counts: Floats, part: Shares, cut: Parts
    ) -> None:
        self._arrivals, self._alone, self._cut = arrivals, part.alone, cut
        self._counts = counts
        self._works: Floats = cut.takes / memory
        self._takes: Floats = part.takes / memory
        self._ends: Floats = part.delays / (2.0 * part.takes)  # from mean service to completion
        self._begins: Floats = arrivals[cut.owners] + cut.begins
        self._windows: Windows | None = None
        self._ways = Way(len(arrivals)), Way(len(arrivals))
        self._set(np.ones(len(arrivals)), np.zeros(len(arrivals)))

    def accompany(self, choices: Sequence[Floats]) -> None:
        """Climb from the best of some weights, with interference too."""
        self._windows = Windows.of(self._arrivals, self._alone, self._cut)

        def tried(weights: Floats) -> float:
            self._set(weights, _COMPANY * (1.0 - weights))
            return self.value

        tried(max(choices, key=tried))
        self._ways = Way(len(self.weights)), Way(len(self.weights))

    def _set(self, weights: Floats, company: Floats) -> None:
        excess = np.maximum(weights + company - 1.0, 0.0) / 2.0
        self.weights = np.clip(weights - excess, 0.0, 1.0)
        self.company = np.clip(company - excess, 0.0, 1.0 - self.weights)
        most = FULL * self._counts
        whole = np.rint(self.weights * most)
        beside = np.minimum(np.rint(self.company * most), most - whole)
        self.parts, self.company_parts = (
            tuple(share.astype(int).tolist()) for share in (whole, beside)
        )
        self._evaluate(whole / FULL, beside / FULL)

    def _evaluate(self, weights: Floats, company: Floats) -> None:
        slopes = (weights / self._takes)[self._cut.owners]
        squares = self._cut.summed(served(self._begins, self._works, slopes))
        fluid = squares / (2.0 * self._takes) + self._ends - self._arrivals
        self.value = float((self._counts * self._alone + weights * (fluid - self._alone)).sum())
        latency = self._alone
        if self._windows is not None:
            rest = self._counts - weights - company
            added, delays, met = _accompanied(self._windows, company, rest)
            self.value += added
            latency = latency + delays
            self._beside: Floats = met - delays
        self._gain: Floats = fluid - latency

    @property
    def room(self) -> float:
        """Return an upper limit on the gain by other weights, without company."""
        part = np.where(self._gain > 0, 1.0 - self.weights, -self.weights)
        return float((part * self._counts * self._gain).sum())

    def change(self, step: float) -> None:
        """Move a share to the later side of each request, from the other side."""
        by_weight, by_company = self._ways
        weights, company = self.weights + step * by_weight.after(self._gain), self.company
        if self._windows is not None:
            company = company + step * by_company.after(self._beside)
        self._set(np.clip(weights, 0.0, 1.0), np.clip(company, 0.0, 1.0))


class Way:
    """Directions that follow a gradient, each share on its own scale (Adam).

    One scale for all would be that of the requests that wait longest: too small for the others.
    """

    def __init__(
        self, shape: int | tuple[int, ...], momentum: float = _MOMENTUM, memory: float = _MEMORY
    ) -> None:
        self._mean, self._square, self._steps = np.zeros(shape), np.zeros(shape), 0
        self._momentum, self._memory = momentum, memory

    def after(self, gain: Floats) -> Floats:
        """Return the next direction: 1 or -1 if the gradient keeps its sign."""
        self._steps += 1
        self._mean = self._momentum * self._mean + (1 - self._momentum) * gain
        self._square = self._memory * self._square + (1 - self._memory) * gain**2
        mean = self._mean / (1 - self._momentum**self._steps)
        size = np.sqrt(self._square / (1 - self._memory**self._steps))
        return mean / np.maximum(size, np.finfo(float).tiny)


def _accompanied(windows: Windows, company: Floats, free: Floats) -> tuple[float, Floats, Floats]:
    """Return the gain by company, the delay of each request, and others' works in each window."""
    cut, works = windows.cut, windows.works
    part = cut.works / np.maximum(works, np.finfo(float).tiny)[cut.owners]
    costs, waits = windows.cheapest(company, free)
    begins, delays = windows.first + waits, np.maximum(waits - cut.early, 0.0)
    ranked = np.argsort(begins, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(cut.works[ranked])])
    first, last = (np.searchsorted(begins[ranked], x) for x in (windows.begins, windows.ends))
    met = sums[last] - sums[first] - works
    return float(costs @ part - company @ works), cut.summed(delays * part), met

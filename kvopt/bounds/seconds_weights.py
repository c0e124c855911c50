"""Good weights for a bound in seconds, found in floats: they steer, they prove nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from kvopt.bounds.seconds_evaluation import FULL, served
from kvopt.bounds.seconds_shares import Shares, shares
from kvopt.model.batch_time import BatchTime
from kvopt.model.instance import Instance
from kvopt.search.proofs import SharesProof

if TYPE_CHECKING:
    from kvopt.bounds.seconds_company import Company

Floats = npt.NDArray[np.float64]

MOST_STEPS = 60
"""Limit of the changes of the weights in each of the two stages."""
_STEP = 0.1
"""First change of the share of a request whose two sides are an average difference apart, among
those whose share can change."""
_STEP_BESIDE = 0.05
"""First change of a share in the stage with company, which starts near the end."""
_ENOUGH = 1e-5
"""Expected gain, as a share of the bound, at which a stage ends."""
_BUSY = 0.98
"""Mean weight from which on requests wait so long that company adds nothing."""
_COMPANY = 0.8
"""First company, as a share of what the weights leave."""


def best_weights(
    instance: Instance, model: BatchTime, arrivals: Sequence[int], is_late: Callable[[], bool]
) -> SharesProof:
    """Return the best proof until it is late: of lines first, then of weights, then of company."""
    return max(_proofs(instance, model, arrivals, is_late), key=lambda found: found[0])[1]


def _proofs(
    instance: Instance, model: BatchTime, arrivals: Sequence[int], is_late: Callable[[], bool]
) -> Iterator[tuple[float, SharesProof]]:
    """Yield proofs and about what they give."""
    choices = [
        tuple(range(first, last))
        for first in range(len(model.lines))
        for last in range(first + 1, len(model.lines) + 1)
    ]

    def part_of(lines: tuple[int, ...]) -> Shares:
        return shares(instance, model, [model.lines[i] for i in lines], float)

    when = _without_gaps(arrivals, 2.0 * part_of(choices[0]).alone.sum())
    values = {lines: _Weights(instance.memory, when, part_of(lines)).value for lines in choices}
    lines = max(values, key=values.__getitem__)
    yield values[lines], SharesProof(lines)
    climb = _Weights(instance.memory, when, part_of(lines))
    best, weights = climb.value, climb.weights
    for step in range(MOST_STEPS):
        if is_late() or climb.room <= _ENOUGH * climb.value:
            break
        climb.change(_STEP / (1 + step) ** 0.5)
        yield climb.value, SharesProof(lines, climb.parts)
        if climb.value > best:
            best, weights = climb.value, climb.weights
    if not len(instance) or weights.mean() > _BUSY:
        return
    climb.accompany([weights, np.zeros_like(weights)])
    for step in range(MOST_STEPS):
        if is_late():
            break
        yield climb.value, SharesProof(lines, climb.parts, climb.company_parts)
        climb.change(_STEP_BESIDE / (1 + step) ** 0.5)


def _without_gaps(arrivals: Sequence[int], longest: float) -> Floats:
    """Return arrivals from 0 on, with no gap longer than that.

    Nothing is active after so long, so weights are judged alike, and floats keep their digits on
    a clock that counts from 1970.
    """
    times, places = np.unique(np.array(arrivals, dtype=np.uint64), return_inverse=True)
    gaps = np.diff(times, prepend=times[:1]).astype(float)
    near: Floats = np.minimum(gaps, longest).cumsum()[places]
    return near


class _Weights:
    """Weights and company that follow a slope of the bound, which is concave in them."""

    def __init__(self, memory: int, arrivals: Floats, part: Shares) -> None:
        self._arrivals, self._alone, self._works = arrivals, part.alone, part.prompts
        self._takes: Floats = part.takes / memory
        self._ends: Floats = part.delays / (2.0 * part.takes)  # from mean service to completion
        self._company: Company | None = None
        self._set(np.ones(len(arrivals)), np.zeros(len(arrivals)))

    def accompany(self, choices: Sequence[Floats]) -> None:
        """Go on from the best of some weights, and with company too."""
        from kvopt.bounds.seconds_company import Company  # it loads numba

        self._company = Company(self._arrivals, self._alone, self._works)

        def tried(weights: Floats) -> float:
            self._set(weights, _COMPANY * (1.0 - weights))
            return self.value

        tried(max(choices, key=tried))

    def _set(self, weights: Floats, company: Floats) -> None:
        excess = np.maximum(weights + company - 1.0, 0.0) / 2.0
        self.weights = np.clip(weights - excess, 0.0, 1.0)
        self.company = np.clip(company - excess, 0.0, 1.0 - self.weights)
        whole = np.rint(self.weights * FULL)
        beside = np.minimum(np.rint(self.company * FULL), FULL - whole)
        self.parts, self.company_parts = _integers(whole), _integers(beside)
        self._evaluate(whole / FULL, beside / FULL)

    def _evaluate(self, weights: Floats, company: Floats) -> None:
        slopes = (weights / self._takes).tolist()
        squares = served(self._arrivals.tolist(), self._takes.tolist(), slopes)
        fluid = np.array(squares) / (2.0 * self._takes) + self._ends - self._arrivals
        self.value = float((self._alone + weights * (fluid - self._alone)).sum())
        latency = self._alone
        if self._company is not None:
            added, delays, met = self._company.evaluate(company, 1.0 - weights - company)
            self.value += added
            latency = latency + delays
            self._beside: Floats = met - self._works - delays
        self._gain: Floats = fluid - latency

    @property
    def room(self) -> float:
        """By how much other weights, without company, can raise the bound at most."""
        part = np.where(self._gain > 0, 1.0 - self.weights, -self.weights)
        return float((part * self._gain).sum())

    def change(self, step: float) -> None:
        """Give a share to the side of a request that is the later one, and take it away."""
        weights = self.weights + step * _scaled(self._gain, self.weights)
        company = self.company
        if self._company is not None:
            company = company + step * _scaled(self._beside, company)
        self._set(np.clip(weights, 0.0, 1.0), np.clip(company, 0.0, 1.0))


def _scaled(gain: Floats, share: Floats) -> Floats:
    """Return a direction whose mean size is 1 where a share can follow it."""
    movable = np.where(gain > 0, share < 1.0, share > 0.0)
    scale = float(np.abs(gain[movable]).mean()) if movable.any() else 1.0
    return gain / (scale or 1.0)


def _integers(values: Floats) -> tuple[int, ...]:
    return tuple(values.astype(int).tolist())

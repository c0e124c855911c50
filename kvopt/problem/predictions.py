"""Beliefs of a scheduler about outputs before it sees them.

An online scheduler does not know the length of an answer.  It has an interval ``[lower, upper]``
and, if its rule needs a single number, a believed output.  This module makes both; the simulator
keeps the true outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from random import Random
from typing import Literal, get_args

from kvopt.errors import InvalidInput, unknown_name
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request

Believed = Literal["exact", "lower", "upper", "mid", "noise"]
Intervals = Literal["file", "rough", "buckets", "relative"]


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Believed outputs of all requests, in instance order, and the intervals of some rules."""

    output: list[int]
    lower: list[int]
    upper: list[int]


@dataclass(frozen=True, slots=True)
class PredictionModel:
    """Model of beliefs.

    Parameters
    ----------
    pred
        The believed output: ``exact`` (the truth), ``lower``, ``upper`` or ``mid`` of the
        interval, or ``noise``: the true output times a uniform draw from [1 - eps, 1 + eps]
        (jaillet-2025-v2 section 5.2.2), rounded, at least 1.
    intervals
        Source of intervals: ``file`` (the instance; [o, o] if it has none), or the
        experiments of chen-2025 section 6: ``rough`` (one interval [1, width] for all),
        ``buckets`` ([1, width], [width + 1, 2 width], ...) and ``relative`` (the integers in
        [(1 - eps) o, (1 + eps) o]).
    eps, width
        Their parameters; ``width`` is 1,000 for ``rough`` and 100 for ``buckets``.
    seed
        Seed of noise.

    Notes
    -----
    A scheduler knows the prompt and that every request fits into memory alone, so no belief
    exceeds ``M - s``.
    """

    pred: Believed = "exact"
    intervals: Intervals = "file"
    eps: Fraction = Fraction(0)
    width: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for field, kind in (("pred", Believed), ("intervals", Intervals)):
            if (value := getattr(self, field)) not in get_args(kind):
                raise unknown_name(value, get_args(kind), field)
        if not 0 <= self.eps <= 1:
            raise InvalidInput(f"must be in 0 .. 1, got {self.eps}", field="eps")
        if self.width is not None and self.width < 1:
            raise InvalidInput(f"must be at least 1, got {self.width}", field="width")

    def beliefs(self, instance: Instance) -> Beliefs:
        """Return the beliefs about every request."""
        random, believed, is_exact = Random(self.seed), Beliefs([], [], []), self.pred == "exact"
        for request in instance:
            longest = instance.memory - request.prompt
            lower, upper = self._interval(request)
            lower, upper = min(lower, longest), min(upper, longest)
            believed.lower.append(lower)
            believed.upper.append(upper)
            output = request.output
            if not is_exact:
                output = self._output(output, lower, upper, longest, random)
            believed.output.append(output)
        return believed

    def _interval(self, request: Request) -> tuple[int, int]:
        output = request.output
        if self.intervals == "rough":
            return 1, self.width or 1000
        if self.intervals == "buckets":
            width = self.width or 100
            first = (output - 1) // width * width + 1
            return first, first + width - 1
        if self.intervals == "relative":
            return max(1, ceil((1 - self.eps) * output)), floor((1 + self.eps) * output)
        predicted = request.predicted
        return (output, output) if predicted is None else (predicted.lower, predicted.upper)

    def _output(self, output: int, lower: int, upper: int, longest: int, random: Random) -> int:
        if self.pred == "noise":
            eps = float(self.eps)
            return min(max(1, round(output * random.uniform(1 - eps, 1 + eps))), longest)
        if self.pred == "mid":
            return (lower + upper) // 2
        return lower if self.pred == "lower" else upper

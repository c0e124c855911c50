"""Families of chen-2025 section 5: one prompt for all, outputs inside a known interval."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import accumulate, repeat
from operator import mul

from kvopt.errors import InvalidInput
from kvopt.problem.families.drawing import Draw, Drawing, Drawn
from kvopt.problem.requests import Prediction, Request


def _requests(draw: Draw, lower: int, output: Callable[[], int]) -> Drawn:
    memory, prompt, upper = draw.memory or 100, draw.integer("prompt"), draw.integer("u")
    if prompt + upper > memory:
        reason = f"must be at least prompt + u = {prompt + upper}, got {memory}"
        raise InvalidInput(reason, field="memory")
    interval = Prediction(lower, upper)
    return memory, [Request(0, prompt, output(), predicted=interval) for _ in range(draw.count(50))]


def _two_point(draw: Draw) -> Drawn:
    lower, upper, share = draw.integer("l"), draw.integer("u"), draw.number("share")
    if lower > upper:
        raise InvalidInput(f"{lower} is above u = {upper}", field="l")
    return _requests(draw, lower, lambda: lower if draw.random.random() < share else upper)


def _geometric(draw: Draw, power: int) -> Drawn:
    """P(o = k) is proportional to k^power q^(k-1) on 1..u."""
    powers = accumulate(repeat(draw.number("q"), draw.integer("u") - 1), mul, initial=1.0)
    sums = list(accumulate(k**power * weight for k, weight in enumerate(powers, 1)))
    # One inversion, so rare ranges cost no redraws.
    return _requests(draw, 1, lambda: 1 + bisect_right(sums, sums[-1] * draw.random.random()))


DRAWS: dict[str, Drawing] = {
    "two-point": _two_point,
    "geometric": partial(_geometric, power=0),
    "linear-geometric": partial(_geometric, power=1),
}

"""Families of chen-2025 section 5: one prompt for all, outputs inside a known interval."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from kvopt.errors import InvalidInput
from kvopt.families.base import Family, Parameter
from kvopt.families.draw import Draw
from kvopt.model.instance import Prediction, Request

_PROMPT = Parameter("prompt", "prompt of every request", 1, int, 0, 10**9)
_UPPER = Parameter("u", "largest output, and upper end of the interval", 50, int, 1, 10**6)
_Q = Parameter("q", "1 - p of the distribution", 0.9, float, 0.0, 0.9999)


def _requests(draw: Draw, lower: int, output: Callable[[], int]) -> tuple[int, list[Request]]:
    memory = draw.memory if draw.memory is not None else 100
    prompt, upper = draw.integer("prompt"), draw.integer("u")
    if prompt + upper > memory:
        reason = f"must be at least prompt + u = {prompt + upper}, got {memory}"
        raise InvalidInput(reason, field="--memory")
    interval = Prediction(lower, upper)
    count = draw.n if draw.n is not None else 50
    return memory, [Request(0, prompt, output(), predicted=interval) for _ in range(count)]


def _two_point(draw: Draw) -> tuple[int, list[Request]]:
    lower, upper, share = draw.integer("l"), draw.integer("u"), draw.number("share")
    if lower > upper:
        raise InvalidInput(f"{lower} is above u = {upper}", field="-p l")
    return _requests(draw, lower, lambda: lower if draw.random.random() < share else upper)


def _geometric(draw: Draw) -> tuple[int, list[Request]]:
    """P(o = k) is proportional to q^(k-1) on 1..u."""
    return _requests(draw, 1, _output_by_weight(draw, _powers(draw)))


def _linear_geometric(draw: Draw) -> tuple[int, list[Request]]:
    """P(o = k) is proportional to k q^(k-1) on 1..u."""
    weights = [k * power for k, power in enumerate(_powers(draw), 1)]
    return _requests(draw, 1, _output_by_weight(draw, weights))


def _powers(draw: Draw) -> list[float]:
    q, powers = draw.number("q"), [1.0]
    for _ in range(draw.integer("u") - 1):
        powers.append(powers[-1] * q)
    return powers


def _output_by_weight(draw: Draw, weights: list[float]) -> Callable[[], int]:
    """Return a draw from 1 .. len(weights); one inversion, so rare ranges cost no redraws."""
    sums = list(accumulate(weights))
    return lambda: 1 + bisect_right(sums, sums[-1] * draw.random.random())


FAMILIES = (
    Family(
        "two-point",
        "outputs are l or u, interval [l, u]",
        "chen-2025 section 5.1",
        _two_point,
        (
            Parameter("l", "smaller output", 5, int, 1, 10**6),
            _UPPER,
            Parameter("share", "chance of l", 0.5, float, 0.0, 1.0),
            _PROMPT,
        ),
    ),
    Family(
        "geometric",
        "outputs geometric with parameter 1 - q, at most u, interval [1, u]",
        "chen-2025 section 5.2",
        _geometric,
        (_Q, _UPPER, _PROMPT),
    ),
    Family(
        "linear-geometric",
        "outputs linearly weighted geometric, at most u, interval [1, u]",
        "chen-2025 section 5.3",
        _linear_geometric,
        (_Q, _UPPER, _PROMPT),
    ),
)

"""Synthetic traffic of the papers, matched to the statistics they print.

The conversations (LMSYS-Chat-1M) are gated, so lengths are drawn from distributions fitted
to the published means, medians and ranges:

* conversation: lognormal, clipped to 1..468 (prompt) and 1..883 (output), rounded down;
  medians 11 and 43, means 41 and 85;
* summarisation: the prompt mean 2546 lies below its median 2667, which no lognormal can do:
  a normal around the median clipped to 1..4000, where the upper end takes off enough;
  output lognormal clipped to 1..4096, median 161, mean 296.

A log of two humps is no traffic of a paper: its rate rises and falls twice, and prompts are long.

The parameters below solve these equations for the clipped and rounded distributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from kvopt.errors import InvalidInput
from kvopt.problem.families.drawing import Draw, Drawing, Drawn, clipped
from kvopt.problem.requests import Request

PAPER_MEMORY = 16_492
"""KV cache of two A100s with Llama-2-70B, the value that jaillet-2025-v2 observed."""

_MIN_RATE = 1e-6
"""Requests a second; below, arrivals would leave the range of clocks."""
_ROUNDS_A_SECOND = 20
"""About the rounds of Llama-2-70B on two A100."""
_MICROSECONDS = 1_000_000
"""In a second."""


def conversation(draw: Draw) -> tuple[int, int]:
    """Draw the prompt and the output of a chat."""
    prompt = clipped(draw.lognormal(11.5, 1.7297), 468)
    return prompt, clipped(draw.lognormal(43.5, 1.1914), 883)


def _summarisation(draw: Draw) -> tuple[int, int]:
    prompt = clipped(draw.normal(2668.0, 1448.0), 4000)
    return prompt, clipped(draw.lognormal(161.5, 1.1127), 4096)


def _mixed(draw: Draw) -> tuple[int, int]:
    is_long = draw.random.random() < draw.number("share")
    return _summarisation(draw) if is_long else conversation(draw)


def _traffic(draw: Draw, shape: Callable[[Draw], tuple[int, int]]) -> Drawn:
    memory = draw.memory or PAPER_MEMORY
    requests, clock, gap = [], 0.0, mean_gap(draw)
    for _ in range(draw.count(1000)):
        clock += draw.exponential(gap) if gap else 0.0
        fitting = draw.fitting(lambda: shape(draw), memory)
        in_seconds = "per_second" in draw.parameters
        requests.append(
            _at_second(clock, fitting) if in_seconds else Request(math.ceil(clock), *fitting)
        )
    return memory, requests


def _at_second(clock: float, shape: tuple[int, int]) -> Request:
    since = math.floor(clock * _MICROSECONDS)  # the same number on every platform
    arrival = -(-since * _ROUNDS_A_SECOND // _MICROSECONDS)
    return Request(arrival, *shape, arrival_seconds=since / _MICROSECONDS)


_LOG_MEMORY = 448_280
"""KV cache of Llama-3-70B on four H100."""
_FLAT, _HUMPS = 0.25, ((1.1, 0.38, 0.13), (0.9, 0.68, 0.12))
"""Rate between humps, and height, middle and width of each."""


def _log_shape(draw: Draw) -> tuple[int, int]:
    prompt = clipped(draw.lognormal(1500.0, 1.0), 30_000, 5)
    return prompt, clipped(draw.lognormal(200.0, 0.9), 4000)


def _hump_time(draw: Draw) -> float:
    """Draw a time in [0, 1) by the rate of two humps."""
    highest = _FLAT + sum(height for height, _, _ in _HUMPS)
    while True:
        time = draw.random.random()
        rate = _FLAT + sum(h * math.exp(-(((time - m) / w) ** 2)) for h, m, w in _HUMPS)
        if draw.random.random() * highest < rate:
            return time


def _two_humps(draw: Draw) -> Drawn:
    memory, seconds = draw.memory or _LOG_MEMORY, draw.number("seconds")
    times = sorted(seconds * _hump_time(draw) for _ in range(draw.count(3000)))
    return memory, [
        _at_second(time, draw.fitting(lambda: _log_shape(draw), memory)) for time in times
    ]


def mean_gap(draw: Draw) -> float:
    """Return the mean time between arrivals, 0 if all arrive at once."""
    rates = {name: draw.number(name) for name in ("rate", "per_second") if name in draw.parameters}
    positive = {name: rate for name, rate in rates.items() if rate}
    if len(positive) > 1:
        raise InvalidInput("goes without rate", field="per_second")
    for name, rate in positive.items():
        if rate < _MIN_RATE:
            reason = f"must be 0 or at least {_MIN_RATE:g}, got {rate:g}"
            raise InvalidInput(reason, field=name)
        return 1 / rate
    return 0.0


DRAWS: dict[str, Drawing] = {
    "conversation": partial(_traffic, shape=conversation),
    "summarisation": partial(_traffic, shape=_summarisation),
    "conversation-summarisation": partial(_traffic, shape=_mixed),
    "two-humps": _two_humps,
}

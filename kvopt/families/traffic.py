"""Stand-ins for the traffic of the papers, matched to the statistics they print.

The conversations (LMSYS-Chat-1M) are gated, so lengths are drawn from distributions fitted
to the published means, medians and ranges:

* conversation: lognormal, clipped to 1..468 (prompt) and 1..883 (output), rounded down;
  medians 11 and 43, means 41 and 85;
* summarisation: the prompt mean 2546 lies below its median 2667, which no lognormal can do:
  a normal around the median clipped to 1..4000, where the upper end takes off enough;
  output lognormal clipped to 1..4096, median 161, mean 296.

The parameters below solve these equations for the clipped and rounded distributions.
"""

from __future__ import annotations

import math

from kvopt.errors import InvalidInput
from kvopt.families.base import Family, Parameter
from kvopt.families.draw import Draw
from kvopt.model.instance import Request

PAPER_MEMORY = 16_492
"""KV cache of two A100s with Llama-2-70B, the value that jaillet-2025-v2 observed."""

_LEAST_RATE = 1e-6
_RATES = (
    Parameter("rate", "Poisson arrivals a round; 0 for all at once", 0.0, float, 0.0, 1e6),
    Parameter("per_second", "Poisson arrivals a second, in rounds of 50 ms", None, float, 0.0, 1e6),
)

_ROUNDS_A_SECOND = 20
_MICROSECONDS = 1_000_000


def _lognormal(draw: Draw, median: float, deviation: float, most: int) -> int:
    value = draw.lognormal(math.log(median), deviation)
    return math.floor(min(max(value, 1.0), float(most)))


def _conversation_shape(draw: Draw) -> tuple[int, int]:
    return _lognormal(draw, 11.5, 1.7297, 468), _lognormal(draw, 43.5, 1.1914, 883)


def _summarisation_shape(draw: Draw) -> tuple[int, int]:
    prompt = math.floor(min(max(draw.normal(2668.0, 1448.0), 1.0), 4000.0))
    return prompt, _lognormal(draw, 161.5, 1.1127, 4096)


def _mixed_shape(draw: Draw) -> tuple[int, int]:
    is_long = draw.random.random() < draw.number("share")
    return _summarisation_shape(draw) if is_long else _conversation_shape(draw)


def _traffic(draw: Draw, kind: str) -> tuple[int, list[Request]]:
    shapes = {
        "conversation": _conversation_shape,
        "summarisation": _summarisation_shape,
        "mixed": _mixed_shape,
    }
    memory = draw.memory if draw.memory is not None else PAPER_MEMORY
    count = draw.n if draw.n is not None else 1000
    requests, clock, gap = [], 0.0, _mean_gap(draw)
    for _ in range(count):
        clock += draw.exponential(gap) if gap else 0.0
        shape = draw.fitting(lambda: shapes[kind](draw), memory)
        requests.append(_arriving(draw, clock, shape))
    return memory, requests


def _arriving(draw: Draw, clock: float, shape: tuple[int, int]) -> Request:
    if "per_second" not in draw.parameters:
        return Request(math.ceil(clock), *shape)
    since = math.floor(clock * _MICROSECONDS)  # the same number on every platform
    arrival = -(-since * _ROUNDS_A_SECOND // _MICROSECONDS)
    return Request(arrival, *shape, arrival_seconds=since / _MICROSECONDS)


def _mean_gap(draw: Draw) -> float:
    rates = {name: draw.number(name) for name in ("rate", "per_second") if name in draw.parameters}
    given = {name: rate for name, rate in rates.items() if rate}
    if len(given) > 1:
        raise InvalidInput("goes without -p rate", field="-p per_second")
    for name, rate in given.items():
        if rate < _LEAST_RATE:
            reason = f"must be 0 or at least {_LEAST_RATE:g}, got {rate:g}"
            raise InvalidInput(reason, field=f"-p {name}")
        return 1 / rate
    return 0.0


def _conversation(draw: Draw) -> tuple[int, list[Request]]:
    return _traffic(draw, "conversation")


def _summarisation(draw: Draw) -> tuple[int, list[Request]]:
    return _traffic(draw, "summarisation")


def _mixed(draw: Draw) -> tuple[int, list[Request]]:
    return _traffic(draw, "mixed")


FAMILIES = (
    Family(
        "conversation",
        "chat: prompt 1..468 (median 11, mean 41), output 1..883 (43, 85)",
        "stand-in for LMSYS-Chat-1M as in chen-2025 section 6",
        _conversation,
        _RATES,
        n="1000",
        memory="16492",
    ),
    Family(
        "summarisation",
        "papers: prompt median 2667, mean 2546; output median 161, mean 296",
        "stand-in for arXiv summarisation as in wang-2025 section 7",
        _summarisation,
        _RATES,
        n="1000",
        memory="16492",
    ),
    Family(
        "conversation-summarisation",
        "chat and papers mixed 4 to 1",
        "stand-in for the mixed workload of wang-2025 section 7",
        _mixed,
        (*_RATES, Parameter("share", "chance of a paper", 0.2, float, 0.0, 1.0)),
        n="1000",
        memory="16492",
    ),
)

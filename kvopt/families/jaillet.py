"""Families of jaillet-2025: two arrival models, and a randomised adversary."""

from __future__ import annotations

import math

from kvopt.errors import InvalidInput
from kvopt.families.base import Draw, Family, Parameter
from kvopt.instance import Request

_LONGEST_PROMPT = 5


def _memory(draw: Draw) -> int:
    memory = draw.memory if draw.memory is not None else draw.uniform_integer(30, 50)
    if memory <= _LONGEST_PROMPT:
        raise InvalidInput(f"must be above {_LONGEST_PROMPT}, got {memory}", field="--memory")
    return memory


def _shape(draw: Draw, memory: int) -> tuple[int, int]:
    prompt = draw.uniform_integer(1, _LONGEST_PROMPT)
    return prompt, draw.uniform_integer(1, memory - prompt)


def _all_at_once(draw: Draw) -> tuple[int, list[Request]]:
    memory = _memory(draw)
    count = draw.n if draw.n is not None else draw.uniform_integer(40, 60)
    return memory, [Request(0, *_shape(draw, memory)) for _ in range(count)]


def _poisson(draw: Draw) -> tuple[int, list[Request]]:
    memory = _memory(draw)
    rounds = int(draw.parameters.get("rounds") or draw.uniform_integer(40, 60))
    rate = float(draw.parameters.get("rate") or draw.uniform(0.5, 1.5))
    draw.drawn.update(rounds=rounds, rate=rate)
    if draw.n is None:
        arrivals = [t for t in range(1, rounds + 1) for _ in range(draw.poisson(rate))]
    else:  # given their number, the arrivals of a Poisson process are uniform
        arrivals = sorted(draw.uniform_integer(1, rounds) for _ in range(draw.n))
    return memory, [Request(arrival, *_shape(draw, memory)) for arrival in arrivals]


def _randomised_adversary(draw: Draw) -> tuple[int, list[Request]]:
    """Hold one request of peak M, then many of one token at a random time k M.

    The proof gives every request the same prompt s and lets at most ``(k - k') / epsilon``
    short ones share ``(k - k') M`` tokens, so a short one holds epsilon M: s = epsilon M - 1.
    Its weights epsilon / c over 1 + c / epsilon values of k sum to slightly more than 1; here
    they are equal.
    """
    memory = draw.memory if draw.memory is not None else 100
    epsilon, c = draw.number("epsilon"), draw.integer("c")
    count = draw.n - 1 if draw.n is not None else round(epsilon * memory)
    peak = round(epsilon * memory)
    if peak < 1 or count < 0:
        raise InvalidInput("epsilon M must be at least 1", field="-p epsilon")
    steps = round(c / epsilon)
    k = 1 - 2 * epsilon + epsilon * draw.uniform_integer(0, steps)
    arrival = max(0, math.floor(k * memory + 1e-9))
    draw.drawn.update(k=round(k, 9))
    long = Request(0, peak - 1, memory - peak + 1)
    return memory, [long, *(Request(arrival, peak - 1, 1) for _ in range(count))]


FAMILIES = (
    Family(
        "arrival-1",
        "all at once; prompt 1..5, output 1..M-s",
        "jaillet-2025-v2 section 5.1, arrival model 1",
        _all_at_once,
        n="40..60, drawn",
        memory="30..50, drawn",
    ),
    Family(
        "arrival-2",
        "Poisson arrivals over rounds 1..T; prompt 1..5, output 1..M-s",
        "jaillet-2025-v2 section 5.1, arrival model 2",
        _poisson,
        (
            Parameter("rate", "requests a round, drawn from 0.5..1.5", None, float, 1e-9, 1e6),
            Parameter("rounds", "T, drawn from 40..60", None, int, 1, 10**9),
        ),
        n="follows from the arrivals",
        memory="30..50, drawn",
    ),
    Family(
        "v1-thm-6.4",
        "one request of peak M, then epsilon M short ones at a random time k M",
        "jaillet-2025-v1 theorem 6.4",
        _randomised_adversary,
        (
            Parameter("epsilon", "share of M that a short request holds", 0.1, float, 1e-6, 0.5),
            Parameter("c", "the ratio that is refuted; k goes up to c + 1", 2, int, 1, 10**6),
        ),
        n="1 + epsilon M",
    ),
)

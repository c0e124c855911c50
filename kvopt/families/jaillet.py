"""Families of jaillet-2025: two arrival models, and a randomised adversary."""

from __future__ import annotations

import math

from kvopt.errors import InvalidInput
from kvopt.families.base import Family, Parameter
from kvopt.families.draw import MOST_REQUESTS, Draw
from kvopt.model.instance import Request

_LONGEST_PROMPT = 5
_SLACK = 1e-9  # keeps multiples of epsilon, 0.1 say, on the right side of an integer


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
    if draw.n is not None:  # given their number, the arrivals of a Poisson process are uniform
        arrivals = sorted(draw.uniform_integer(1, rounds) for _ in range(draw.n))
    elif rate * rounds > MOST_REQUESTS:
        reason = f"{rate:g} a round makes over {MOST_REQUESTS:,} requests in {rounds:,} rounds"
        raise InvalidInput(reason, field="-p rate")
    else:
        arrivals = [t for t in range(1, rounds + 1) for _ in range(draw.poisson(rate))]
    return memory, [Request(arrival, *_shape(draw, memory)) for arrival in arrivals]


def _randomised_adversary(draw: Draw) -> tuple[int, list[Request]]:
    """Hold one request of peak M, then many of one token at a random time k M.

    The proof says neither prompt.  It divides free memory by epsilon M to count the short
    requests that run at once, and the proof of 6.2 gives all requests one prompt, so a short
    one should hold epsilon M: both prompts are epsilon M - 1 unless they are given.  Its weights
    epsilon / c over 1 + c / epsilon values of k sum to slightly more than 1; here they are
    equal.  Both epsilon M and k M are rounded.
    """
    memory = draw.memory if draw.memory is not None else 100
    short_peak = round(draw.number("epsilon") * memory)
    if short_peak < 1:
        raise InvalidInput(f"epsilon M is below 1 for M = {memory}", field="-p epsilon")
    prompt = _prompt(draw, "prompt", short_peak - 1, memory)
    short = _prompt(draw, "short-prompt", short_peak - 1, memory)
    count, arrival = _short_requests(draw, short_peak), _arrival(draw, memory)
    long = Request(0, prompt, memory - prompt)
    return memory, [long, *(Request(arrival, short, 1) for _ in range(count))]


def _prompt(draw: Draw, key: str, default: int, memory: int) -> int:
    prompt = int(draw.parameters.get(key, default))
    if prompt >= memory:
        reason = f"must be below M = {memory}, got {prompt}"
        raise InvalidInput(reason, field=f"-p {key}")
    draw.drawn[key] = prompt
    return prompt


def _short_requests(draw: Draw, default: int) -> int:
    count = default if draw.n is None else draw.n - 1
    if count < 0:
        raise InvalidInput("must be at least 1: the long request", field="--n")
    if count > MOST_REQUESTS:
        raise InvalidInput(f"epsilon M is over {MOST_REQUESTS:,} requests", field="--memory")
    return count


def _arrival(draw: Draw, memory: int) -> int:
    epsilon = draw.number("epsilon")
    steps = math.floor(draw.integer("c") / epsilon + _SLACK)
    k = 1 - 2 * epsilon + epsilon * draw.uniform_integer(0, steps)
    draw.drawn["k"] = round(k, 9)
    return math.floor(max(k, 0.0) * memory + _SLACK)


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
            Parameter("rounds", "T, drawn from 40..60", None, int, 1, 10**6),
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
            Parameter(
                "prompt", "of the long request; epsilon M - 1 if left out", None, int, 0, 10**9
            ),
            Parameter("short-prompt", "of the short ones; likewise", None, int, 0, 10**9),
        ),
        n="1 + epsilon M",
    ),
)

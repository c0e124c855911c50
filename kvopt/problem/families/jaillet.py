"""Families of jaillet-2025: arrival models, a randomised adversary, and steady arrivals."""

from __future__ import annotations

import math

from kvopt.errors import InvalidInput
from kvopt.problem.families.drawing import MAX_REQUESTS, Draw, Drawing, Drawn
from kvopt.problem.requests import Request, volume_of

_LONGEST_PROMPT = 5
"""Published numbers of tokens."""
_SLACK = 1e-9
"""Keeps multiples of epsilon, such as 0.1, on the right side of an integer."""


def _memory(draw: Draw) -> int:
    memory = draw.memory or draw.uniform_integer(30, 50)
    if memory <= _LONGEST_PROMPT:
        raise InvalidInput(f"must be above {_LONGEST_PROMPT}, got {memory}", field="memory")
    return memory


def _shape(draw: Draw, memory: int) -> tuple[int, int]:
    prompt = draw.uniform_integer(1, _LONGEST_PROMPT)
    return prompt, draw.uniform_integer(1, memory - prompt)


def _all_at_once(draw: Draw) -> Drawn:
    memory = _memory(draw)
    count = draw.n if draw.n is not None else draw.uniform_integer(40, 60)
    return memory, [Request(0, *_shape(draw, memory)) for _ in range(count)]


def _poisson(draw: Draw) -> Drawn:
    memory = _memory(draw)
    rounds = int(draw.parameters.get("rounds") or draw.uniform_integer(40, 60))
    rate = float(draw.parameters.get("rate") or draw.uniform(0.5, 1.5))
    draw.drawn.update(rounds=rounds, rate=rate)
    if draw.n is not None:  # given their number, the arrivals of a Poisson process are uniform
        arrivals = sorted(draw.uniform_integer(1, rounds) for _ in range(draw.n))
    else:
        arrivals = draw.arrivals(rate, range(1, rounds + 1))
    return memory, [Request(arrival, *_shape(draw, memory)) for arrival in arrivals]


def _randomised_adversary(draw: Draw) -> Drawn:
    """Hold one request of peak M, then many of one token at a random time k M.

    The proof gives neither prompt.  It divides free memory by epsilon M to count the short
    requests that run at once, and the proof of 6.2 gives all requests one prompt, so a short
    one should hold epsilon M: both prompts are epsilon M - 1 unless they are given.  Its weights
    epsilon / c over 1 + c / epsilon values of k sum to slightly more than 1; here they are
    equal.  Both epsilon M and k M are rounded.
    """
    memory = draw.memory or 100
    epsilon = draw.number("epsilon")
    short_peak = round(epsilon * memory)
    if short_peak < 1:
        raise InvalidInput(f"epsilon M is below 1 for M = {memory}", field="epsilon")
    long, short = (_prompt(draw, k, short_peak - 1, memory) for k in ("prompt", "short-prompt"))
    count = short_peak if draw.n is None else draw.n - 1
    if count < 0:
        raise InvalidInput("must be at least 1: the long request", field="n")
    if count > MAX_REQUESTS:
        raise InvalidInput(f"epsilon M is over {MAX_REQUESTS:,} requests", field="memory")
    steps = math.floor(draw.integer("c") / epsilon + _SLACK)
    k = 1 - 2 * epsilon + epsilon * draw.uniform_integer(0, steps)
    draw.drawn["k"] = round(k, 9)
    arrival = math.floor(max(k, 0.0) * memory + _SLACK)
    requests = [Request(arrival, short, 1) for _ in range(count)]
    return memory, [Request(0, long, memory - long), *requests]


def _prompt(draw: Draw, key: str, default: int, memory: int) -> int:
    prompt = int(draw.parameters.get(key, default))
    if prompt >= memory:
        raise InvalidInput(f"must be below M = {memory}, got {prompt}", field=key)
    draw.drawn[key] = prompt
    return prompt


def _steady(draw: Draw) -> Drawn:
    """Draw the arrivals; by default the cache holds one request of each age exactly."""
    prompt, output = draw.integer("prompt"), draw.integer("output")
    rounds = range(draw.integer("rounds"))
    memory = draw.memory or volume_of(prompt, output)
    if prompt + output > memory:
        reason = f"must be at least prompt + output = {prompt + output}, got {memory}"
        raise InvalidInput(reason, field="memory")
    rate, batch = draw.number("rate"), int(draw.parameters.get("batch", 0))
    if not batch:
        arrivals = draw.arrivals(rate, rounds)
    elif rate <= batch:
        came = [t for t in rounds if draw.random.random() < rate / batch]
        arrivals = [t for t in came for _ in range(batch)]
    else:
        raise InvalidInput(f"{batch} is below rate = {rate:g}", field="batch")
    shortest = int(draw.parameters.get("least", output))
    draw.drawn["least"] = shortest
    if shortest > output:
        raise InvalidInput(f"{shortest} is above output = {output}", field="least")
    return memory, [
        Request(t, prompt, output if shortest == output else draw.uniform_integer(shortest, output))
        for t in arrivals
    ]


DRAWS: dict[str, Drawing] = {
    "arrival-1": _all_at_once,
    "arrival-2": _poisson,
    "v1-thm-6.4": _randomised_adversary,
    "steady": _steady,
}

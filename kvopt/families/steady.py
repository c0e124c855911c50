"""Requests of one prompt that arrive at a steady rate, in a cache that suits one start a round."""

from __future__ import annotations

from kvopt.errors import InvalidInput
from kvopt.families.base import Family, Parameter
from kvopt.families.draw import MOST_REQUESTS, Draw
from kvopt.model.instance import Request


def _steady(draw: Draw) -> tuple[int, list[Request]]:
    """Draw the arrivals; by default the cache holds one request of each age exactly."""
    prompt, output = draw.integer("prompt"), draw.integer("output")
    rate, rounds = draw.number("rate"), draw.integer("rounds")
    if rate * rounds > MOST_REQUESTS:
        reason = f"{rate:g} a round makes over {MOST_REQUESTS:,} requests in {rounds:,} rounds"
        raise InvalidInput(reason, field="-p rate")
    memory = draw.memory
    if memory is None:
        memory = prompt * output + output * (output + 1) // 2
    if prompt + output > memory:
        reason = f"must be at least prompt + output = {prompt + output}, got {memory}"
        raise InvalidInput(reason, field="--memory")
    arrivals = [t for t in range(rounds) for _ in range(draw.poisson(rate))]
    least = int(draw.parameters.get("least", output))
    draw.drawn["least"] = least
    if least > output:
        raise InvalidInput(f"{least} is above output = {output}", field="-p least")
    return memory, [
        Request(t, prompt, output if least == output else draw.uniform_integer(least, output))
        for t in arrivals
    ]


FAMILIES = (
    Family(
        "steady",
        "requests of one prompt and output, Poisson arrivals over rounds 0..T-1",
        "jaillet-2025-v1 section 5",
        _steady,
        (
            Parameter("rate", "requests a round", 0.8, float, 1e-9, 1e6),
            Parameter("rounds", "T", 1000, int, 1, 10**7),
            Parameter("output", "o of every request", 3, int, 1, 10**6),
            Parameter("least", "outputs are uniform on least..output", None, int, 1, 10**6),
            Parameter("prompt", "s of every request", 0, int, 0, 10**6),
        ),
        n="follows from the arrivals",
        memory="s o + o (o + 1) / 2",
        fixed=("n",),
    ),
)

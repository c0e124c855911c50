"""Families of wang-2025: five distributions, two fixed constructions, and 3-Partition."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kvopt.errors import InvalidInput
from kvopt.problem.families.drawing import Draw, Drawing, Drawn, clipped
from kvopt.problem.requests import Request

_LONGEST = 50
"""Published limit of the tokens of an output."""
Length = Callable[[Draw], float]


# ---- distributions ----------------------------------------------------------------------------


def _independent(draw: Draw, prompt: Length, output: Length, count: int) -> Drawn:
    memory = draw.memory or 100

    def shape() -> tuple[int, int]:
        return clipped(prompt(draw), _LONGEST), clipped(output(draw), _LONGEST)

    return memory, [Request(0, *draw.fitting(shape, memory)) for _ in range(draw.count(count))]


def _exponential(draw: Draw) -> float:
    return draw.exponential(5)


def _mixed_prompt(draw: Draw) -> float:
    is_short = draw.random.random() < 0.8
    value = draw.exponential(10) if is_short else draw.lognormal(40, 0.25)
    return value if value <= _LONGEST else draw.uniform(40, 50)


# ---- constructions ----------------------------------------------------------------------------


def _construction(
    draw: Draw, requests: Callable[[int], list[Request]], power: int, default: int, maximum: int
) -> Drawn:
    """Return requests for M = k^power, with k from the key, from the memory, or the default."""
    key = draw.parameters.get("k")
    k = int(default if key is None else key)
    if draw.memory is not None:
        k = round(draw.memory ** (1 / power))
        if k**power != draw.memory or not 2 <= k <= maximum:
            reason = f"must be k^{power} for a k in 2 .. {maximum}, got {draw.memory}"
            raise InvalidInput(reason, field="memory")
    if key is not None and k != key:
        raise InvalidInput(f"says {key}, memory says {k}", field="k")
    draw.drawn["k"] = k
    return k**power, requests(k)


def _theorem_2_1(k: int) -> list[Request]:
    return [Request(0, k**2 - 1, 1)] * k**4 + [Request(0, 1, 2)] * k**5


def _theorem_8_2(k: int) -> list[Request]:
    return [Request(0, 1, k - 1)] * k**2 + [Request(0, k, 1)] * k**3


# ---- 3-Partition ------------------------------------------------------------------------------


def _three_partition(draw: Draw) -> Drawn:
    """3-Partition, corrected: M = B + 3, because a request holds s + 1 tokens.

    Four requests never fit together, and three fit if and only if their numbers sum to at most B.
    """
    target, triples = draw.integer("target"), draw.integer("m")
    if draw.n is not None:
        if draw.n % 3:
            raise InvalidInput(f"must be a multiple of 3, got {draw.n}", field="n")
        triples = draw.n // 3
    low, high = target // 4 + 1, (target - 1) // 2
    if not 3 * low <= target <= 3 * high:
        raise InvalidInput(f"no three numbers in (B/4, B/2) sum to {target}", field="target")
    numbers = [x for _ in range(triples) for x in _triple(draw, target, low, high)]
    if draw.parameters["answer"] == "any":
        _disturb(draw, numbers, low, high)
    _shuffle(draw, numbers)
    draw.drawn["m"] = triples
    return target + 3, [Request(0, x, 1) for x in numbers]


def _triple(draw: Draw, target: int, low: int, high: int) -> tuple[int, int, int]:
    while True:
        x, y = draw.uniform_integer(low, high), draw.uniform_integer(low, high)
        if low <= target - x - y <= high:
            return x, y, target - x - y


def _disturb(draw: Draw, numbers: list[int], low: int, high: int) -> None:
    """Redistribute the sum of random pairs: the total stays, the planted triples do not."""
    for _ in range(20 * len(numbers)):
        i = draw.uniform_integer(0, len(numbers) - 1)
        j = draw.uniform_integer(0, len(numbers) - 1)
        if i != j:
            both = numbers[i] + numbers[j]
            numbers[i] = draw.uniform_integer(max(low, both - high), min(high, both - low))
            numbers[j] = both - numbers[i]


def _shuffle(draw: Draw, numbers: list[int]) -> None:
    for i in range(len(numbers) - 1, 0, -1):
        j = draw.uniform_integer(0, i)
        numbers[i], numbers[j] = numbers[j], numbers[i]


def _of_prompts(prompt: Length, output: Length | None = None, count: int = 100) -> Drawing:
    return partial(_independent, prompt=prompt, output=output or prompt, count=count)


DRAWS: dict[str, Drawing] = {
    "uniform": _of_prompts(lambda draw: draw.uniform(1, 51)),
    "normal": _of_prompts(lambda draw: draw.normal(25, 8.33)),
    "binomial": _of_prompts(lambda draw: draw.binomial(49, 0.5) + 1),
    "exponential": _of_prompts(_exponential),
    "mixed": _of_prompts(_mixed_prompt, _exponential, 200),
    "thm-2.1": partial(_construction, requests=_theorem_2_1, power=4, default=2, maximum=16),
    "thm-8.2": partial(_construction, requests=_theorem_8_2, power=2, default=4, maximum=100),
    "three-partition": _three_partition,
}

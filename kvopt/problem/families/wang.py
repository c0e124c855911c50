"""Families of wang-2025: five distributions, two fixed constructions, and 3-Partition."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from kvopt.errors import InvalidInput
from kvopt.problem.families.base import Draw, Drawn, Family, Parameter
from kvopt.problem.requests import Request

_MOST = 50
"""Tokens of an output, at most, as published."""
Length = Callable[[Draw], float]


# ---- distributions ----------------------------------------------------------------------------


def _clipped(value: float) -> int:
    """Clip to 1..50, then round down."""
    return math.floor(min(max(value, 1.0), float(_MOST)))


def _independent(draw: Draw, prompt: Length, output: Length, count: int) -> Drawn:
    memory = draw.memory or 100

    def shape() -> tuple[int, int]:
        return _clipped(prompt(draw)), _clipped(output(draw))

    return memory, [Request(0, *draw.fitting(shape, memory)) for _ in range(draw.count(count))]


def _exponential(draw: Draw) -> float:
    return draw.exponential(5)


def _mixed_prompt(draw: Draw) -> float:
    is_short = draw.random.random() < 0.8
    value = draw.exponential(10) if is_short else draw.lognormal(40, 0.25)
    return value if value <= _MOST else draw.uniform(40, 50)


def _distribution(
    name: str, summary: str, prompt: Length, output: Length | None = None, count: int = 100
) -> Family:
    drawn = partial(_independent, prompt=prompt, output=output or prompt, count=count)
    return Family(name, summary, "wang-2025 appendix 11.2", drawn, n=str(count))


# ---- constructions ----------------------------------------------------------------------------


def _construction(
    theorem: str,
    summary: str,
    requests: Callable[[int], list[Request]],
    power: int,
    default: int,
    most: int,
    n: str,
) -> Family:
    """Return a family of M = k^power, k from the key, from the memory, or the default."""

    def drawn(draw: Draw) -> Drawn:
        key = draw.parameters.get("k")
        k = int(default if key is None else key)
        if draw.memory is not None:
            k = round(draw.memory ** (1 / power))
            if k**power != draw.memory or not 2 <= k <= most:
                reason = f"must be k^{power} for a k in 2 .. {most}, got {draw.memory}"
                raise InvalidInput(reason, field="memory")
        if key is not None and k != key:
            raise InvalidInput(f"says {key}, memory says {k}", field="k")
        draw.drawn["k"] = k
        return k**power, requests(k)

    about = f"{'square' if power == 2 else 'fourth'} root of M; {default} unless memory says"
    return Family(
        f"thm-{theorem}",
        f"M = k^{power}; {summary}",
        f"wang-2025 theorem {theorem}",
        drawn,
        (Parameter("k", about, None, int, 2, most),),
        n=n,
        memory=f"k^{power}",
        fixed=("n",),
    )


def _theorem_2_1(k: int) -> list[Request]:
    return [Request(0, k**2 - 1, 1)] * k**4 + [Request(0, 1, 2)] * k**5


def _theorem_8_2(k: int) -> list[Request]:
    return [Request(0, 1, k - 1)] * k**2 + [Request(0, k, 1)] * k**3


FAMILIES = (
    _distribution(
        "uniform", "prompt and output uniform on 1..50", lambda draw: draw.uniform(1, 51)
    ),
    _distribution(
        "normal", "both normal (25, 8.33), clipped to 1..50", lambda draw: draw.normal(25, 8.33)
    ),
    _distribution(
        "binomial", "both binomial (49, 0.5) plus 1", lambda draw: draw.binomial(49, 0.5) + 1
    ),
    _distribution("exponential", "both exponential of mean 5, clipped to 1..50", _exponential),
    _distribution(
        "mixed",
        "prompt 80% exponential of mean 10 and 20% lognormal around 40, output exponential",
        _mixed_prompt,
        _exponential,
        200,
    ),
    _construction(
        "2.1",
        "M requests (s=k^2-1, o=1) and k^5 requests (1, 2)",
        _theorem_2_1,
        power=4,
        default=2,
        most=16,
        n="k^4 + k^5",
    ),
    _construction(
        "8.2",
        "M requests (s=1, o=k-1) and k^3 requests (k, 1)",
        _theorem_8_2,
        power=2,
        default=4,
        most=100,
        n="k^2 + k^3",
    ),
)


# ---- 3-Partition ------------------------------------------------------------------------------


def _three_partition(draw: Draw) -> Drawn:
    """3-Partition, corrected: M = T + 3, because a request holds s + 1 tokens.

    Four requests never fit together, and three fit if and only if their numbers sum to at most T.
    """
    target, triples = draw.integer("target"), draw.integer("m")
    if draw.n is not None:
        if draw.n % 3:
            raise InvalidInput(f"must be a multiple of 3, got {draw.n}", field="n")
        triples = draw.n // 3
    low, high = target // 4 + 1, (target - 1) // 2
    if not 3 * low <= target <= 3 * high:
        raise InvalidInput(f"no three numbers in (T/4, T/2) sum to {target}", field="target")
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
    """Share the sum of random pairs out anew: the total stays, the planted triples do not."""
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


THREE_PARTITION = Family(
    "three-partition",
    "3m numbers in (T/4, T/2) that sum to mT, as requests (s=x, o=1)",
    "wang-2025 theorem 2.2, with M = T + 3",
    _three_partition,
    (
        Parameter("target", "T", 40, int, 3, 10**9),
        Parameter("m", "number of triples", 4, int, 0, 10**5),
        Parameter(
            "answer", "yes or any: triples exist, or no promise", "yes", str, choices=("yes", "any")
        ),
    ),
    n="3m",
    memory="T + 3",
    fixed=("memory",),
)

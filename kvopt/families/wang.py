"""Families of wang-2025: five distributions and two fixed constructions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from kvopt.errors import InvalidInput
from kvopt.families.base import Family, Parameter
from kvopt.families.draw import Draw
from kvopt.model.instance import Request

_MOST = 50
_DEFAULT_2_1, _MOST_2_1 = 2, 16
_DEFAULT_8_2, _MOST_8_2 = 4, 100
Length = Callable[[Draw], float]


def _clipped(value: float) -> int:
    """Clip to 1..50, then round down."""
    return math.floor(min(max(value, 1.0), float(_MOST)))


def _independent(
    draw: Draw, prompt: Length, output: Length, count: int
) -> tuple[int, list[Request]]:
    memory = draw.memory if draw.memory is not None else 100
    n = draw.n if draw.n is not None else count

    def shape() -> tuple[int, int]:
        return _clipped(prompt(draw)), _clipped(output(draw))

    return memory, [Request(0, *draw.fitting(shape, memory)) for _ in range(n)]


def _uniform(draw: Draw) -> float:
    return draw.uniform(1, 51)


def _normal(draw: Draw) -> float:
    return draw.normal(25, 8.33)


def _binomial(draw: Draw) -> float:
    return draw.binomial(49, 0.5) + 1


def _exponential(draw: Draw) -> float:
    return draw.exponential(5)


def _mixed_prompt(draw: Draw) -> float:
    is_short = draw.random.random() < 0.8
    value = draw.exponential(10) if is_short else draw.lognormal(math.log(40), 0.25)
    return value if value <= _MOST else draw.uniform(40, 50)


def _root(draw: Draw, power: int, default: int, most: int) -> int:
    """Return k of M = k^power: from the key, from ``--memory``, or the default."""
    key = draw.parameters.get("k")
    k = int(key if key is not None else default)
    if draw.memory is not None:
        k = round(draw.memory ** (1 / power))
        if k**power != draw.memory or not 2 <= k <= most:
            reason = f"must be k^{power} for a k in 2 .. {most}, got {draw.memory}"
            raise InvalidInput(reason, field="--memory")
    if key is not None and k != key:
        raise InvalidInput(f"says {key}, --memory says {k}", field="-p k")
    draw.drawn["k"] = k
    return k


def _theorem_2_1(draw: Draw) -> tuple[int, list[Request]]:
    k = _root(draw, 4, _DEFAULT_2_1, _MOST_2_1)
    wide = [Request(0, k**2 - 1, 1)] * k**4
    return k**4, wide + [Request(0, 1, 2)] * k**5


def _theorem_8_2(draw: Draw) -> tuple[int, list[Request]]:
    k = _root(draw, 2, _DEFAULT_8_2, _MOST_8_2)
    long = [Request(0, 1, k - 1)] * k**2
    return k**2, long + [Request(0, k, 1)] * k**3


def _distribution(
    name: str, summary: str, prompt: Length, output: Length, count: int = 100
) -> Family:
    return Family(
        name,
        summary,
        "wang-2025 appendix 11.2",
        partial(_independent, prompt=prompt, output=output, count=count),
        n=str(count),
    )


FAMILIES = (
    _distribution("uniform", "prompt and output uniform on 1..50", _uniform, _uniform),
    _distribution("normal", "both normal (25, 8.33), clipped to 1..50", _normal, _normal),
    _distribution("binomial", "both binomial (49, 0.5) plus 1", _binomial, _binomial),
    _distribution(
        "exponential", "both exponential of mean 5, clipped to 1..50", _exponential, _exponential
    ),
    _distribution(
        "mixed",
        "prompt 80% exponential of mean 10 and 20% lognormal around 40, output exponential",
        _mixed_prompt,
        _exponential,
        200,
    ),
    Family(
        "thm-2.1",
        "M = k^4; M requests (s=k^2-1, o=1) and k^5 requests (1, 2)",
        "wang-2025 theorem 2.1",
        _theorem_2_1,
        (
            Parameter(
                "k",
                f"fourth root of M; {_DEFAULT_2_1} unless --memory says",
                None,
                int,
                2,
                _MOST_2_1,
            ),
        ),
        n="k^4 + k^5",
        memory="k^4",
        fixed=("n",),
    ),
    Family(
        "thm-8.2",
        "M = k^2; M requests (s=1, o=k-1) and k^3 requests (k, 1)",
        "wang-2025 theorem 8.2",
        _theorem_8_2,
        (
            Parameter(
                "k",
                f"square root of M; {_DEFAULT_8_2} unless --memory says",
                None,
                int,
                2,
                _MOST_8_2,
            ),
        ),
        n="k^2 + k^3",
        memory="k^2",
        fixed=("n",),
    ),
)

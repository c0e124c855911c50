"""3-Partition as an instance, corrected: M = T + 3, because a request holds s + 1 tokens.

Four requests never fit together, and three fit if and only if their numbers sum to at most T.
"""

from __future__ import annotations

from kvopt.errors import InvalidInput
from kvopt.families.base import Family, Parameter
from kvopt.families.draw import Draw
from kvopt.model.instance import Request

_ANSWERS = ("yes", "any")


def _three_partition(draw: Draw) -> tuple[int, list[Request]]:
    target, triples = draw.integer("target"), draw.integer("m")
    if draw.n is not None:
        if draw.n % 3:
            raise InvalidInput(f"must be a multiple of 3, got {draw.n}", field="--n")
        triples = draw.n // 3
    low, high = target // 4 + 1, (target - 1) // 2
    if not 3 * low <= target <= 3 * high:
        raise InvalidInput(f"no three numbers in (T/4, T/2) sum to {target}", field="-p target")
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


FAMILIES = (
    Family(
        "three-partition",
        "3m numbers in (T/4, T/2) that sum to mT, as requests (s=x, o=1)",
        "wang-2025 theorem 2.2, with M = T + 3",
        _three_partition,
        (
            Parameter("target", "T", 40, int, 3, 10**9),
            Parameter("m", "number of triples", 4, int, 0, 10**5),
            Parameter(
                "answer", "yes or any: triples exist, or no promise", "yes", str, choices=_ANSWERS
            ),
        ),
        n="3m",
        memory="T + 3",
        fixed=("memory",),
    ),
)

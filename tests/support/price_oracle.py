"""What prices prove of runs or pauses, of tokens, blocks and slots, and the LP that they reach.

From the definitions alone: nothing of kvopt is imported, a proof is what a file has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from brute_force import Triple
from scipy.optimize import linprog


def price_of_a_slot(borders: Sequence[int], values: Sequence[int], time: int) -> int:
    """Return it as docs/theory/bounds.md defines it."""
    for (begin, price), (end, after) in zip(
        zip(borders, values, strict=True), zip(borders[1:], values[1:], strict=False), strict=False
    ):
        if begin < time <= end:
            return price + (time - begin) * -((price - after) // (end - begin))
    return 0


def bound_of(
    memory: int,
    requests: Sequence[Triple],
    proof: dict[str, Any],
    *,
    block: int = 1,
    workers: int = 1,
    pauses: bool = False,
    weights: Sequence[int] = (),
    shared: Callable[[int, int], int] = lambda *_: 0,
    unit: int = 1,
) -> Fraction:
    """Return what a proof gives before it is rounded, from every choice of active times.

    A request pays for its own tokens, and for ``shared`` parts of ``unit`` of nodes that it has
    in common with others: a function of request and time.
    """
    scale: int = unit * proof["denominator"]
    (first,) = (each for each in proof["resources"] if each["name"] == "tokens")
    slots = [each for each in proof["resources"] if each["name"] == "slots"]
    tokens: dict[int, int] = dict(enumerate(first["numerators"], first["first"]))
    last = max([0, *tokens, *(time for slot in slots for time in slot["times"])])

    def of_slots(time: int) -> Iterator[tuple[int, int]]:
        for slot in slots:
            price = price_of_a_slot(slot["times"], slot["numerators"], time)
            yield slot["capacity"], price

    def paid(i: int, time: int, held: int) -> int:
        shares = ((count + 1) * held // (memory + 1) * price for count, price in of_slots(time))
        whole = unit * block * -(-held // block) + shared(i, time)
        return tokens.get(time, 0) * whole + unit * sum(shares)

    def least(i: int, request: Triple, weight: int) -> int:
        arrival, prompt, output = request
        return min(
            scale * weight * (times[-1] - arrival)
            + sum(paid(i, t, prompt + j) for j, t in enumerate(times, 1))
            for times in _active(arrival, output, last, pauses)
        )

    rent = block * (memory // block) * sum(tokens.values())
    rent += sum(count * price for time in range(last + 1) for count, price in of_slots(time))
    pairs = zip(requests, weights or [1] * len(requests), strict=True)
    total = sum(least(i, *pair) for i, pair in enumerate(pairs))
    return Fraction(total - workers * unit * rent, scale)


def _active(arrival: int, output: int, last: int, pauses: bool) -> Iterator[Sequence[int]]:
    """Yield all active times of which some have a price, and the first that have none."""
    if pauses:
        yield from combinations(range(arrival + 1, max(arrival, last) + output + 1), output)
        return
    for start in range(arrival, max(arrival, last) + 1):
        yield range(start + 1, start + output + 1)


def relaxed_optimum(memory: int, requests: Sequence[Triple]) -> float:
    """Return the value of the time-indexed LP up to a time by which all fit one by one."""
    horizon = max((a for a, _, _ in requests), default=0) + sum(o for _, _, o in requests)
    columns = [
        (i, k)
        for i, (arrival, _, output) in enumerate(requests)
        for k in range(arrival, horizon - output + 1)
    ]
    tokens = np.zeros((horizon, len(columns)))
    starts = np.zeros((len(requests), len(columns)))
    latency = np.zeros(len(columns))
    for column, (i, start) in enumerate(columns):
        arrival, prompt, output = requests[i]
        starts[i, column] = 1
        latency[column] = start + output - arrival
        for age in range(1, output + 1):
            tokens[start + age - 1, column] = prompt + age
    limits = np.full(horizon, memory)
    if not columns:
        return 0.0
    return float(linprog(latency, tokens, limits, starts, np.ones(len(requests))).fun)

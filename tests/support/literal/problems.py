"""Small problems with prices of states, which enumeration settles."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

from oracle import Triple

from literal import configurations as literal
from literal.best_prices import best_prices
from literal.configurations import Prices


def drawn(generator: random.Random, most: int, memory: int = 7, late: int = 3) -> list[Triple]:
    """Return up to ``most`` requests; about half of the problems have arrivals."""
    late = generator.choice([0, late])
    requests = []
    for _ in range(generator.randint(1, most)):
        output = generator.randint(1, min(4, memory))
        prompt = generator.randint(0, min(3, memory - output))
        requests.append((generator.randint(0, late), prompt, output))
    return requests


def drawn_prices(generator: random.Random, requests: Sequence[Triple]) -> Prices:
    """Price some of the states that the requests can reach, at some times."""
    states = sorted(literal.copies_at(requests))
    most = generator.choice([1, 2, 4])
    return {
        time: {
            state: Fraction(generator.randint(0, 2 * most), 3)
            for state in states
            if generator.random() < 0.7
        }
        for time in range(1, generator.randint(2, 8))
    }


def problems(seed: int, count: int, most: int = 3) -> Iterator[tuple[int, list[Triple], Prices]]:
    """Yield memories, requests, and prices, every second ones about the best."""
    generator = random.Random(seed)
    for i in range(count):
        memory = generator.randint(2, 7)
        requests = drawn(generator, most, memory)
        prices = drawn_prices(generator, requests)
        yield memory, requests, best_prices(memory, requests) if i % 2 else prices


def copies_for(
    requests: Sequence[Triple], prices: Prices, kind: str
) -> dict[int, literal.Copies] | None:
    if kind == "unlimited":
        return None
    return {t: literal.copies_at(requests, t if kind == "at the time" else None) for t in prices}


def ascending(memory: int, most: int) -> list[tuple[int, ...]]:
    """Return every ascending list of at most ``most`` thresholds."""
    return [
        thresholds
        for count in range(1, most + 1)
        for thresholds in itertools.combinations_with_replacement(range(1, memory + 1), count)
    ]

"""Bounds and schedules in whole blocks against brute force, and prices against literal minima."""

from __future__ import annotations

import random
from collections import deque
from itertools import combinations, islice

import block_oracle
import numpy as np
import pytest
from block_comparison import drawn, in_blocks
from certificates import proved
from effort import many
from known import known
from strategies import plain

from kvopt import Instance, bound
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.paused_scan import PausedScanner
from kvopt.bounds.prices import price_value
from kvopt.bounds.scan import Scanner
from kvopt.incumbent.proofs import BlockPrices, Prices
from kvopt.problem.scopes import Scope

SCOPES = (Scope.RUNS, Scope.PAUSES)


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPES)
def test_brute_force_lies_between_both_sides(scope: Scope) -> None:
    (figures,) = deque(islice(in_blocks(scope, 7), many(8)), maxlen=1)
    assert figures.instances == many(8)
    assert figures.met > 0
    assert figures.violations == 0


def literal(instance: Instance, prices: Prices, pauses: bool) -> int:
    """Return the sum of least costs, from every choice of active times."""
    size, last, total = instance.block_size, len(prices.numerators), 0
    for request in instance:
        arrival, output = request.arrival, request.output
        held = [
            size * block_oracle.blocks_of(request.prompt + j, size) for j in range(1, output + 1)
        ]
        end = max(arrival, last) + output
        ways = list(combinations(range(arrival + 1, end + 1), output))
        if not pauses:
            ways = [way for way in ways if way[-1] - way[0] == output - 1]
        total += min(
            prices.denominator * (way[-1] - arrival)
            + sum(prices.numerators[t - 1] * h for t, h in zip(way, held, strict=True) if t <= last)
            for way in ways
        )
    return total


@pytest.mark.parametrize("pauses", [False, True])
def test_prices_of_blocks_are_exact_and_no_bound_is_above_the_optimum(pauses: bool) -> None:
    for seed in range(many(80)):
        source = random.Random(seed)
        instance = drawn(source)
        first = source.randint(1, 4)
        own = tuple(source.randint(0, 5) for _ in range(source.randint(1, 7)))
        prices = Prices((0,) * (first - 1) + own, source.randint(1, 40))
        least = literal(instance, prices, pauses)
        rent = instance.in_tokens().memory * sum(own)
        scanner = (PausedScanner if pauses else Scanner)(Kinds.of(instance))
        assert price_value(instance, prices, scanner) == least - rent
        assert price_value(instance, prices, pauses=pauses) == least - rent
        values = np.array(prices.numerators) / prices.denominator
        found, _, _ = scanner.lagrangian(values, 0)
        assert found == pytest.approx(least / prices.denominator)
        proof = {"kind": "block-prices", "denominator": prices.denominator, "first": first}
        proof["numerators"] = list(own)
        memory, requests = plain(instance)
        size, value = instance.block_size, proved(instance, proof, pauses=pauses)
        assert value == -((rent - least) // prices.denominator)
        assert value <= block_oracle.optimum(memory, requests, size, pauses=pauses)


def test_counting_blocks_raises_the_bound() -> None:
    requests = drawn(random.Random(1)).requests
    instance = Instance(12, requests, block_size=4)
    found = bound(instance, "lagrangian", threads=1)
    inside = bound(instance.in_tokens(), "lagrangian", threads=1)
    assert known(found.value) >= known(inside.value)
    assert isinstance(known(found.checked).proof, BlockPrices)

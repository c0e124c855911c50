"""Bounds and schedules in whole blocks against brute force, and prices against literal minima."""

from __future__ import annotations

import random
from collections import deque
from itertools import islice

import pytest
from block_comparison import drawn, in_blocks
from effort import many
from known import known

from kvopt import Instance, bound
from kvopt.incumbent.proofs import BlockPrices
from kvopt.problem.scopes import Scope

SCOPES = (Scope.RUNS, Scope.PAUSES)


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPES)
def test_brute_force_lies_between_both_sides(scope: Scope) -> None:
    (figures,) = deque(islice(in_blocks(scope, 7), many(8)), maxlen=1)
    assert figures.instances == many(8)
    assert figures.met > 0
    assert figures.violations == 0


def test_counting_blocks_raises_the_bound() -> None:
    requests = drawn(random.Random(1)).requests
    instance = Instance(12, requests, block_size=4)
    found = bound(instance, "lagrangian", threads=1)
    inside = bound(instance.in_tokens(), "lagrangian", threads=1)
    assert known(found.value) >= known(inside.value)
    assert isinstance(known(found.checked).proof, BlockPrices)

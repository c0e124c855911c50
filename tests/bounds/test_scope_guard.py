"""Bounds of each scope are below brute force of that scope; a benchmark does it 10,000 times."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import pytest
from effort import many
from known import known
from scope_comparison import (
    ROUNDS,
    SECONDS,
    Figures,
    drawn_in_blocks,
    in_blocks,
    in_rounds,
    in_seconds,
)

from kvopt import Instance, bound
from kvopt.incumbent.proofs import BlockPrices
from kvopt.problem.scopes import Scope

Guard = Callable[[Scope, int], Iterator[Figures]]
GUARDS = [
    *((in_rounds, scope, 15) for scope in ROUNDS),
    *((in_seconds, scope, 8) for scope in SECONDS),
    *((in_blocks, scope, 8) for scope in (Scope.RUNS, Scope.PAUSES)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("guard", "scope", "count"), GUARDS)
def test_no_bound_is_above_the_optimum(guard: Guard, scope: Scope, count: int) -> None:
    """Of whole blocks also no schedule is below it."""
    (figures,) = deque(islice(guard(scope, 7), many(count)), maxlen=1)
    assert figures.instances == many(count) <= figures.bounds
    assert figures.violations == 0
    assert figures.met > 0


def test_a_bound_above_the_optimum_is_counted() -> None:
    figures = Figures()
    figures.count(5, 4, None, 6)
    assert (figures.bounds, figures.met, figures.violations) == (2, 0, 1)


# ---- bounds and schedules in whole blocks against brute force, and prices against lit


def test_counting_blocks_raises_the_bound() -> None:
    requests = drawn_in_blocks(random.Random(1)).requests
    instance = Instance(12, requests, block_size=4)
    found = bound(instance, "lagrangian", threads=1)
    inside = bound(instance.in_tokens(), "lagrangian", threads=1)
    assert known(found.value) >= known(inside.value)
    assert isinstance(known(found.checked).proof, BlockPrices)

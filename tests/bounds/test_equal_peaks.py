"""Kernels of configurations with random prices, where many requests have one peak.

Whole solves seldom reach the ends of arrays: prices that have risen leave few ways.  Random prices
do, so `make test-bounds`, which checks every index, sees here what is read or written beyond them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import brute_force
import pytest
from effort import many
from strategies import instance_of, plain
from test_completion import Literal, budget_of, drawn
from test_forward_search import LIMIT, lookahead_of, tel_of

from kvopt import Instance
from kvopt.bounds.configurations.completion import Completions
from kvopt.bounds.configurations.forward_search import ForwardSearch, twins_of
from kvopt.bounds.configurations.states import States
from kvopt.kernels.budget import Budget

_MEMORY = 12
_SHAPES = ((5, 1), (0, 6), (4, 2), (3, 3), (1, 1), (6, 6))
"""Prompts and outputs: four shapes have a peak of 6, of which two fit, and one fills the memory."""


def alike(count: int, seed: int, most: int) -> Iterator[Instance]:
    """Yield instances in which most requests have the same peak, some in all."""
    source = random.Random(seed)
    for _ in range(count):
        shapes = _SHAPES[: source.choice((2, 2, 2, 4, 6))]
        yield instance_of(
            _MEMORY,
            [
                (source.randint(0, 6), *source.choice(shapes))
                for _ in range(source.randint(2, most))
            ],
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_completion_bounds_are_those_by_definition(seed: int) -> None:
    source, compared = random.Random(seed), 0
    for instance in alike(many(120), seed, 4):
        evaluation = drawn(source, instance, positive=True)
        budget = source.choice((5, 30, 10**6))
        rest = Completions(States.of(instance), evaluation, budget)
        rest.fill(10**4, 10**7, Budget())
        literal = Literal(instance, evaluation, budget, told_apart=False)
        assert rest.rise == min(literal.rest(0, ()), budget + 1)
        compared += rest.rise > 0
    assert compared > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_searches_find_the_same(seed: int) -> None:
    """By themselves, with a look-ahead, and with completion bounds of few or of many sets."""
    source, reached = random.Random(seed), 0
    for instance in alike(many(120), 10 + seed, 6):
        memory, requests = plain(instance)
        optimum = brute_force.optimum(memory, requests)
        evaluation = drawn(source, instance, positive=bool(seed))
        states, target = States.of(instance), optimum + source.choice((0, 1, 3))
        plainly = ForwardSearch(states, twins_of(instance), evaluation, target)
        rest = Completions(states, evaluation, budget_of(evaluation, target))
        rest.fill(source.choice((1, 5, 1000)), source.choice((1, 20, 1000)), Budget())
        looking = lookahead_of(plainly, target, source.choice((1, 4, 20)))
        least = tel_of(requests, plainly.search_exhaustively(LIMIT))
        assert least is None or optimum <= least < target  # more where starts are ruled out
        reached += least is not None
        for forward in (
            plainly,
            replace(plainly, lookahead=looking),
            replace(plainly, completions=rest),
        ):
            assert tel_of(requests, forward.search_exhaustively(LIMIT)) == least
            beam = forward.search_with_beam(source.choice((1, 5, 50)))
            assert beam is None or brute_force.feasible(memory, requests, beam)
            assert beam is None or brute_force.tel(requests, beam) < target
    assert reached > 0

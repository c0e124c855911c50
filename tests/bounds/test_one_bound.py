"""The functions of `kvopt.bounds`: each is at most the optimum, and repeats its proof."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from known import known

from kvopt import InvalidInput, Problem, Seconds, batch_time, bounds, generate, tiny_optimum
from kvopt.bounds import Bound, prices

INSTANCE = generate("arrival-1", n=6, seed=3)
METHODS = ("volume", "lp", "lagrangian", "slot", "configuration")


def function(method: str) -> Callable[..., Bound]:
    found: Callable[..., Bound] = getattr(bounds, f"{method}_bound")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_bound_is_at_most_the_optimum(method: str) -> None:
    optimum, found = tiny_optimum(INSTANCE), function(method)(INSTANCE)
    assert 0 < found.value <= known(optimum)
    if found.proof == found.prices:
        assert prices.price_bound(INSTANCE, known(found.prices)) == found.value


@pytest.mark.parametrize("method", METHODS[1:])
def test_without_a_budget_it_is_that_of_the_volumes(method: str) -> None:
    found = function(method)(INSTANCE, budget=0.0)
    assert 0 < found.value <= bounds.volume_bound(INSTANCE).value


@pytest.mark.slow
def test_seconds_have_a_bound_of_their_own() -> None:
    clock = Seconds(batch_time("llama-3-8b@h100"))
    chat = generate("conversation", n=4, memory=1_000, seed=1)
    assert bounds.seconds_bound(Problem(chat, clock)).value > 0
    with pytest.raises(InvalidInput, match="clock: must be one of seconds"):
        bounds.seconds_bound(Problem(chat))
    with pytest.raises(AttributeError, match="no attribute 'best_bound'"):
        bounds.best_bound  # noqa: B018

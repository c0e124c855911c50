"""The exhaustive search over rounds: what brute force finds, under any prices."""

from __future__ import annotations

import random

import brute_force
import numpy as np
import pytest
from effort import many
from known import known
from strategies import instance_of, plain, random_instances

from kvopt import generate
from kvopt.bounds.prices import price_value
from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.proofs import token_prices
from kvopt.search.exact.paused_layers import fill, groups_of, search_layers


def go_on() -> bool:
    return False


@pytest.mark.slow
def test_layers_find_the_best_below_a_value_or_nothing() -> None:
    source = random.Random(1)
    for instance in random_instances(
        many(80), seed=2, least_requests=1, most_memory=8, most_output=4, last_arrival=3
    ):
        best = brute_force.optimum(*plain(instance), scope="pauses")
        unit = source.choice((1, 7, 30))
        numbers = [source.choice((0, source.randint(0, unit))) for _ in range(source.randint(0, 9))]
        prices = token_prices(tuple(numbers), unit)
        for upper in (best + 1, best + source.randint(2, 20)):
            found = known(search_layers(instance, prices, upper, go_on))
            assert found.check().feasible
            assert found.objective == best
        assert search_layers(instance, prices, best, go_on) is None


def test_labels_are_few_where_prices_are_good() -> None:
    """The first request may not wait, so under a tight value only one way is left."""
    instance = instance_of(10, [(0, 0, 10), (6, 5, 1)])
    best = search_layers(instance, token_prices((), 1), 13, go_on, limit=3)
    assert known(best).objective == 12


def test_a_search_of_layers_stops_in_time() -> None:
    with pytest.raises(Stopped):
        search_layers(instance_of(3, [(0, 0, 3)]), token_prices((), 1), 9, lambda: True)


def test_rounds_with_too_many_labels_are_refused() -> None:
    instance = generate("arrival-1", n=5, seed=1)
    with pytest.raises(TooLarge, match="has more than 5 labels with pauses"):
        search_layers(instance, token_prices((), 1), 10**6, go_on, limit=5)


def test_too_many_tokens_for_a_label_are_refused() -> None:
    instance = instance_of(200, [(0, 0, 100)] * 9)
    with pytest.raises(TooLarge, match="9 requests have too many tokens"):
        search_layers(instance, token_prices((), 1), 10**6, go_on)


def test_costs_beyond_64_bits_are_refused() -> None:
    with pytest.raises(TooLarge, match="costs do not fit into 64 bits"):
        search_layers(instance_of(3, [(0, 0, 3)]), token_prices((2**60,), 2**60), 9, go_on)


# ---- prices with groups of requests prove more than with single ones, and less than s


@pytest.mark.slow
def test_groups_prove_no_less_than_single_requests_and_no_more_than_the_optimum() -> None:
    source = random.Random(3)
    for instance in random_instances(
        many(60), seed=5, least_requests=1, most_memory=8, most_output=4, last_arrival=3
    ):
        unit = source.choice((1, 7, 30))
        numbers = [source.choice((0, source.randint(0, unit))) for _ in range(source.randint(3, 9))]
        prices = token_prices(tuple(numbers), unit)
        groups = groups_of(instance, len(numbers))
        value = fill(groups, instance.memory, np.array(numbers, dtype=np.int64), unit)
        assert price_value(instance, prices, pauses=True) <= value
        assert value <= brute_force.optimum(*plain(instance), scope="pauses") * unit


def test_every_request_is_in_one_group() -> None:
    instance = instance_of(9, [(0, 1, 3), (0, 0, 9), (2, 4, 5), (0, 2, 1), (1, 0, 2)])
    assert [g.members for g in groups_of(instance, 20)] == [(1, 2, 0), (3, 4)]
    assert [g.members for g in groups_of(instance, 20, 21 * 60)] == [(1, 2), (0, 3, 4)]
    assert [g.members for g in groups_of(instance, 20, 21 * 10)] == [(1,), (2,), (0, 3), (4,)]
    with pytest.raises(TooLarge, match="a table of 10 tokens and 21 rounds"):
        groups_of(instance, 20, 21 * 9)

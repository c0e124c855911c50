"""Schedules with pauses from orders: feasible, as the definition says, and nearly the best."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import brute_force
import pytest
from strategies import instance_of, plain, random_instances

from kvopt import Instance, Schedule, generate
from kvopt.errors import TooLarge
from kvopt.heuristics.reinsertion import (
    nowhere,
    schedule_by_order,
    search_with_pauses,
    usual_orders,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope


def round_by_round(
    memory: int, requests: Sequence[brute_force.Triple], order: Sequence[int]
) -> list[list[int]]:
    """Fill each round in the order, and skip what does not fit."""
    times: list[list[int]] = [[] for _ in requests]
    clock = 0
    while any(len(t) < o for t, (_, _, o) in zip(times, requests, strict=True)):
        room = memory
        for i in order:
            arrival, prompt, output = requests[i]
            held = prompt + len(times[i]) + 1
            if arrival <= clock and len(times[i]) < output and held <= room:
                room -= held
                times[i].append(clock + 1)
        clock += 1
    return times


def test_an_order_fills_rounds() -> None:
    source = random.Random(1)
    for instance in random_instances(60, seed=2):
        order = source.sample(range(len(instance)), len(instance))
        schedule = schedule_by_order(instance, order)
        memory, requests = plain(instance)
        times = round_by_round(memory, requests, order)
        assert schedule == type(schedule).at_times(instance, times)
        assert schedule.check().feasible


def test_usual_orders_are_by_volume_and_by_output() -> None:
    instance = instance_of(20, [(0, 9, 2), (0, 0, 3), (0, 0, 1)])
    assert list(usual_orders(instance)) == [[2, 1, 0], [2, 0, 1]]


def searched(instance: Instance, seconds: float = math.inf, **limits: Any) -> Schedule:
    """Return what a search with pauses finds in short cycles."""
    search = Search(Problem(instance, scope=Scope.PAUSES), Limits(**limits))
    search_with_pauses(search, search.budget.part(most=seconds), longest_cycle=2000)
    assert not search.faults
    assert search.best is not None
    return search.best


@pytest.mark.slow
def test_the_search_is_rarely_above_the_optimum() -> None:
    missed = 0
    for instance in random_instances(60, 11, most_memory=8, most_output=4, last_arrival=3):
        found, best = (
            searched(instance).objective,
            brute_force.optimum(*plain(instance), scope="pauses"),
        )
        assert found >= best
        missed += found > best
    assert missed <= 2


def test_the_search_improves_and_repeats_itself() -> None:
    instance = generate("arrival-2", n=30, seed=4)
    first = min(schedule_by_order(instance, order).objective for order in usual_orders(instance))
    found = [searched(instance, seed=3) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].check().feasible
    assert found[0].objective < first


def test_limits_leave_a_schedule() -> None:
    instance = generate("arrival-2", n=30, seed=4)
    first = min(schedule_by_order(instance, order).objective for order in usual_orders(instance))
    assert searched(instance, 0).objective == first
    assert searched(instance, stop=lambda _: True).objective == first


@pytest.mark.parametrize("requests", [[], [(3, 1, 2)]])
def test_few_requests_start_at_once(requests: list[brute_force.Triple]) -> None:
    assert searched(instance_of(5, requests)).objective == sum(o for _, _, o in requests)


def test_a_horizon_that_is_too_long_is_refused() -> None:
    instance = Instance(9, instance_of(9, [(2, 1, 3)]).requests)
    with pytest.raises(TooLarge, match="rounds of 1 workers are more than the limit of 33,554,432"):
        nowhere(instance, 2**25 + 1)

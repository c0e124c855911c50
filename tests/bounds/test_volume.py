"""The volume bound never passes the optimum, and its fluid is what it is said to be."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import mc_sf, optimum, tel
from strategies import (
    Problem,
    instance_of,
    instances,
    plain,
    random_feasible_starts,
    random_instances,
)

from kvopt.bounds.volume import fluid_completions, volume_bound, volume_bounds_without_each
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.timetable.schedule import Schedule

Jobs = Sequence[tuple[int, int]]
"""``(arrival, volume)`` of each job of a fluid."""


@pytest.mark.parametrize("last_arrival", [0, 2, 5])
def test_bound_stays_below_the_optimum(last_arrival: int) -> None:
    gaps = []
    for instance in random_instances(2000, seed=last_arrival, last_arrival=last_arrival):
        best, _ = optimum(*plain(instance))
        gaps.append(best - volume_bound(instance))
    assert min(gaps) >= 0
    assert gaps.count(0) > len(gaps) // 4, "a bound that is hardly ever tight proves little"


@given(instances(most_requests=4, most_output=4))
def test_bound_stays_below_the_optimum_of_drawn_instances(instance: Instance) -> None:
    best, _ = optimum(*plain(instance))
    assert instance.total_output <= volume_bound(instance) <= best


def test_no_schedule_completes_before_the_fluid() -> None:
    source = random.Random(11)
    for instance in random_instances(1000, seed=11, most_requests=9, most_memory=14):
        fluid = fluid_completions([(r.arrival, r.volume) for r in instance], instance.memory)
        for starts in (mc_sf(*plain(instance)), random_feasible_starts(instance, source)):
            completions = sorted(Schedule(instance, starts).completions)
            assert all(f <= c for f, c in zip(fluid, completions, strict=True))


BY_REQUEST: Problem = (4, ((0, 0, 2), (0, 2, 1)))
BY_PRIORITY: Problem = (5, ((2, 2, 3), (4, 3, 2)))


def test_combining_by_request_would_pass_the_optimum() -> None:
    volumes_and_ends = [(3, 2), (3, 1)]  # both volumes are 3, so this order is one to take
    by_request = sum(
        max(math.ceil(sum(v for v, _ in volumes_and_ends[: j + 1]) / 4), end)
        for j, (_, end) in enumerate(volumes_and_ends)
    )
    assert by_request == 4
    assert optimum(*BY_REQUEST)[0] == 3
    assert volume_bound(instance_of(*BY_REQUEST)) == 3


def test_fixed_priority_by_volume_would_pass_the_optimum() -> None:
    instance = instance_of(*BY_PRIORITY)
    jobs = [(r.arrival, r.volume) for r in instance]
    fixed = naive_fluid(jobs, instance.memory, by_remaining=False)
    assert sum(fixed) - sum(arrival for arrival, _ in jobs) == 7
    assert optimum(*BY_PRIORITY)[0] == 6
    assert volume_bound(instance) == 6


def naive_fluid(jobs: Jobs, memory: int, *, by_remaining: bool = True) -> list[int]:
    """Serve round after round with exact fractions of a round; return sorted completions."""
    left = {i: Fraction(volume) for i, (_, volume) in enumerate(jobs)}
    completions = [arrival for arrival, volume in jobs if volume == 0]
    left = {i: volume for i, volume in left.items() if volume}
    clock = 0
    while left:
        clock += 1
        share = Fraction(1)  # what is left of this round
        while share and (here := [i for i in left if jobs[i][0] < clock]):
            i = min(here, key=lambda i: left[i] if by_remaining else jobs[i][1])
            served = min(share, left[i] / memory)
            share -= served
            left[i] -= served * memory
            if not left[i]:
                del left[i]
                completions.append(clock)
    return sorted(completions)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=8), st.integers(1, 12))
def test_fluid_equals_a_naive_simulation(jobs: list[tuple[int, int]], memory: int) -> None:
    assert fluid_completions(jobs, memory) == naive_fluid(jobs, memory)


def test_fluid_equals_a_naive_simulation_on_many_jobs() -> None:
    source = random.Random(3)
    for _ in range(300):
        jobs = [
            (source.randint(0, 12), source.randint(1, 40)) for _ in range(source.randint(1, 12))
        ]
        memory = source.randint(1, 15)
        assert fluid_completions(jobs, memory) == naive_fluid(jobs, memory)


def test_fluid_counts_rounds_of_astronomic_length_exactly() -> None:
    memory = 2**53 - 1
    assert fluid_completions([(10**15, memory), (10**15, 1)], memory) == [10**15 + 1, 10**15 + 2]


def test_bounds_without_each_equal_removing_it() -> None:
    for instance in random_instances(600, seed=7, most_requests=7):
        assert volume_bounds_without_each(instance) == bounds_by_removal(instance)


def bounds_by_removal(instance: Instance) -> list[int]:
    requests = instance.requests
    rests = ([*requests[:i], *requests[i + 1 :]] for i in range(len(requests)))
    return [volume_bound(Instance(instance.memory, rest)) for rest in rests]


def test_bounds_without_each_of_many_kinds_stay_valid() -> None:
    kinds = [Request(arrival, 1, output) for arrival in range(101) for output in range(1, 11)]
    instance = Instance(12, kinds)
    cheap = volume_bounds_without_each(instance)
    for i in (0, 500, len(kinds) - 1):
        rest = Instance(12, kinds[:i] + kinds[i + 1 :])
        assert rest.total_output == cheap[i] <= volume_bound(rest)


def test_nothing_to_do_costs_nothing() -> None:
    empty = Instance(3, [])
    assert volume_bound(empty) == 0
    assert volume_bounds_without_each(empty) == []
    assert fluid_completions([], 3) == []


def test_one_request_is_met_exactly() -> None:
    triple = (4, 2, 5)
    assert volume_bound(instance_of(7, [triple])) == 5 == tel([triple], [4])

"""The volume bound never passes the optimum, and its fluid is what it is said to be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from effort import many
from hypothesis import given
from hypothesis import strategies as st
from oracle import optimum, tel
from strategies import (
    Problem,
    instance_of,
    random_feasible_starts,
    random_instances,
)

from kvopt.bounds.volume import fluid_completions, volume_bound, volume_bounds_without_each
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.timetable.schedule import Schedule

Jobs = Sequence[tuple[int, int]]
"""``(arrival, volume)`` of each job of a fluid."""


def test_no_schedule_completes_before_the_fluid() -> None:
    source = random.Random(11)
    for instance in random_instances(many(300), seed=11, most_requests=9, most_memory=14):
        fluid = fluid_completions([(r.arrival, r.volume) for r in instance], instance.memory)
        starts = random_feasible_starts(instance, source)
        completions = sorted(Schedule(instance, starts).completions)
        assert all(f <= c for f, c in zip(fluid, completions, strict=True))


@pytest.mark.parametrize(
    ("problem", "best"), [((4, ((0, 0, 2), (0, 2, 1))), 3), ((5, ((2, 2, 3), (4, 3, 2))), 6)]
)
def test_combining_by_request_or_a_fixed_priority_would_pass_the_optimum(
    problem: Problem, best: int
) -> None:
    assert optimum(*problem)[0] == volume_bound(instance_of(*problem)) == best


def naive_fluid(jobs: Jobs, memory: int) -> list[int]:
    """Serve round after round with exact fractions of a round; return sorted completions."""
    left = {i: Fraction(volume) for i, (_, volume) in enumerate(jobs)}
    completions = [arrival for arrival, volume in jobs if volume == 0]
    left = {i: volume for i, volume in left.items() if volume}
    clock = 0
    while left:
        clock += 1
        share = Fraction(1)  # what is left of this round
        while share and (here := [i for i in left if jobs[i][0] < clock]):
            i = min(here, key=lambda i: left[i])
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


def test_fluid_counts_rounds_of_astronomic_length_exactly() -> None:
    memory = 2**53 - 1
    assert fluid_completions([(10**15, memory), (10**15, 1)], memory) == [10**15 + 1, 10**15 + 2]


def test_bounds_without_each_equal_removing_it() -> None:
    for instance in random_instances(many(150), seed=7, most_requests=7):
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

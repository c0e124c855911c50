"""The bound by the LP relaxation, against the LP of SciPy."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from effort import many
from known import known
from price_oracle import relaxed_optimum
from strategies import instance_of, plain, random_instances

from kvopt import bound, generate
from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lp import lp_bounds, lp_vertices
from kvopt.bounds.mean_starts import lp_mean_starts
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget

LATE_STARTS = instance_of(8, [(0, 0, 5), (0, 2, 5)])
"""A list schedule ends before half a request of the LP does."""


def rounded_up(value: float) -> int:
    return math.ceil(value - 1e-6)


def test_starts_after_the_end_of_a_list_schedule_count() -> None:
    assert relaxed_optimum(*plain(LATE_STARTS)) == pytest.approx(12.857, abs=1e-3)
    assert bound(LATE_STARTS, "lp").value == 13
    assert bound(generate("arrival-2", n=7, seed=2), "lp").value == 148


def test_what_was_proved_before_the_end_is_kept() -> None:
    """HiGHS ends with the budget, whatever thread it is in, and an earlier bound is there."""
    instance, values = generate("uniform", n=40, memory=60, seed=0), list[int]()
    budget = Budget(until=lambda: len(values) == 2)
    values += (found.value for found in lp_bounds(instance, budget, Limits()))
    assert len(values) == 2
    assert max(values) <= known(bound(instance, "lp").value)


@pytest.mark.slow
def test_it_is_the_value_of_the_lp() -> None:
    for instance in random_instances(many(150), 11, most_memory=14, last_arrival=5):
        assert bound(instance, "lp").value == rounded_up(relaxed_optimum(*plain(instance)))


@pytest.mark.slow
def test_mean_starts_have_the_value_of_the_lp() -> None:
    """Also with idle gaps, where each part has an LP of its own."""
    drawn = random_instances(many(150), 12, most_memory=14, last_arrival=30)
    for instance in (LATE_STARTS, *drawn):
        means = zip(lp_mean_starts(instance), instance, strict=True)
        latency = sum(mean + r.output - r.arrival for mean, r in means)
        assert latency == pytest.approx(relaxed_optimum(*plain(instance)), abs=1e-5)


@pytest.mark.slow
def test_vertices_keep_to_the_memory_after_the_fluid_too() -> None:
    longer = 0
    for instance in random_instances(60, 13, least_requests=3, most_memory=14):
        *_, vertex = lp_vertices(instance, Budget(), Limits())
        kinds, held = list(Kinds.of(instance).rows()), Counter[int]()
        for place, start, mass in zip(vertex.places, vertex.starts, vertex.mass, strict=True):
            _, prompt, output = kinds[place]
            for age in range(1, output + 1):
                held[int(start) + age] += mass * (prompt + age)
        assert max(held.values()) <= instance.memory * (1 + 1e-6)
        longer += len(vertex.prices) > fluid_end(instance)
    assert longer

"""Higher least costs by planes of lines of sets, against brute force and other least costs."""

from __future__ import annotations

import math
from itertools import islice, product

import brute_force
import numpy as np
import pytest
from effort import many
from hypothesis import given, settings
from hypothesis import strategies as st
from known import known
from strategies import plain, random_instances
from test_forward_search import searched

from kvopt import Instance
from kvopt.bounds.configurations.cost_to_go import CostToGo
from kvopt.bounds.configurations.dual_ascent import DualAscent
from kvopt.bounds.configurations.least_costs import LeastCosts, Planes
from kvopt.errors import Stopped
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats

WIDE = 10**6
"""More sets and a wider window than any small problem has."""


def priced(instance: Instance) -> DualAscent:
    """Return prices of two stages, with all starts of schedules that are nearly optimal."""
    schedule = known(searched(instance).schedule)
    ascent = DualAscent(instance, schedule.makespan)
    for _ in islice(ascent.bounds(lambda: schedule.objective + 3), 2):
        pass
    return ascent


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(-5, 5)), min_size=1),
    st.tuples(st.integers(0, 4), st.integers(0, 4)),
    st.integers(-5, 9),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
@settings(deadline=None)
def test_no_point_above_all_planes_is_nearer(
    drawn: list[tuple[int, int, int]],
    begin: tuple[int, int],
    level: int,
    numbers: tuple[int, int],
) -> None:
    planes, scale = Planes(np.array(numbers, dtype=float)), np.array(numbers)
    for *slopes, value in drawn:
        # The plane through the value at the origin and another point.
        other = np.array([value, 2.0])
        planes.add(other, value + np.array(slopes) @ other, np.array(slopes, dtype=float))
    point = np.array(begin, dtype=float)
    nearest = planes.nearest(point, level)

    def is_above(at: Floats, slack: float) -> bool:
        heights = [value + np.array(slopes) @ at for *slopes, value in drawn]
        return bool(min(heights) >= level - slack)

    def distance(at: Floats) -> float:
        return float(scale @ (at - point) ** 2)

    grid = [np.array(at) / 2 for at in product(range(30), repeat=2)]
    if nearest is None:
        assert not any(is_above(at, 0.0) for at in grid)
        return
    assert nearest.min() >= 0.0
    assert is_above(nearest, 1e-6)
    assert all(distance(at) >= distance(nearest) - 1e-6 for at in grid if is_above(at, 0.0))


@pytest.mark.slow
def test_a_plane_of_a_line_bounds_what_all_other_least_costs_prove() -> None:
    """Without it a level would lead away from the best least costs."""
    source, planes = np.random.default_rng(3), 0
    for instance in random_instances(many(12), 5, least_requests=2, last_arrival=0):
        base = priced(instance)
        shapes = list(dict.fromkeys(request.shape for request in instance))
        numbers = np.array([sum(r.shape == s for r in instance) for s in shapes])
        # No price makes a start after the last priced time dearer.
        costs = base.evaluation.reduced_costs[:, -1] / base.evaluation.denominator
        rows = {request.shape: i for i, request in enumerate(instance)}
        highest = np.minimum(4, [costs[rows[shape]] for shape in shapes])
        proofs = []
        for _ in range(4):
            rises = highest * source.uniform(size=len(shapes)) * source.integers(0, 2)
            ascent = base.with_entry_prices(dict(zip(shapes, rises.tolist(), strict=True)))
            evaluation = ascent.evaluation
            tables = CostToGo(ascent.states, evaluation, WIDE * evaluation.denominator)
            tables.fill(WIDE, WIDE * evaluation.denominator, Budget(), lines=True)
            value = (evaluation.total + tables.rise) / evaluation.denominator
            counts = known(tables.starts_of_cheapest())
            missing = numbers - np.array([counts[shape] for shape in shapes])
            proofs.append((rises, value, missing))
        rounding = len(instance) * 2 / evaluation.denominator
        for (one, value, missing), (other, bound, _) in product(proofs, repeat=2):
            assert bound <= value + missing @ (other - one) + rounding
            planes += bool(missing.any())
    assert planes


@pytest.mark.slow
def test_values_of_all_steps_are_bounds() -> None:
    risen = 0
    for instance in random_instances(many(20), 11, least_requests=2, last_arrival=4):
        optimum = brute_force.optimum(*plain(instance))
        costs = LeastCosts(instance, priced(instance), 3)
        values = []
        for _ in range(12):
            if costs.is_final:
                break
            costs.step(optimum + 3, WIDE, WIDE, Budget())
            values.append(costs.value)
        assert values == sorted(values)
        assert math.ceil(values[-1]) <= optimum
        # The best tables are those of the best value.
        evaluation = costs.priced.evaluation
        rise = known(costs.cost_to_go).rise
        assert (evaluation.total + rise) / evaluation.denominator == costs.value
        risen += values[-1] > values[0]
    assert risen


def test_a_step_that_is_stopped_changes_nothing() -> None:
    instance = next(iter(random_instances(1, 5, least_requests=4, last_arrival=0)))
    costs = LeastCosts(instance, priced(instance), 100)
    with pytest.raises(Stopped):
        costs.step(WIDE, 10, WIDE, Budget(0.0))
    assert costs.value == -math.inf
    assert not costs.is_final
    costs.step(WIDE, 10, WIDE, Budget())
    assert costs.value > 0

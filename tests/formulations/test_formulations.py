"""The readable models and the arrays are one and the same program, and a right one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import brute_force
import numpy as np
import pyomo.environ as pyo
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from known import known
from programs import program_of_arrays, program_of_pyomo, solve_exactly
from strategies import instance_of, instances, plain, random_instances

from kvopt.bounds.start_windows import start_windows
from kvopt.errors import InvalidInput, TooLarge
from kvopt.formulations.cpsat import PairModel
from kvopt.formulations.pyomo import relaxed, schedule_from, solve, time_indexed
from kvopt.formulations.time_indexed import time_indexed_arrays, to_highs
from kvopt.formulations.windows import Windows
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

EXAMPLE_EC_1 = instance_of(7, [(0, 1, o) for o in (1, 2, 3, 4)])
# ---- one matrix -------------------------------------------------------------------------


def assert_same_program(instance: Instance, windows: Windows | None, order: bool) -> None:
    model = time_indexed(instance, windows, order_identical=order)
    arrays = time_indexed_arrays(instance, windows, order_identical=order)
    assert len(model.x) == arrays.num_columns
    if len(instance):  # a program without columns has no standard form
        assert program_of_pyomo(model) == program_of_arrays(arrays)


@pytest.mark.slow
@pytest.mark.parametrize("order", [True, False])
def test_pyomo_and_arrays_are_the_same_matrix_on_random_instances(order: bool) -> None:
    for number, instance in enumerate(random_instances(60, seed=11, last_arrival=9)):
        weights = [replace(r, weight=1 + i * number % 3) for i, r in enumerate(instance)]
        limit = None if number % 2 else 2
        limited = replace(instance, requests=tuple(weights), max_active=limit)
        assert_same_program(limited, None, order)


@pytest.mark.slow
@examples(60)
@given(instances(most_requests=5), st.integers(0, 20))
def test_pyomo_and_arrays_are_the_same_matrix_in_short_windows(
    instance: Instance, upper: int
) -> None:
    windows = start_windows(instance, upper + 3 * instance.total_output)
    assert_same_program(instance, windows, order=True)


def test_far_apart_windows_leave_no_rows_between_them() -> None:
    instance = instance_of(9, [(0, 0, 2), (10**6, 1, 2)])
    windows = (range(2), range(10**6, 10**6 + 2))
    assert_same_program(instance, windows, order=True)
    assert time_indexed_arrays(instance, windows).num_rows == 2 + 3 + 3


@pytest.mark.parametrize("triples", [[], [(3, 0, 1)], [(0, 4, 1)]])
def test_no_request_and_one_request_have_their_program(triples: list[brute_force.Triple]) -> None:
    instance = instance_of(5, triples)
    assert_same_program(instance, None, order=True)
    assert optimum_of_arrays(instance) == sum(o for _, _, o in triples)


@pytest.mark.parametrize(("relax", "integers"), [(False, True), (True, False)])
def test_relaxing_drops_integrality_and_nothing_else(relax: bool, integers: bool) -> None:
    model = time_indexed(EXAMPLE_EC_1, relax=relax)
    assert all(x.is_binary() == integers and x.bounds == (0, 1) for x in model.x.values())
    assert program_of_pyomo(model) == program_of_arrays(time_indexed_arrays(EXAMPLE_EC_1))


def test_each_column_is_sorted_by_row() -> None:
    for instance in random_instances(25, seed=12, most_requests=8):
        matrix = time_indexed_arrays(instance).matrix
        for begin, end in itertools.pairwise(matrix.indptr):
            assert (np.diff(matrix.indices[begin:end]) > 0).all()


# ---- numbers and sizes ------------------------------------------------------------------


def test_numbers_beyond_32_bits_keep_every_digit() -> None:
    prompt, arrival = 2**31 - 2, 2**53 - 2
    model = time_indexed_arrays(instance_of(2**32, [(0, prompt, 2)]))
    assert list(model.matrix.data) == [1, prompt + 1, prompt + 2]
    late = time_indexed_arrays(instance_of(9, [(arrival, 0, 1)] * 5), order_identical=False)
    assert list(late.cost) == [1, 2, 3, 4, 5] * 5


def test_a_number_that_highs_cannot_take_is_refused() -> None:
    with pytest.raises(TooLarge, match=r"10\^15"):
        to_highs(time_indexed_arrays(instance_of(2**53 - 1, [(0, 10**15, 1)])))


def test_a_model_that_is_too_large_is_refused_before_it_is_built() -> None:
    # Windows so long that their lengths do not fit into a machine word.
    giant = instance_of(2**53 - 1, [(0, 0, 2**53 - 1 - i) for i in range(1100)])
    for build in (time_indexed_arrays, time_indexed, relaxed):
        with pytest.raises(TooLarge, match="columns"):
            build(giant)
        with pytest.raises(TooLarge, match="columns"):
            build(EXAMPLE_EC_1, largest_columns=10)
    with pytest.raises(TooLarge, match="nonzeros"):
        time_indexed_arrays(instance_of(10**9, [(0, 0, 10**9)]))


@pytest.mark.slow
def test_models_compare_by_identity() -> None:
    windows = start_windows(EXAMPLE_EC_1)
    for build in (time_indexed_arrays, PairModel):
        model, other = build(EXAMPLE_EC_1, windows), build(EXAMPLE_EC_1, windows)
        assert model != other
        assert len({model, other}) == 2


@pytest.mark.parametrize("windows", [(), (range(2),), (range(3, 9, 2),)])
def test_windows_that_do_not_suit_the_requests_are_refused(windows: Windows) -> None:
    instance = instance_of(5, [(3, 0, 1)])
    for build in (time_indexed_arrays, time_indexed):
        with pytest.raises(InvalidInput, match="windows"):
            build(instance, windows)


# ---- solutions --------------------------------------------------------------------------


def optimum_of_arrays(instance: Instance, windows: Windows | None = None) -> int:
    """Solve the arrays and check the schedule they give."""
    model = time_indexed_arrays(instance, windows)
    highs = to_highs(model)
    solve_exactly(highs)
    schedule = model.schedule_of(np.array(highs.getSolution().col_value))
    return checked_value(schedule, highs.getInfo().objective_function_value)


def optimum_of_pyomo(model: pyo.ConcreteModel) -> int:
    """Solve a Pyomo model and check the schedule it gives."""
    assert solve(model) == "optimal"
    return checked_value(schedule_from(model), pyo.value(model.total_latency))


def checked_value(schedule: Schedule | None, claimed: float) -> int:
    check = known(schedule).check()
    assert check.feasible
    assert check.objective == round(claimed)
    return check.objective


@pytest.mark.slow
def test_every_formulation_agrees_with_brute_force() -> None:
    for instance in random_instances(20, seed=13, least_requests=1, most_requests=4):
        optimum = brute_force.optimum(*plain(instance))
        assert optimum_of_arrays(instance) == optimum
        assert optimum_of_pyomo(time_indexed(instance, order_identical=False)) == optimum


@pytest.mark.slow
def test_the_relaxation_is_below_and_order_rows_do_not_lift_it() -> None:
    for instance in random_instances(25, seed=14, least_requests=2, last_arrival=3):
        values = []
        for order in (True, False):
            model = relaxed(instance, order_identical=order)
            assert solve(model) == "optimal"
            values.append(pyo.value(model.total_latency))
        assert values[0] == pytest.approx(values[1], abs=1e-6)
        assert values[0] <= brute_force.optimum(*plain(instance)) + 1e-6


def test_columns_of_a_schedule_lead_back_to_it() -> None:
    for instance in random_instances(25, seed=15, least_requests=1):
        model = time_indexed_arrays(instance)
        _, starts = known(brute_force.best_starts(*plain(instance)))
        schedule = Schedule(instance, starts)
        columns = known(model.columns_of(schedule))
        values = np.zeros(model.num_columns)
        values[columns] = 1.0 - 1e-7  # solvers return such numbers for 1
        assert known(model.schedule_of(values)).objective == schedule.objective
    assert model.columns_of(Schedule(instance, [10**9] * len(instance))) is None
    assert model.schedule_of(np.full(model.num_columns, 0.4)) is None


def test_a_fractional_solution_is_no_schedule() -> None:
    model = relaxed(EXAMPLE_EC_1)
    solve(model)
    assert schedule_from(model) is None

"""The program with pauses: one matrix, and a right one."""

from __future__ import annotations

import brute_force
import numpy as np
import pyomo.environ as pyo
import pytest
from programs import program_of_arrays, program_of_pyomo, solve_exactly
from strategies import instance_of, plain, random_instances

from kvopt.bounds.prices import price_value, rounded_prices
from kvopt.bounds.windows import start_windows
from kvopt.errors import TooLarge
from kvopt.formulations.arrays import to_highs
from kvopt.formulations.paused import paused_arrays
from kvopt.formulations.pyomo import schedule_from, time_indexed_with_pauses
from kvopt.heuristics.reinsertion import schedule_by_order
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

PAIR = instance_of(10, [(0, 0, 10), (6, 5, 1)])


def solved(instance: Instance, *, relax: bool = False) -> tuple[float, np.ndarray, np.ndarray]:
    """Return value, columns and duals of the arrays."""
    model = paused_arrays(instance)
    highs = to_highs(model, relax=relax)
    solve_exactly(highs)
    found = highs.getSolution()
    value = highs.getInfo().objective_function_value
    return value, np.array(found.col_value), np.array(found.row_dual)


@pytest.mark.slow
@pytest.mark.parametrize("order", [True, False])
def test_pyomo_and_arrays_are_the_same_matrix(order: bool) -> None:
    for number, instance in enumerate(random_instances(30, seed=31, last_arrival=9)):
        windows = start_windows(instance, [None, 40, 60][number % 3])
        if not all(windows):
            continue
        model = time_indexed_with_pauses(instance, windows, order_identical=order)
        arrays = paused_arrays(instance, windows, order_identical=order)
        assert len(model.y) == arrays.num_columns
        if len(instance):  # a program without columns has no standard form
            assert program_of_pyomo(model) == program_of_arrays(arrays)


@pytest.mark.slow
def test_its_optimum_is_that_of_brute_force() -> None:
    for instance in random_instances(15, seed=32, most_requests=4, most_output=4, last_arrival=3):
        optimum = brute_force.optimum(*plain(instance), scope="pauses")
        value, columns, _ = solved(instance)
        schedule = paused_arrays(instance).schedule_of(columns)
        assert schedule is not None
        assert schedule.check().feasible
        assert schedule.objective == round(value) == optimum


@pytest.mark.slow
def test_its_relaxation_is_the_best_bound_of_prices() -> None:
    """Below the optimum by brute force; without order rows its duals prove its value."""
    for instance in random_instances(20, seed=34, least_requests=1, most_output=4, last_arrival=3):
        optimum = brute_force.optimum(*plain(instance), scope="pauses")
        assert solved(instance, relax=True)[0] <= optimum + 1e-6
        model = paused_arrays(instance, order_identical=False)
        highs = to_highs(model, relax=True)
        solve_exactly(highs)
        value = highs.getInfo().objective_function_value
        assert value <= optimum + 1e-6
        prices = [0.0] * model.layout.spans[-1].stop
        for row, dual in zip(model.keys()[1], highs.getSolution().row_dual, strict=True):
            if row[0] == "memory":
                prices[int(row[1]) - 1] = max(0.0, -dual)
        exact = rounded_prices(prices, 2**24)
        proved = price_value(instance, exact, pauses=True) / exact.denominator
        assert proved == pytest.approx(value, abs=1e-4)


def test_a_pause_is_seen() -> None:
    value, columns, _ = solved(PAIR)
    schedule = paused_arrays(PAIR).schedule_of(columns)
    assert schedule is not None
    assert (round(value), schedule.segments) == (12, (((1, 6), (8, 11)), ((7, 7),)))


def test_columns_of_a_schedule_and_back() -> None:
    for instance in random_instances(25, seed=35, least_requests=1, most_output=4):
        schedule = schedule_by_order(instance, range(len(instance))[::-1])
        model = paused_arrays(instance)
        columns = model.columns_of(schedule)
        assert columns is not None
        values = np.zeros(model.num_columns)
        values[columns] = 1.0 - 1e-7  # solvers return such numbers for 1
        back = model.schedule_of(values)
        assert back is not None
        assert back.check().feasible
        assert back.objective == schedule.objective == round(float(model.cost @ values))
        rows = model.matrix @ values
        assert (rows <= model.row_upper + 1e-4).all()
        assert (rows >= model.row_lower - 1e-4).all()
    late = Schedule(PAIR, segments=[[(1, 6), (8, 11)], [(99, 99)]])
    assert paused_arrays(PAIR).columns_of(late) is None


@pytest.mark.parametrize("value", [0.4, 0.0])
def test_what_is_no_schedule_is_none(value: float) -> None:
    model = paused_arrays(PAIR)
    assert model.schedule_of(np.full(model.num_columns, value)) is None
    readable = time_indexed_with_pauses(PAIR)
    for variable in readable.y.values():
        variable.set_value(value, skip_validation=True)
    assert schedule_from(readable) is None


def test_tokens_out_of_order_are_no_schedule() -> None:
    instance = instance_of(3, [(0, 0, 2)])
    windows = (range(3),)
    model = paused_arrays(instance, windows)
    assert model.schedule_of(np.array([0.0, 0, 1, 1, 1, 1])) is None


def test_no_requests_are_an_empty_model() -> None:
    model = paused_arrays(Instance(5, []))
    assert (model.num_columns, model.num_rows) == (0, 0)
    assert pyo.value(time_indexed_with_pauses(Instance(5, [])).total_latency) == 0


def test_a_model_that_is_too_large_is_refused_before_it_is_built() -> None:
    with pytest.raises(TooLarge, match="columns"):
        paused_arrays(PAIR, largest_columns=50)
    with pytest.raises(TooLarge, match="columns"):
        time_indexed_with_pauses(PAIR, largest_columns=50)

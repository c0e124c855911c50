"""A solver's own model with a constraint of the user, against brute force."""

from __future__ import annotations

import pytest
from brute_force import best_starts
from known import known
from strategies import plain, random_instances

import kvopt
from kvopt import InvalidInput, build_model, schedule_from

SOLVERS = ("cpsat", "pyomo", "highs")


def add_wait(solver: str, built: object, least: int) -> None:
    """Let the first request start at a round or later."""
    model, start = built.model, next(iter(built.starts.values()))  # type: ignore[attr-defined]
    if solver == "cpsat":
        model.add(start >= least)
    elif solver == "highs":
        model.addConstr(start >= least)
    else:
        from pyomo.environ import Constraint

        model.wait = Constraint(expr=start >= least)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_constraint_of_the_user_holds_at_least_cost(solver: str) -> None:
    for instance in random_instances(8, 5, least_requests=2, most_requests=3, most_output=3):
        least = instance.requests[0].arrival + 1
        last = instance.last_arrival + instance.total_output + least
        windows = tuple(range(request.arrival, last) for request in instance)
        built = build_model(instance, solver, windows=windows)
        assert [*built.starts] == [request.id for request in instance]
        add_wait(solver, built, least)
        assert built.solve(time_limit=60) == "optimal"
        found = schedule_from(built)
        assert found.starts[0] >= least
        memory, triples = plain(instance)
        late = [range(least, last), *windows[1:]]
        assert found.objective == known(best_starts(memory, triples, late))[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_model_without_a_solution_has_no_schedule(solver: str) -> None:
    [instance] = random_instances(1, 1, least_requests=2, most_requests=2)
    built = build_model(instance, solver)
    with pytest.raises(InvalidInput, match="solve it first"):
        schedule_from(built)
    add_wait(solver, built, 10**6)
    assert built.solve(time_limit=60) != "optimal"
    with pytest.raises(InvalidInput, match="schedule: infeasible; constraints that delay"):
        schedule_from(built)


def test_an_unknown_solver_is_named() -> None:
    [instance] = random_instances(1, 1)
    with pytest.raises(InvalidInput, match="cpsat, pyomo, highs"):
        build_model(instance, "gurobi")


def test_the_old_name_is_refused_with_the_new_one() -> None:
    with pytest.raises(AttributeError, match="'timetable_from'; it is called schedule_from"):
        getattr(kvopt, "timetable_from")  # noqa: B009

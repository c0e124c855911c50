"""What solvers of Pyomo call optimal: only with these options is it so to the last round."""

from __future__ import annotations

import random

import pyomo.environ as pyo
import pytest

from kvopt.search.solvers.pyomo_worker import _EXACT


def least_slack(options: dict[str, float]) -> float:
    """Return what HiGHS calls the least slack of some equations, beside a large constant."""
    rng = random.Random(5)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(14), within=pyo.Binary)
    model.misses = pyo.Var(range(2), within=pyo.NonNegativeIntegers)
    model.rows = pyo.ConstraintList()
    for row in range(2):
        weights = [rng.randrange(100) for _ in model.x]
        held = sum(weight * model.x[i] for i, weight in enumerate(weights))
        model.rows.add(held + model.misses[row] >= sum(weights) // 2)
        model.rows.add(held - model.misses[row] <= sum(weights) // 2)
    model.cost = pyo.Objective(expr=1_000_000 + model.misses[0] + model.misses[1])
    solver = pyo.SolverFactory("appsi_highs")
    solver.options.update(options)
    solver.solve(model)
    return float(pyo.value(model.cost))


@pytest.mark.slow
def test_highs_goes_on_until_no_better_integer_is_left() -> None:
    careless, exact = least_slack({}), least_slack(_EXACT["appsi_highs"])
    assert exact < careless - 0.5

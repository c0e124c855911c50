"""Solving a model, and back from it to a schedule."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyomo.environ as pyo
from pyomo.contrib.solver.common.base import SolverBase
from pyomo.contrib.solver.common.factory import SolverFactory

from kvopt.kernels.dependencies import DEFAULT_SOLVER
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import INTEGRALITY


def solved(
    solver: SolverBase, model: pyo.ConcreteModel, time_limit: float | None, **more: Any
) -> Any:
    """Solve with a solver of the newer interface, load what was found, and return its results.

    Latencies are integers, so a gap below 1 is a proof; the usual relative one is not.  A time
    limit would raise by default, and take what was found with it.
    """
    results = solver.solve(
        model, time_limit=time_limit, rel_gap=0.0, abs_gap=0.5, load_solutions=False,
        raise_exception_on_nonoptimal_result=False, **more,
    )  # fmt: skip
    if results.incumbent_objective is not None:
        results.solution_loader.load_vars()
    return results


def solve(model: pyo.ConcreteModel, time_limit: float | None = None) -> str:
    """Solve with HiGHS, load what was found and return why it stopped."""
    found = solved(SolverFactory(DEFAULT_SOLVER), model, time_limit)
    condition = found.termination_condition.name
    return "optimal" if condition == "convergenceCriteriaSatisfied" else str(condition)


def schedule_from(model: pyo.ConcreteModel, instance: Instance) -> Schedule | None:
    """Read the schedule of an instance from its solved model, None unless it is integral."""
    has_starts, ones = hasattr(model, "x"), []
    for index, variable in (model.x if has_starts else model.y).items():
        value = pyo.value(variable, exception=False) or 0.0
        if abs(value - round(value)) > INTEGRALITY:
            return None
        if round(value) == 1:
            ones.append(index)
    if has_starts:
        if [i for i, *_ in ones] != [*range(len(instance))]:
            return None
        workers = [worker for _, _, *at in ones for worker in at]
        return Schedule(instance, [k for _, k, *_ in ones], workers)
    first: dict[tuple[int, int], int] = {}
    for i, j, t in ones:  # times ascend
        first.setdefault((i, j), t)
    times = [
        [first.get((i, j), 0) for j in range(1, request.output + 1)]
        for i, request in enumerate(instance)
    ]
    ascends = all(a < b for active in times for a, b in pairwise([0, *active]))
    return Schedule.at_times(instance, times) if ascends else None

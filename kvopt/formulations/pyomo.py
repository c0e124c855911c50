"""The program as a plain Pyomo model, which a user can extend and solve with any solver.

It is built from the arrays, column by column and row by row; ``models/`` in the repository has
it in full.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Any, Unpack

import numpy as np

from kvopt.formulations.time_indexed import ArrayModel, LayoutOptions, time_indexed_arrays
from kvopt.formulations.windows import Windows
from kvopt.kernels.solver_versions import DEFAULT_SOLVER, load_pyomo
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

pyo = load_pyomo()


def time_indexed(
    instance: Instance,
    windows: Windows | None = None,
    *,
    relax: bool = False,
    **options: Unpack[LayoutOptions],
) -> Any:
    """Build the time-indexed program.

    Parameters
    ----------
    instance
        The problem.
    windows
        Start rounds to consider; by default those that are proved to hold an optimum.
    relax
        Let the variables be any number between 0 and 1.
    options
        See `LayoutOptions`.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the variables ``x`` (and ``held``), the objective ``total_latency`` and the constraints
        ``start``, ``memory``, ``order`` and ``used``, as in `kvopt.formulations.time_indexed`.
    """
    return model_of(time_indexed_arrays(instance, windows, **options), relax=relax)


relaxed = partial(time_indexed, relax=True)
"""Build the LP relaxation: the same program without integrality."""


def model_of(program: ArrayModel, *, relax: bool = False) -> Any:
    """Return a program as a model: columns as variables, a constraint for each kind of row."""
    from pyomo.core.expr import LinearExpression, MonomialTermExpression

    model = pyo.ConcreteModel(name=program.instance.name)
    columns, rows = program.keys()
    keys: dict[str, list[Any]] = {"x": []}
    for key in columns:
        is_named = isinstance(key[0], str)
        name = key[0] if is_named else "x"
        keys.setdefault(name, []).append(key[is_named:])
    ordered: list[Any] = []
    for name, of_name in keys.items():
        variables = pyo.Var(of_name, domain=pyo.UnitInterval if relax else pyo.Binary)
        setattr(model, name, variables)
        ordered += (variables[key] for key in of_name)

    def linear(coefficients: Any, places: Any) -> Any:
        pairs = zip(coefficients.astype(int).tolist(), places.tolist(), strict=True)
        return LinearExpression([MonomialTermExpression((c, ordered[at])) for c, at in pairs])

    def row(places: dict[Any, int], _: Any, *about: Any) -> Any:
        place = places[about]
        cells = slice(*matrix.indptr[place : place + 2])
        body = linear(matrix.data[cells], matrix.indices[cells])
        lower, upper = program.row_lower[place], program.row_upper[place]
        return (body, upper) if lower == upper else (None, body, upper)

    priced = np.flatnonzero(program.cost)
    model.total_latency = pyo.Objective(expr=linear(program.cost[priced], priced))
    matrix = program.matrix.tocsr()
    for family, numbered in groupby(enumerate(rows), lambda numbered_key: numbered_key[1][0]):
        places = {tuple(key): place for place, (_, *key) in numbered}
        about = [key if len(key) > 1 else key[0] for key in places]
        setattr(model, family, pyo.Constraint(about, rule=partial(row, places)))
    model.program = program
    return model


def solved(solver: Any, model: Any, time_limit: float | None, **more: Any) -> Any:
    """Solve with a solver of the newer interface, load the solution, and return its results.

    Latencies are integers, so a gap below 1 is a proof; the usual relative one is not.  By default
    a time limit would raise an error and lose the solution.
    """
    results = solver.solve(
        model,
        time_limit=time_limit,
        rel_gap=0.0,
        abs_gap=0.5,
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
        **more,
    )
    if results.incumbent_objective is not None:
        results.solution_loader.load_vars()
    return results


def solve(model: Any, time_limit: float | None = None) -> str:
    """Solve with HiGHS, load the solution and return why it stopped."""
    from pyomo.contrib.solver.common.factory import SolverFactory

    results = solved(SolverFactory(DEFAULT_SOLVER), model, time_limit)
    condition = results.termination_condition.name
    return "optimal" if condition == "convergenceCriteriaSatisfied" else str(condition)


def schedule_from(model: Any) -> Schedule | None:
    """Read the schedule from a solved model, None unless it is integral."""
    program: ArrayModel = model.program
    solution = [pyo.value(variable, exception=False) or 0.0 for variable in model.x.values()]
    return program.schedule_of(np.array(solution))

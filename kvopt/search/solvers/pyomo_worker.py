"""The child process of the Pyomo engine: a task on standard input, findings on standard output.

Findings are JSON objects, one a line, printed at once: ``schedule``, ``bound``,
``fault``, ``note``, ``out_of_time``, and the seconds spent in ``build`` and ``solve``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pyomo.environ as pyo
from pyomo.contrib.solver.common.base import SolverBase
from pyomo.contrib.solver.common.factory import SolverFactory as NewSolverFactory
from pyomo.contrib.solver.common.results import TerminationCondition as NewTerminationCondition
from pyomo.opt import TerminationCondition

from kvopt.formulations.pyomo import schedule_from, solved, time_indexed
from kvopt.problem.instance_files import instance_from_json

Say = Callable[..., None]

_TIME_OPTION = {"cbc": "sec", "glpk": "tmlim", "scip": "limits/time", "cplex": "timelimit"}
_SEED_OPTION = {"cbc": "randomSeed", "glpk": "seed"}

EXACT: dict[str, dict[str, float]] = {
    "appsi_highs": {"mip_rel_gap": 0.0, "mip_abs_gap": 0.5},
    "cbc": {},
    "cplex": {"mip_tolerances_mipgap": 0.0, "mip_tolerances_absmipgap": 0.5},
    "glpk": {},
    "gurobi": {"MIPGap": 0.0, "MIPGapAbs": 0.5},
    "mosek": {"dparam.mio_tol_rel_gap": 0.0, "dparam.mio_tol_abs_gap": 0.5},
    "scip": {},
    "xpress": {"miprelstop": 0.0, "mipabsstop": 0.5},
}
"""Options with which a solver continues until its gap is below 1; some need none.

By default most accept an objective 0.01% above their bound as optimal.
"""


def main() -> None:
    """Read a task, solve it, print the result."""
    say = _speaker()
    task = json.loads(sys.stdin.read())
    _keep_memory(task["ram"])
    begin = time.monotonic()
    instance = instance_from_json(task["instance"])
    windows = tuple(range(first, last + 1) for first, last in task["windows"])
    model = time_indexed(instance, windows)
    built = time.monotonic()
    say(build=built - begin)
    if task["time_limit"] is not None:
        task["time_limit"] = max(0.1, task["time_limit"] - (built - begin))
    if task["solver"] in NewSolverFactory:
        _solve_with_new_interface(model, task, say)
    else:
        _solve_with_classic_interface(model, task, say)
    say(solve=time.monotonic() - built)


def _keep_memory(budget: int) -> None:
    """Let the system limit the memory of this process and of solvers that it starts."""
    if sys.platform == "linux":
        import resource  # other systems do not have it

        resource.setrlimit(resource.RLIMIT_DATA, (budget, budget))


def _speaker() -> Say:
    # Pyomo captures file descriptor 1 while it solves, so keep a copy of it.
    stream = os.fdopen(os.dup(1), "w")

    def say(**message: Any) -> None:
        stream.write(json.dumps(message) + "\n")
        stream.flush()

    return say


def _solve_with_new_interface(model: pyo.ConcreteModel, task: dict[str, Any], say: Say) -> None:
    """Solve by an interface that has a bound of its own beside the incumbent."""
    solver: SolverBase = NewSolverFactory(task["solver"])
    options: dict[str, Any] = {}
    if task["solver"] == "highs":
        options["presolve"] = "on" if task["presolve"] else "off"
        options["random_seed"] = task["seed"] % 2**31
        solver.set_instance(model)
        _watch_highs(solver, say)
    results = solved(
        solver, model, task["time_limit"], threads=task["threads"], solver_options=options
    )
    if results.incumbent_objective is not None:
        _say_schedule(model, say)
    _say_bound(results.objective_bound, say)
    if results.termination_condition == NewTerminationCondition.maxTimeLimit:
        say(out_of_time=True)


def _watch_highs(solver: Any, say: Say) -> None:
    """Report solutions of HiGHS as it finds them; other solvers report only at the end."""
    highs = solver._solver_model

    def logged(event: Any) -> None:
        _say_bound(event.data_out.mip_dual_bound, say)

    highs.cbMipLogging += logged


def _solve_with_classic_interface(model: pyo.ConcreteModel, task: dict[str, Any], say: Say) -> None:
    """Solve by the interface of all other solvers, and report what counts.

    Bounds count only of solvers whose options for a gap below 1 are known: others call a solution
    optimal that is not.
    """
    name = task["solver"]
    solver = pyo.SolverFactory(name)
    if task["time_limit"] is not None and name in _TIME_OPTION:
        solver.options[_TIME_OPTION[name]] = max(1, math.floor(task["time_limit"]))
    if name in _SEED_OPTION:
        solver.options[_SEED_OPTION[name]] = task["seed"] % 2**31
    for option, value in EXACT.get(name, {}).items():
        solver.options[option] = value
    results = solver.solve(model, load_solutions=False)
    if len(results.solution) > 0:
        model.solutions.load_from(results)
        _say_schedule(model, say)
    condition = results.solver.termination_condition
    if condition == TerminationCondition.infeasible:
        say(fault="claimed that no schedule exists")
    elif name not in EXACT:
        say(note="its bounds do not count, as its gap at the end is not known")
    elif condition == TerminationCondition.optimal:
        _say_bound(pyo.value(model.total_latency), say)
    else:
        _say_bound(results.problem.lower_bound, say)
    if condition == TerminationCondition.maxTimeLimit:
        say(out_of_time=True)


def _say_schedule(model: pyo.ConcreteModel, say: Say) -> None:
    solved = schedule_from(model)
    if solved is None:
        say(fault="offered a solution that is not integral")
    else:
        say(schedule={name: getattr(solved, name) for name in ("starts", "workers")})


def _say_bound(bound: float | None, say: Say) -> None:
    if bound is not None:
        say(bound=bound)


if __name__ == "__main__":
    main()

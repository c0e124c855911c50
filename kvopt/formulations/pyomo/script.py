"""What the scripts in ``models/`` share: find the instance, solve, print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
from pyomo.contrib.solver.common.factory import SolverFactory as NewSolverFactory

from kvopt.errors import KvoptError
from kvopt.formulations.pyomo.solutions import schedule_from, solved
from kvopt.kernels.dependencies import DEFAULT_SOLVER, require_solver
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance

Build = Callable[[Instance], pyo.ConcreteModel]
Options = Mapping[str, Any] | None
"""What ``pyomo convert`` passes: its own options, or those of the model."""

_NO_SCHEDULE = 3
"""Exit status where the solver found none."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the arguments that every script takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("instance", metavar="INSTANCE", help="JSON, or CSV with --memory")
    arguments.add_argument("--memory", type=int, metavar="M", help="cache size in tokens")
    arguments.add_argument("--solver", default=DEFAULT_SOLVER, metavar="NAME")
    arguments.add_argument("--time-limit", type=float, metavar="S", help="seconds")
    return arguments


def run(build: Build, arguments: argparse.Namespace) -> int:
    """Build the model of the instance asked for, solve it, print it; return the exit status."""
    try:
        instance = read_instance(arguments.instance, arguments.memory)
        require_solver(arguments.solver)
        model = build(instance)
    except KvoptError as error:
        print(error, file=sys.stderr)
        return 2
    status = solve(model, arguments.solver, arguments.time_limit) if len(instance) else "optimal"
    print(f"status {status}")
    variables = model.component_data_objects(pyo.Var)
    if any(variable.value is None for variable in variables):
        return _NO_SCHEDULE
    print(f"objective {pyo.value(model.total_latency):.10g}")
    if hasattr(model, "x"):
        for request, start in zip(instance, mean_starts(model, len(instance)), strict=True):
            print(f"start {request.id} {start:.6g}")
        return 0
    schedule = schedule_from(model, instance)
    if schedule is None:
        return _NO_SCHEDULE
    for request, segments in zip(instance, schedule.segments, strict=True):
        print(f"times {request.id}", *(f"{first}-{last}" for first, last in segments))
    return 0


def solve(model: pyo.ConcreteModel, solver: str, time_limit: float | None = None) -> str:
    """Solve with a solver of Pyomo, load what was found and return why it stopped."""
    if solver not in NewSolverFactory:
        results = pyo.SolverFactory(solver).solve(model, load_solutions=False, timelimit=time_limit)
        if len(results.solution):
            model.solutions.load_from(results)
        return str(results.solver.termination_condition)
    results = solved(NewSolverFactory(solver), model, time_limit)
    condition = results.termination_condition.name
    return "optimal" if condition == "convergenceCriteriaSatisfied" else str(condition)


def mean_starts(model: pyo.ConcreteModel, count: int) -> list[float]:
    """Return the starts of a schedule, their means where the model is relaxed."""
    means = [0.0] * count
    for (i, k, *_), variable in model.x.items():
        means[i] += k * pyo.value(variable)
    return means


def requested_instance(options: Options, model_options: Options, default: Path) -> Instance:
    """Return the instance that ``pyomo convert`` was asked for, else the default one.

    The file is the data file of the command.  The memory of a CSV file is the model option
    ``memory``, which a configuration file can hold.
    """
    files = [] if options is None else list(options["data"]["files"])
    memory = None if model_options is None else model_options.get("memory")
    return read_instance(files[0] if files else default, memory)

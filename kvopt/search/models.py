"""``build_model``: a solver's own model, to which a user adds constraints."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kvopt.errors import InvalidInput, unknown_name
from kvopt.formulations.cpsat import PairModel
from kvopt.formulations.time_indexed import ArrayModel, time_indexed_arrays, to_highs
from kvopt.formulations.windows import Windows, latest_completions, windows_until
from kvopt.kernels.solver_versions import load_cp_model, load_highspy
from kvopt.problem.instance import Instance, refuse_blocks
from kvopt.timetable.schedule import Schedule

_SOLVED = ("OPTIMAL", "FEASIBLE")
"""Statuses of CP-SAT with a solution."""


@dataclass(frozen=True, eq=False)  # == of two variables is a constraint
class BuiltModel(ABC):
    """A model of a solver, to which constraints can be added, and the start of each request.

    Parameters
    ----------
    instance
        The problem.
    model
        A ``cp_model.CpModel``, a ``pyomo.environ.ConcreteModel`` or a ``highspy.Highs``.
    starts
        The start round of each request by its id: a variable, or a linear expression.
    """

    instance: Instance
    model: Any
    starts: dict[str, Any]
    statuses: list[str] = field(default_factory=list, init=False)
    """Statuses of the solver, one for each call of `solve`."""

    def solve(self, time_limit: float = math.inf) -> str:
        """Solve the model, and return the status of the solver."""
        self.statuses.append(self._solved(time_limit))
        return self.statuses[-1]

    @abstractmethod
    def _solved(self, time_limit: float) -> str:
        """Solve the model, and return the status of the solver."""

    @abstractmethod
    def read(self) -> Schedule | None:
        """Return the schedule of the last solution, None without one."""


@dataclass(frozen=True, eq=False)
class CpSatModel(BuiltModel):
    """The model of pairs, for CP-SAT."""

    pairs: PairModel
    solver: Any

    def _solved(self, time_limit: float) -> str:
        if math.isfinite(time_limit):
            self.solver.parameters.max_time_in_seconds = time_limit
        return str(self.solver.status_name(self.solver.solve(self.model))).lower()

    def read(self) -> Schedule | None:
        """Return the schedule of the last solution, None without one."""
        try:
            status = self.solver.status_name(self.solver.response_proto.status)
        except RuntimeError:  # not solved yet
            return None
        # Without a solution every value is 0.
        return self.pairs.schedule(self.solver.value) if status in _SOLVED else None


class PyomoModel(BuiltModel):
    """The time-indexed program, with the variables ``model.x[i, k]``."""

    def _solved(self, time_limit: float) -> str:
        from kvopt.formulations.pyomo import solve  # loads Pyomo

        return solve(self.model, None if time_limit == math.inf else time_limit)

    def read(self) -> Schedule | None:
        """Return the schedule of the last solution, None without one."""
        from kvopt.formulations.pyomo import schedule_from

        return schedule_from(self.model)


@dataclass(frozen=True, eq=False)
class HighsModel(BuiltModel):
    """The time-indexed program inside HiGHS; its columns are those of ``program``."""

    program: ArrayModel

    def _solved(self, time_limit: float) -> str:
        if math.isfinite(time_limit):
            self.model.setOptionValue("time_limit", time_limit)
        self.model.HandleKeyboardInterrupt = True  # else HiGHS continues to its end
        self.model.solve()
        return str(self.model.modelStatusToString(self.model.getModelStatus())).lower()

    def read(self) -> Schedule | None:
        """Return the schedule of the last solution, None without one."""
        if self.model.getInfo().primal_solution_status != 2:  # feasible
            return None
        values = np.array(self.model.getSolution().col_value)
        return self.program.schedule_of(values[: self.program.num_columns])


def build_model(
    instance: Instance,
    solver: str = "cpsat",
    *,
    windows: Windows | None = None,
    order_identical: bool = False,
) -> BuiltModel:
    """Build the hindsight optimum as a model of a solver, to add constraints to.

    Parameters
    ----------
    instance
        The problem.
    solver
        ``cpsat`` for the model of pairs, ``pyomo`` or ``highs`` for the time-indexed program.
    windows
        Start rounds to consider for each request.  By default all rounds up to the end of an
        optimal schedule; constraints that delay requests may need more.
    order_identical
        Whether requests of equal prompt and output start in an order by arrival and weight.
        Constraints that treat them differently need False.

    Returns
    -------
    BuiltModel
        With ``model``, ``starts`` by id, ``solve(time_limit)``, and data for `schedule_from`.

    Examples
    --------
    Request r0 has to wait two rounds:

    >>> from kvopt import Instance, Request, build_model, schedule_from
    >>> built = build_model(Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)]), "cpsat")
    >>> _ = built.model.add(built.starts["r0"] >= 2)
    >>> built.solve()
    'optimal'
    >>> schedule_from(built).objective
    15
    """
    refuse_blocks(instance, "a model")
    if solver not in _BUILDERS:
        raise unknown_name(solver, [*_BUILDERS], "solver")
    if windows is None:
        windows = windows_until(instance, latest_completions(instance))
    return _BUILDERS[solver](instance, windows, order_identical)


def schedule_from(built: BuiltModel) -> Schedule:
    """Return the schedule of a solved model, checked in integers.

    Raises
    ------
    InvalidInput
        If there is no solution, or if it breaks a rule of the problem.
    """
    schedule = built.read()
    if schedule is None:
        status = built.statuses[-1] if built.statuses else "solve it first"
        if "infeasible" in status.lower():
            status = "infeasible; constraints that delay requests may need longer windows"
        raise InvalidInput(f"has no solution that is a schedule: {status}", field="model")
    if broken := schedule.check().violations:
        raise InvalidInput(broken[0], field="model")
    return schedule


def _cpsat(instance: Instance, windows: Windows, order_identical: bool) -> BuiltModel:
    pairs = PairModel(instance, windows, order_identical=order_identical)
    starts = _by_id(instance, pairs.starts)
    return CpSatModel(instance, pairs.model, starts, pairs, load_cp_model().CpSolver())


def _pyomo(instance: Instance, windows: Windows, order_identical: bool) -> BuiltModel:
    from kvopt.formulations.pyomo import time_indexed

    model = time_indexed(instance, windows, order_identical=order_identical)
    starts: list[Any] = [0] * len(instance)
    for i, k, *at in model.x:
        starts[i] += k * model.x[i, k, *at]
    return PyomoModel(instance, model, _by_id(instance, starts))


def _highs(instance: Instance, windows: Windows, order_identical: bool) -> BuiltModel:
    """Return the time-indexed program in HiGHS; a start is the sum of k x[i, k]."""
    program = time_indexed_arrays(instance, windows, order_identical=order_identical)
    highs = to_highs(program)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 0.5)  # totals are integers
    load_highspy()
    from highspy.highs import highs_linear_expression, highs_var

    starts = [highs_linear_expression() for _ in instance]
    for start, columns, window in zip(starts, program.columns, windows, strict=True):
        for row in columns.tolist():
            for column, k in zip(row, window, strict=True):
                start += k * highs_var(column, highs)
    return HighsModel(instance, highs, _by_id(instance, starts), program)


def _by_id(instance: Instance, starts: Sequence[Any]) -> dict[str, Any]:
    """Return the start of each request by its id."""
    return {str(request.id): start for request, start in zip(instance, starts, strict=True)}


_BUILDERS: dict[str, Callable[[Instance, Windows, bool], BuiltModel]] = {
    "cpsat": _cpsat,
    "pyomo": _pyomo,
    "highs": _highs,
}

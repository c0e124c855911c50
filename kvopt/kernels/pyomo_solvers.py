"""Which solvers Pyomo can use on this machine."""

from __future__ import annotations

from kvopt.errors import MissingSolver
from kvopt.kernels.dependencies import load_pyomo

DEFAULT_SOLVER = "highs"

_LIKELY = ("highs", "appsi_highs", "gurobi", "cplex", "xpress", "mosek", "scip", "cbc", "glpk")
"""Names worth trying to say what there is."""


def require_solver(name: str) -> None:
    """Raise with a list of what is there unless Pyomo can use the solver."""
    if not is_available(name):
        usable = ", ".join(available_solvers()) or "none"
        raise MissingSolver(f"Pyomo cannot use the solver {name!r} here; available: {usable}")


def available_solvers() -> list[str]:
    """Return the well-known solvers that Pyomo can use on this machine."""
    return [name for name in _LIKELY if is_available(name)]


def is_available(name: str) -> bool:
    """Return whether Pyomo can use a solver on this machine."""
    pyomo = load_pyomo()
    from pyomo.common.log import LoggingIntercept

    with LoggingIntercept(module="pyomo"):  # of an unknown name it logs a whole traceback
        try:
            return bool(pyomo.SolverFactory(name).available(exception_flag=False))
        except Exception:  # every interface of Pyomo fails in a way of its own
            return False

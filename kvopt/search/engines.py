"""Engines of `solve` and methods of `bound` by name, each loaded at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pkgutil import resolve_name

from kvopt.errors import unknown_name
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.solver_versions import DEFAULT_SOLVER, load_cp_model, require_solver
from kvopt.problem.scopes import Scope

ENGINES = {
    "auto": "kvopt.search.plan:auto",
    "exact": "kvopt.search.exact.exact_engine:run",
    "highs": "kvopt.search.solvers.highs_engine:run",
    "cpsat": "kvopt.search.solvers.cpsat_engine:run",
    "pyomo": "kvopt.search.solvers.pyomo_engine:run",
}
"""Functions of a `Search`; ``pyomo`` has a parameter ``solver`` too."""

METHODS = {
    name: f"kvopt.search.bounding:{name}"
    for name in ("volume", "lp", "lagrangian", "slots", "configuration")
} | {"auto": "kvopt.search.plan:bounding"}
"""Functions that offer a `Search` bounds, until they are done or must stop."""

_WITH_PAUSES = {"auto", "volume", "lagrangian"}
"""Those that also cover schedules with pauses."""

Engine = Callable[[Search], None]
"""Works on a search until it is done or must stop."""


def methods_for(scope: Scope) -> list[str]:
    """Return the methods in rounds that cover a scope.

    In rounds pieces of a prompt change nothing: without the rounds that yield no token a request
    completes as early, and never holds more.
    """
    pauses = scope.covers(Scope.PAUSES)
    return [name for name in METHODS if name in _WITH_PAUSES or not pauses]


def method_of(name: str, scope: Scope) -> Engine:
    """Return a method of `bound` by name."""
    return _loaded(METHODS, "method", name, scope)


def engine_of(
    name: str, scope: Scope = Scope.RUNS, *, pyomo_solver: str = DEFAULT_SOLVER
) -> Engine:
    """Return an engine in rounds by name; its solver is imported now, and only its own."""
    work = _loaded(ENGINES, "engine", name, scope)
    # A missing package is reported now, not when the work begins.
    if name == "cpsat":
        load_cp_model()
    if name == "pyomo":
        require_solver(pyomo_solver)
        return partial(work, solver=pyomo_solver)
    return work


def _loaded(table: Mapping[str, str], kind: str, name: str, scope: Scope) -> Callable[..., None]:
    pauses = scope.covers(Scope.PAUSES)
    names = [row for row in table if row in _WITH_PAUSES or not pauses]
    if name not in names:
        raise unknown_name(name, names, f"{kind} with pauses" if pauses else kind)
    work: Callable[..., None] = resolve_name(table[name])
    return work

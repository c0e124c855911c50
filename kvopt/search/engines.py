"""Engines of `solve` and methods of `bound` by name, each loaded at its first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name

from kvopt.errors import unknown_name
from kvopt.incumbent.incumbent import Search
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

Bound = Callable[[Search], None]


def methods_for(scope: Scope) -> list[str]:
    """Return the methods in rounds that cover a scope.

    In rounds pieces of a prompt change nothing: without the rounds that yield no token a request
    completes as early, and never holds more.
    """
    return _names(METHODS, scope)


def method_of(name: str, scope: Scope) -> Bound:
    """Return a method of `bound` by name."""
    return _found(METHODS, "method", name, scope)


def engine_of(name: str, scope: Scope = Scope.RUNS) -> Callable[..., None]:
    """Return an engine in rounds by name."""
    return _found(ENGINES, "engine", name, scope)


def _names(table: Mapping[str, str], scope: Scope) -> list[str]:
    pauses = scope.covers(Scope.PAUSES)
    return [name for name in table if name in _WITH_PAUSES or not pauses]


def _found(table: Mapping[str, str], kind: str, name: str, scope: Scope) -> Callable[..., None]:
    names, pauses = _names(table, scope), scope.covers(Scope.PAUSES)
    if name not in names:
        raise unknown_name(name, names, f"{kind} with pauses" if pauses else kind)
    work: Callable[..., None] = resolve_name(table[name])
    return work

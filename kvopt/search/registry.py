"""Engines by name, for ``kvopt solve --engine``."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.kernels.registry import Registry
from kvopt.problem.scopes import Scope

ENGINES: Registry[Callable[..., None]] = Registry(
    "engine",
    "kvopt.engines",
    {
        "auto": "kvopt.search.plan",
        "exact": "kvopt.search.exact.engine",
        "highs": "kvopt.search.solvers.highs",
        "cpsat": "kvopt.search.solvers.cpsat",
        "pyomo": "kvopt.search.solvers.pyomo",
    },
    "search",
)
"""Functions of a `Search`; one with a parameter ``presolve`` or ``solver`` gets that too."""

PAUSED_ENGINES: Registry[Callable[..., None]] = Registry(
    "engine with pauses",
    "kvopt.paused_engines",
    {name: module for name, module in ENGINES.built_in.items() if name != "exact"},
    "search",
)
"""Functions of a `Search`, with the same parameters."""


def engines_for(scope: Scope) -> Registry[Callable[..., None]]:
    """Return the engines in rounds that cover a scope."""
    return PAUSED_ENGINES if scope.covers(Scope.PAUSES) else ENGINES


register = ENGINES.register
"""Register an engine under a name; a decorator."""

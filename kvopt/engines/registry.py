"""Engines by name: what ``kvopt solve --engine`` takes."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.kernels.registry import Registry

ENGINES: Registry[Callable[..., None]] = Registry(
    "engine",
    "kvopt.engines",
    {
        "auto": "kvopt.engines.portfolio",
        "exact": "kvopt.engines.exact",
        "highs": "kvopt.engines.highs",
        "cpsat": "kvopt.engines.cpsat",
        "pyomo": "kvopt.engines.pyomo",
    },
)
"""Functions of a `Search`; one with a parameter ``presolve`` or ``solver`` is given that too."""

register = ENGINES.register
"""Make an engine known by a name; a decorator."""

"""Load solvers after a check of their versions; no other module loads them.

Two releases of highspy must not be used.  1.14.0 returns wrong optima and wrong dual bounds
(HiGHS issues 2957, 2975 and 3094).  From 1.15 on it cannot share a process with ortools, in
either order of import: both bring a ``libhighs`` of their own.
"""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from kvopt.errors import MissingSolver, UnsupportedDependency
from kvopt.show.optional import EXTRAS

DEFAULT_SOLVER = "highs"
"""Default solver of Pyomo."""
_LIKELY = ("highs", "appsi_highs", "gurobi", "cplex", "xpress", "mosek", "scip", "cbc", "glpk")
"""Well-known solvers, to list the available ones."""

CORE = (
    "highspy",
    "networkx",
    "numba",
    "numpy",
    "ortools",
    "pandas",
    "pyomo",
    "rich",
    "scipy",
    "typer",
)
"""Packages that every installation has."""


def load_highspy() -> ModuleType:
    """Import highspy, or explain why this release is refused."""
    refuse_known_bad(installed_version("highspy"))
    return import_module("highspy")


def load_cp_model() -> ModuleType:
    """Import the CP-SAT model builder of ortools."""
    refuse_known_bad(installed_version("highspy"))
    return import_module("ortools.sat.python.cp_model")


def load_pyomo() -> ModuleType:
    """Import Pyomo; HiGHS, its default solver here, is checked too."""
    refuse_known_bad(installed_version("highspy"))
    return import_module("pyomo.environ")


@cache  # reading it takes milliseconds, and a process has one installation
def installed_version(package: str) -> str | None:
    """Return the version of an installed package without importing it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def refuse_known_bad(number: str | None) -> None:
    """Raise if a release of highspy is known to give wrong answers."""
    if number is None:
        return
    release = tuple(int(part) for part in number.split(".")[:2] if part.isdigit())
    if release == (1, 14):
        raise UnsupportedDependency(
            f"highspy {number} returns wrong optima (HiGHS #2957, #2975, #3094); "
            "install highspy 1.13.1"
        )
    if release >= (1, 15):
        raise UnsupportedDependency(
            f"highspy {number} and ortools cannot be loaded in one process; install highspy 1.13.1"
        )


def versions() -> dict[str, str]:
    """Return the versions a bug report or a result should carry."""
    from kvopt.version import __version__

    numbers = {"kvopt": __version__, "python": platform.python_version()}
    for package in sorted((*CORE, *(extra.package for extra in EXTRAS.values()))):
        numbers[package] = installed_version(package) or "not installed"
    return numbers


def missing_extras() -> list[str]:
    """Return the extras whose package is not installed."""
    return [name for name, extra in EXTRAS.items() if installed_version(extra.package) is None]


def require_solver(name: str) -> None:
    """Raise with a list of available solvers unless Pyomo can use this one."""
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

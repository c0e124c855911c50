"""Hindsight optima and lower bounds for LLM inference with a KV cache.

The names of the command line are the names here: `solve`, `bound`, `Instance`, ...  They are
loaded when they are first used, so that ``import kvopt`` loads no solver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kvopt.version import __version__ as __version__


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package whose names are loaded when they are first used.

    Parameters
    ----------
    package
        Its full name.
    homes
        Modules of the package, and the names that each of them holds, with spaces between.
    """
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


_HOMES = {
    "certificates": "Certificate certify read_certificate write_certificate",
    "certificates.optimum_ratio": "Ratio ratio_to_optimum",
    "search.bounding": "bound bounds_by_workers",
    "search.many": "solve_many",
    "search.models": "BuiltModel build_model schedule_from",
    "search.solving": "SolveOptions solve",
    "search.exact.tiny_optimum": "tiny_optimum",
    "fleets.analysis": "headroom",
    "fleets.gains": "Headroom",
    "errors": "FalseClaim InvalidInput KvoptError MissingPackage MissingSolver PolicyFault "
    "SolverFault Stopped TooLarge UnsupportedDependency",
    "problem.families": "generate list_families",
    "problem.instance_files": "read_instance write_instance",
    "timetable.schedule_files": "read_schedule write_schedule",
    "formulations.export": "export",
    "problem.batch_time": "BatchTime Line",
    "problem.clocks": "Seconds",
    "problem.hardware.batch_time_files": "batch_time",
    "problem.instance": "Instance",
    "problem.problem": "Problem",
    "problem.requests": "Prediction Request",
    "timetable.schedule": "Schedule ScheduleCheck",
    "problem.scopes": "Scope",
    "problem.slo": "Slo",
    "simulate.policies": "Need Policy PrefixPolicy View list_policies policy register",
    "incumbent.limits": "LimitOptions Limits gap_below",
    "incumbent.params": "SolveParams",
    "incumbent.result": "BoundResult BoundSource Progress SolveResult Status StopReason",
    "simulate.causality": "check_online",
    "simulate.comparison": "Comparison compare",
    "simulate.run_policy": "run",
    "timetable.policy_run": "Outcome PolicyRun",
    "problem.traces": "import_trace",
}
"""Names whose types are in `kvopt/__init__.pyi`, except `verify`."""

_RENAMED = {"timetable_from": "schedule_from"}
"""Earlier names, which are refused with the present one."""

__all__ = sorted(["__version__", "verify", *" ".join(_HOMES.values()).split()])

_load = lazy_names("kvopt", _HOMES)


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        reason = f"module 'kvopt' has no attribute {name!r}; it is called {_RENAMED[name]}"
        raise AttributeError(reason)
    # `verify` is a module that can be called, so that both readings of the name work.
    return import_module("kvopt.verify") if name == "verify" else _load(name)


def __dir__() -> list[str]:
    return __all__

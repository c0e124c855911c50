"""Hindsight optima and lower bounds for LLM inference with a KV cache.

The names of the command line are the names here: `solve`, `bound`, `Instance`, ...  They are
loaded when they are first used, so that ``import kvopt`` loads no solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvopt.version import __version__

if TYPE_CHECKING:
    from kvopt.certificates import Certificate, certify
    from kvopt.engines.bounding import bound
    from kvopt.engines.solving import solve
    from kvopt.errors import (
        FalseClaim,
        InvalidInput,
        KvoptError,
        MissingSolver,
        PolicyFault,
        SolverFault,
        TooLarge,
        UnsupportedDependency,
    )
    from kvopt.families import generate
    from kvopt.files import read_instance, read_schedule, write_instance, write_schedule
    from kvopt.formulations.export import export
    from kvopt.model.batch_time import BatchTime, Line
    from kvopt.model.instance import Instance, Prediction, Request
    from kvopt.model.schedule import Schedule, ScheduleCheck
    from kvopt.policies import Need, Policy, PrefixPolicy, View, policy, register
    from kvopt.search.incumbent import gap_below
    from kvopt.search.params import SolveParams
    from kvopt.search.result import (
        BoundResult,
        BoundSource,
        Progress,
        SolveResult,
        Status,
        StopReason,
    )
    from kvopt.simulation.running import run
    from kvopt.simulation.runs import Outcome, PolicyRun
    from kvopt.traces import import_trace
    from kvopt.verify import verify

_HOMES = {
    "kvopt.engines.bounding": ("bound",),
    "kvopt.certificates": ("Certificate", "certify"),
    "kvopt.errors": (
        "FalseClaim",
        "InvalidInput",
        "KvoptError",
        "MissingSolver",
        "PolicyFault",
        "SolverFault",
        "TooLarge",
        "UnsupportedDependency",
    ),
    "kvopt.families": ("generate",),
    "kvopt.files": ("read_instance", "read_schedule", "write_instance", "write_schedule"),
    "kvopt.formulations.export": ("export",),
    "kvopt.model.batch_time": ("BatchTime", "Line"),
    "kvopt.model.instance": ("Instance", "Prediction", "Request"),
    "kvopt.search.result": (
        "BoundResult",
        "BoundSource",
        "Progress",
        "SolveParams",
        "SolveResult",
        "Status",
        "StopReason",
    ),
    "kvopt.policies": (
        "Need",
        "Policy",
        "PrefixPolicy",
        "View",
        "policy",
        "register",
    ),
    "kvopt.simulation.running": ("run",),
    "kvopt.simulation.runs": ("Outcome", "PolicyRun"),
    "kvopt.model.schedule": ("Schedule", "ScheduleCheck"),
    "kvopt.search.incumbent": ("gap_below",),
    "kvopt.search.params": ("SolveParams",),
    "kvopt.engines.solving": ("solve",),
    "kvopt.traces": ("import_trace",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "BatchTime",
    "BoundResult",
    "BoundSource",
    "Certificate",
    "FalseClaim",
    "Instance",
    "InvalidInput",
    "KvoptError",
    "Line",
    "MissingSolver",
    "Need",
    "Outcome",
    "Policy",
    "PolicyFault",
    "PolicyRun",
    "Prediction",
    "PrefixPolicy",
    "Progress",
    "Request",
    "Schedule",
    "ScheduleCheck",
    "SolveParams",
    "SolveResult",
    "SolverFault",
    "Status",
    "StopReason",
    "TooLarge",
    "UnsupportedDependency",
    "View",
    "__version__",
    "bound",
    "certify",
    "export",
    "gap_below",
    "generate",
    "import_trace",
    "policy",
    "read_instance",
    "read_schedule",
    "register",
    "run",
    "solve",
    "verify",
    "write_instance",
    "write_schedule",
]


def __getattr__(name: str) -> Any:
    if name == "verify":  # a module that can be called, so that both readings of the name work
        return import_module("kvopt.verify")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'kvopt' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The public names and their types; `kvopt/__init__.py` loads them when they are first used."""

from collections.abc import Callable, Mapping
from typing import Any

from kvopt.certificates import Certificate, certify, read_certificate, write_certificate
from kvopt.engines.bounding import bound
from kvopt.engines.fleet_bounding import bounds_by_workers
from kvopt.engines.solving import solve
from kvopt.engines.timing import TimedResult, solve_in_seconds
from kvopt.errors import (
    FalseClaim,
    InvalidInput,
    KvoptError,
    MissingPackage,
    MissingSolver,
    PolicyFault,
    SolverFault,
    TooLarge,
    UnsupportedDependency,
)
from kvopt.families import generate, list_families
from kvopt.files import (
    read_instance,
    read_paused_schedule,
    read_schedule,
    write_instance,
    write_schedule,
)
from kvopt.formulations.export import export
from kvopt.model.batch_time import BatchTime, Line
from kvopt.model.instance import Instance
from kvopt.model.pausing import PausedSchedule
from kvopt.model.requests import Prediction, Request
from kvopt.model.schedule import Schedule, ScheduleCheck
from kvopt.model.scopes import Scope
from kvopt.policies import Need, Policy, PrefixPolicy, View, list_policies, policy, register
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
from kvopt.simulation.causality import check_online
from kvopt.simulation.comparison import Comparison, compare
from kvopt.simulation.running import run
from kvopt.simulation.runs import Outcome, PolicyRun
from kvopt.traces import import_trace
from kvopt.verify import verify

__version__: str
__all__ = [
    "BatchTime",
    "BoundResult",
    "BoundSource",
    "Certificate",
    "Comparison",
    "FalseClaim",
    "Instance",
    "InvalidInput",
    "KvoptError",
    "Line",
    "MissingPackage",
    "MissingSolver",
    "Need",
    "Outcome",
    "PausedSchedule",
    "Policy",
    "PolicyFault",
    "PolicyRun",
    "Prediction",
    "PrefixPolicy",
    "Progress",
    "Request",
    "Schedule",
    "ScheduleCheck",
    "Scope",
    "SolveParams",
    "SolveResult",
    "SolverFault",
    "Status",
    "StopReason",
    "TimedResult",
    "TooLarge",
    "UnsupportedDependency",
    "View",
    "__version__",
    "bound",
    "bounds_by_workers",
    "certify",
    "check_online",
    "compare",
    "export",
    "gap_below",
    "generate",
    "import_trace",
    "list_families",
    "list_policies",
    "policy",
    "read_certificate",
    "read_instance",
    "read_paused_schedule",
    "read_schedule",
    "register",
    "run",
    "solve",
    "solve_in_seconds",
    "verify",
    "write_certificate",
    "write_instance",
    "write_schedule",
]

def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]: ...

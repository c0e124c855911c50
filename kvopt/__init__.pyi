"""The public names and their types; `kvopt/__init__.py` loads them when they are first used."""

from collections.abc import Callable, Mapping
from typing import Any

from kvopt.certificates import Certificate, certify, read_certificate, write_certificate
from kvopt.certificates.optimum_ratio import Ratio, ratio_to_optimum
from kvopt.errors import (
    FalseClaim,
    InvalidInput,
    KvoptError,
    MissingPackage,
    MissingSolver,
    PolicyFault,
    SolverFault,
    Stopped,
    TooLarge,
    UnsupportedDependency,
)
from kvopt.fleets.analysis import headroom
from kvopt.fleets.gains import Headroom
from kvopt.formulations.export import export
from kvopt.incumbent.limits import LimitOptions, Limits, gap_below
from kvopt.incumbent.params import SolveParams
from kvopt.incumbent.result import (
    BoundResult,
    BoundSource,
    Progress,
    SolveResult,
    Status,
    StopReason,
)
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import Seconds
from kvopt.problem.families import generate, list_families
from kvopt.problem.hardware.batch_time_files import batch_time
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance, write_instance
from kvopt.problem.problem import Problem
from kvopt.problem.requests import Prediction, Request
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Slo
from kvopt.problem.traces import import_trace
from kvopt.search.bounding import bound, bounds_by_workers
from kvopt.search.exact.tiny_optimum import tiny_optimum
from kvopt.search.many import solve_many
from kvopt.search.models import BuiltModel, build_model, schedule_from
from kvopt.search.solving import SolveOptions, solve
from kvopt.simulate.causality import check_online
from kvopt.simulate.comparison import Comparison, compare
from kvopt.simulate.policies import (
    Need,
    Policy,
    PrefixPolicy,
    View,
    list_policies,
    policy,
    register,
)
from kvopt.simulate.run_policy import run
from kvopt.timetable.policy_run import Outcome, PolicyRun
from kvopt.timetable.schedule import Schedule, ScheduleCheck
from kvopt.timetable.schedule_files import read_schedule, write_schedule
from kvopt.verify import verify

__version__: str
__all__ = [
    "BatchTime",
    "BoundResult",
    "BoundSource",
    "BuiltModel",
    "Certificate",
    "Comparison",
    "FalseClaim",
    "Headroom",
    "Instance",
    "InvalidInput",
    "KvoptError",
    "LimitOptions",
    "Limits",
    "Line",
    "MissingPackage",
    "MissingSolver",
    "Need",
    "Outcome",
    "Policy",
    "PolicyFault",
    "PolicyRun",
    "Prediction",
    "PrefixPolicy",
    "Problem",
    "Progress",
    "Ratio",
    "Request",
    "Schedule",
    "ScheduleCheck",
    "Scope",
    "Seconds",
    "Slo",
    "SolveOptions",
    "SolveParams",
    "SolveResult",
    "SolverFault",
    "Status",
    "StopReason",
    "Stopped",
    "TooLarge",
    "UnsupportedDependency",
    "View",
    "__version__",
    "batch_time",
    "bound",
    "bounds_by_workers",
    "build_model",
    "certify",
    "check_online",
    "compare",
    "export",
    "gap_below",
    "generate",
    "headroom",
    "import_trace",
    "list_families",
    "list_policies",
    "policy",
    "ratio_to_optimum",
    "read_certificate",
    "read_instance",
    "read_schedule",
    "register",
    "run",
    "schedule_from",
    "solve",
    "solve_many",
    "tiny_optimum",
    "verify",
    "write_certificate",
    "write_instance",
    "write_schedule",
]

def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]: ...

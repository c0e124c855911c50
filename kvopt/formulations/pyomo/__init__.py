"""The readable reference: plain Pyomo models that a user can extend and hand to any solver."""

from kvopt.kernels.dependencies import load_pyomo

load_pyomo()

from kvopt.formulations.pyomo.paused import time_indexed_with_pauses
from kvopt.formulations.pyomo.running_status import running_status
from kvopt.formulations.pyomo.solutions import schedule_from
from kvopt.formulations.pyomo.time_indexed import relaxed, time_indexed

__all__ = [
    "relaxed",
    "running_status",
    "schedule_from",
    "time_indexed",
    "time_indexed_with_pauses",
]

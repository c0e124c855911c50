"""The readable reference: plain Pyomo models that a user can extend and hand to any solver."""

from kvopt.kernels.dependencies import load_pyomo

load_pyomo()

from kvopt.formulations.pyomo.paused import time_indexed_with_pauses
from kvopt.formulations.pyomo.solutions import schedule_from, solve
from kvopt.formulations.pyomo.time_indexed import relaxed, time_indexed

__all__ = [
    "relaxed",
    "schedule_from",
    "solve",
    "time_indexed",
    "time_indexed_with_pauses",
]

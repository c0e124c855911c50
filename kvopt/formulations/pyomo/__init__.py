"""The readable reference: plain Pyomo models that a user can extend and hand to any solver."""

from kvopt.formulations.pyomo.running_status import running_status
from kvopt.formulations.pyomo.time_indexed import relaxed, starts_from, time_indexed

__all__ = ["relaxed", "running_status", "starts_from", "time_indexed"]

"""Rounds that last as long as their batch: a clock in seconds.

`BatchTime` says how long a round lasts, ``simulate_seconds`` runs any policy on that clock.
"""

from kvopt.seconds.arrivals import arrivals_ns
from kvopt.seconds.model import BatchTime, Line
from kvopt.seconds.run import SecondsRun
from kvopt.seconds.simulate import simulate_seconds

__all__ = ["BatchTime", "Line", "SecondsRun", "arrivals_ns", "simulate_seconds"]

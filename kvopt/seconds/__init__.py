"""Rounds that last as long as their batch: a clock in seconds.

`BatchTime` says how long a round lasts, ``simulate_seconds`` runs any policy on that clock.
"""

from kvopt.seconds.model import BatchTime, Line

__all__ = ["BatchTime", "Line"]

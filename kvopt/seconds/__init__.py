"""Rounds that last as long as their batch: a clock in seconds.

`BatchTime` says how long a round lasts, ``simulate_seconds`` runs any policy on that clock.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvopt.seconds.arrivals import arrivals_ns
    from kvopt.seconds.model import BatchTime, Line
    from kvopt.seconds.run import SecondsRun
    from kvopt.seconds.simulate import simulate_seconds

_HOME_OF = {
    "BatchTime": "model",
    "Line": "model",
    "SecondsRun": "run",
    "arrivals_ns": "arrivals",
    "simulate_seconds": "simulate",
}

__all__ = ["BatchTime", "Line", "SecondsRun", "arrivals_ns", "simulate_seconds"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:  # reports read times of runs and should not load what runs them
        raise AttributeError(f"module 'kvopt.seconds' has no attribute {name!r}")
    return getattr(import_module(f"kvopt.seconds.{_HOME_OF[name]}"), name)

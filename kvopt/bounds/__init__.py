"""Lower bounds on total latency, each re-evaluated in integers."""

from kvopt.bounds.registry import Bound, register

__all__ = ["Bound", "register"]

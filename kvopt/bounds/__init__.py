"""Lower bounds on total latency, each re-evaluated in integers.

A function for each method takes a problem and seconds, and returns a `Bound`: its value, its proof
and its prices.  `kvopt.bound` computes the best of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvopt.search.bounding import (
        Bound,
        configuration_bound,
        lagrangian_bound,
        lp_bound,
        seconds_bound,
        slot_bound,
        volume_bound,
    )

__all__ = [
    "Bound",
    "configuration_bound",
    "lagrangian_bound",
    "lp_bound",
    "seconds_bound",
    "slot_bound",
    "volume_bound",
]


def __getattr__(name: str) -> Any:
    """Load the public functions at their first use: they run the driver, which loads solvers."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("kvopt.search.bounding"), name)


def __dir__() -> list[str]:
    return __all__

"""Bounds by name, as ``kvopt bound --method`` takes them."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.incumbent.incumbent import Search
from kvopt.kernels.registry import Registry
from kvopt.problem.scopes import Scope

Bound = Callable[[Search], None]
"""Offers a search the bounds that it proves, until it is done or must stop."""

BOUNDS: Registry[Bound] = Registry(
    "method",
    "kvopt.bounds",
    dict.fromkeys(
        ("volume", "lp", "lagrangian", "slots", "configuration", "auto"), "kvopt.search.bounding"
    ),
    "search",
)

register = BOUNDS.register
"""Register a bound under a name; a decorator."""

PAUSED_BOUNDS: Registry[Bound] = Registry(
    "method with pauses",
    "kvopt.paused_bounds",
    dict.fromkeys(("volume", "lagrangian", "auto"), "kvopt.search.bounding"),
    "search",
)
"""Bounds that also hold for schedules with pauses."""


def bounds_for(scope: Scope) -> Registry[Bound]:
    """Return the bounds in rounds that cover a scope.

    In rounds pieces of a prompt change nothing: without the rounds that yield no token a request
    completes as early, and never holds more.
    """
    return PAUSED_BOUNDS if scope.covers(Scope.PAUSES) else BOUNDS

"""Bounds by name: what ``kvopt bound --method`` takes."""

from __future__ import annotations

from collections.abc import Callable

from kvopt.kernels.registry import Registry
from kvopt.search.incumbent import Search

Bound = Callable[[Search], None]
"""Offers a search what it proves, until there is nothing to add or it must stop."""

BOUNDS: Registry[Bound] = Registry(
    "method",
    "kvopt.bounds",
    dict.fromkeys(
        ("volume", "lp", "lagrangian", "configuration", "auto"), "kvopt.engines.bounding"
    ),
)

register = BOUNDS.register
"""Make a bound known by a name; a decorator."""

"""One line for all workers."""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.simulate.routers.base import Router
from kvopt.simulate.routers.registry import ROUTERS


@dataclass
class Central(Router):
    """Let requests wait in one line, from which a worker takes what its scheduler starts.

    A request is given to a worker when it starts.  One that is evicted waits for the same worker.
    Of several workers that may start something at one time the one that holds the fewest tokens
    is asked first.
    """

    name = "central"
    is_irrevocable = False


ROUTERS.add(Central.name, Central)

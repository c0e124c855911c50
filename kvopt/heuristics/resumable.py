"""Searches that can be suspended and resumed: generators that yield between two passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

from kvopt.incumbent.incumbent import Search
from kvopt.kernels.clock import wall_time

Passes = Iterator[None]
"""The passes of a search; a pass ends early when the turn is over."""


class Turn:
    """A search, and the time limit of its current turn."""

    def __init__(self, search: Search, seconds: float = math.inf) -> None:
        self.search, self._end = search, wall_time() + seconds

    def is_late(self) -> bool:
        """Tell whether the turn is over."""
        return wall_time() >= self._end or self.search.should_stop()

    def go_through(self, passes: Passes, most: int | None = None) -> bool:
        """Make passes until the turn is over; return whether there may be more."""
        return any(self.is_late() for _ in islice(passes, most))


Way = Callable[[Turn, int], Passes]
"""Makes passes of a turn and a seed."""


def take_one(search: Search, way: Way, seconds: float, seed: int, most: int | None = None) -> None:
    """Run one strategy for so long, for so many passes, or until nothing improves any more."""
    turn = Turn(search, seconds)
    if not turn.is_late():
        turn.go_through(way(turn, seed), most)

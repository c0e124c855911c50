"""Ways to a better schedule take turns, and the one that gained most per second goes on.

A way is a generator that goes once over something between two yields, and ends where nothing
improves any more.  Which way pays depends on the instance and on how good the schedule is by then,
so it is measured, and measured again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compile_clock import working_time

_TURNS = 20
"""Turns into which the time is divided."""
_FORGOTTEN = 12
"""Turns of others after which a way is asked again, however little it gained."""

Passes = Iterator[None]
"""What a way does, pass by pass; a pass ends early when the turn is over."""


class Turn:
    """A search, and how long the way that is at work may go on."""

    def __init__(self, search: Search, seconds: float = math.inf) -> None:
        self.search = search
        self.begin(seconds)

    def begin(self, seconds: float) -> None:
        """Let another turn begin."""
        self._end = working_time() + seconds

    def is_late(self) -> bool:
        """Tell whether the turn is over."""
        return working_time() >= self._end or self.search.should_stop()

    def go_through(self, passes: Passes, most: int | None = None) -> bool:
        """Make passes until the turn is over; return whether there may be more."""
        return any(self.is_late() for _ in islice(passes, most))


Way = Callable[[Turn, int], Passes]
"""Makes passes of a turn and a seed."""


def take_one(search: Search, way: Way, seconds: float, seed: int, most: int | None) -> None:
    """Let one way go on for so long, for so many passes, or until nothing improves any more."""
    turn = Turn(search, seconds)
    if not turn.is_late():
        turn.go_through(way(turn, seed), most)


@dataclass
class _Side:
    passes: Passes
    rate: float = math.inf
    asked: int = 0


def take_turns(search: Search, ways: Sequence[Way], seconds: float, seed: int = 0) -> None:
    """Let ways take turns for so long, or until none improves any more.

    Without a limit each goes on to its end, one after the other.
    """
    end, length, turn = working_time() + seconds, seconds / _TURNS, Turn(search)
    sides, number = [_Side(way(turn, seed)) for way in ways], 0
    while sides and working_time() < end and not search.should_stop():
        side, number = _next(sides, number), number + 1
        side.asked, began, before = number, working_time(), _latency(search)
        turn.begin(min(length, end - began))
        if not turn.go_through(side.passes):
            sides.remove(side)
        side.rate = (before - _latency(search)) / max(working_time() - began, 1e-3)


def _next(sides: Sequence[_Side], number: int) -> _Side:
    """Return what was not asked for long, else what gained most, and of equals the first."""
    oldest = min(sides, key=lambda side: side.asked)
    if number - oldest.asked > _FORGOTTEN:
        return oldest
    return max(sides, key=lambda side: (side.rate, -side.asked))


def _latency(search: Search) -> int:
    return 0 if search.schedule is None else search.schedule.objective

"""Work and memory over time, as plain numbers that can be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from kvopt.problem.instance import Instance

_COLUMNS = 2_000
"""Number of parts of the time; in each a curve keeps its first, last, lowest and highest point.

There are more parts than pixels, so the picture is the same."""

Curve = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]
"""Times and heights of the corners of a curve, with straight lines between them."""

_MOST_ROUNDS, _MOST_STEPS = 300, 5_000
"""Beyond so many rounds steps would be only a few pixels wide, so curves have straight lines.

A step has the tokens held at the end of a round during the whole round; a straight line reaches
them at its end.  So both agree at the end of every round.
"""


class WorkPiece(NamedTuple):
    """An interval of work of one request, in a position of the instance, on a worker.

    ``first`` is the end of its first round; ``before`` are the tokens that the request had produced
    before, and ``produced`` those that it produces here.  ``is_lost`` if an eviction lost it.
    """

    request: int
    worker: int
    begin: float
    first: float
    end: float
    before: int
    produced: int
    is_lost: bool = False


@dataclass(frozen=True)
class Timeline:
    """A schedule or a run on any clock, in ``rounds`` or in ``seconds``.

    ``work`` is in order for each request.  If tokens do not rise in even rounds, ``measured`` has
    workers and the tokens that they held in intervals.  ``label`` is the scheduler, empty if
    unknown, and ``remark`` is on its run.
    """

    instance: Instance
    work: Sequence[WorkPiece]
    arrivals: Sequence[float]
    measured: Sequence[tuple[int, Curve]] = ()
    label: str = ""
    remark: str = ""
    unit: str = "rounds"

    @cached_property
    def _last(self) -> float:
        return max((piece.end for piece in self.work), default=0.0)

    @cached_property
    def begin(self) -> float:
        """First time that a picture shows."""
        begin = min((*self.arrivals, *(piece.begin for piece in self.work)), default=0.0)
        # Idle rounds at the begin are shown unless they would take a quarter of the picture.
        return begin if begin * 4 > self._last else min(begin, 0)

    @cached_property
    def end(self) -> float:
        """Last time that a picture shows."""
        return max(self._last, self.begin + (1 if self.unit == "rounds" else 1e-9))

    @cached_property
    def stepped(self) -> bool:
        """Whether tokens rise at the begin of each round, not in straight lines."""
        steps = sum(request.output for request in self.instance)
        few = self.end - self.begin <= _MOST_ROUNDS and steps <= _MOST_STEPS
        return self.unit == "rounds" and few

    @cached_property
    def waits(self) -> list[tuple[int, float, float]]:
        """Request, begin and end of all waiting, before the first or later work."""
        free, left, waits = [*self.arrivals], [r.output for r in self.instance], []
        for piece in self.work:
            waits.append((piece.request, free[piece.request], piece.begin))
            free[piece.request] = piece.end
            left[piece.request] -= 0 if piece.is_lost else piece.produced
        waits += [(i, free[i], self._last) for i, tokens in enumerate(left) if tokens]
        return [wait for wait in waits if wait[1] < wait[2]]

    @cached_property
    def order(self) -> list[int]:
        """Requests worker by worker, in order of their first starts."""
        first = {p.request: (p.worker, p.begin, p.end) for p in reversed(self.work)}
        never = (self.instance.workers, self.end, self.end)
        return sorted(range(len(self.instance)), key=lambda i: (*first.get(i, never), i))

    def tokens(self, piece: WorkPiece) -> Curve:
        """Return the tokens that a request holds in an interval of work."""
        held = self.instance[piece.request].prompt + piece.before
        if not self.stepped:
            corners = [0, held, held + min(piece.produced, 1), held + piece.produced, 0]
            return (piece.begin, piece.begin, piece.first, piece.end, piece.end), corners
        rounds = np.arange(piece.end - piece.begin)
        grown = held + (rounds + 1) * bool(piece.produced)
        times = piece.begin + np.append(rounds, len(rounds))
        return np.repeat(times, 2), np.concatenate(([0], np.repeat(grown, 2), [0]))

    def prompt(self, piece: WorkPiece) -> Curve:
        """Return the prompt that a request holds in an interval of work."""
        return _level(piece.begin, piece.end, self.instance[piece.request].prompt)

    def held(self, worker: int | None = None) -> Curve:
        """Return the tokens that a worker, or all together, hold over time."""
        if self.measured:
            return summed(curve for place, curve in self.measured if worker in (None, place))
        return summed(chain(map(self.tokens, self._of(worker)), self._counted_twice(worker)))

    def held_prompts(self, worker: int | None = None) -> Curve:
        """Return the prompt tokens held over time."""
        return summed(chain(map(self.prompt, self._of(worker)), self._counted_twice(worker)))

    def _counted_twice(self, worker: int | None) -> Iterator[Curve]:
        """Yield, below 0, tokens of shared prefixes that pieces of work would count twice."""
        forest, until = self.instance.forest, dict[tuple[int, int], float]()
        for piece in sorted(self._of(worker), key=lambda piece: piece.begin):
            for node in forest.paths[piece.request]:
                key = piece.worker, node
                end = until.get(key, piece.begin)
                if end > piece.begin:
                    yield _level(piece.begin, min(end, piece.end), -forest.weights[node])
                until[key] = max(end, piece.end)

    def counted(self, *kinds: str) -> Curve:
        """Return how many requests are ``running`` or ``waiting`` over time."""
        spans = {
            "running": [(piece.begin, piece.end) for piece in self.work],
            "waiting": [wait[1:] for wait in self.waits],
        }
        return summed(_level(*span, 1) for kind in kinds for span in spans[kind])

    def _of(self, worker: int | None) -> Iterable[WorkPiece]:
        return (piece for piece in self.work if worker in (None, piece.worker))


class Drawable(Protocol):
    """A schedule, or a run."""

    def timeline(self) -> Timeline:
        """Return the work as plain numbers."""
        ...


def _level(begin: float, end: float, height: float) -> Curve:
    return (begin, begin, end, end), (0, height, height, 0)


def summed(curves: Iterable[Curve]) -> Curve:
    """Return the sum of curves, each of which begins and ends at 0."""
    nothing: Curve = ((), ())
    # In a row: between the end of one at 0 and the begin of the next the sum stays 0.
    times, heights = map(np.concatenate, zip(nothing, *curves, strict=True))
    length, rise = np.diff(times), np.diff(heights)
    is_upright = length == 0
    slope = np.where(is_upright, 0, rise / (length + is_upright))
    at, place = np.unique(times, return_inverse=True)
    before, behind = place[:-1], place[1:]
    jumps = np.bincount(behind, rise * is_upright, len(at))
    turns = np.bincount(before, slope, len(at)) - np.bincount(behind, slope, len(at))
    grown = np.cumsum(turns) * np.diff(at, append=at[-1:])
    after = np.cumsum(jumps + grown) - grown
    return np.repeat(at, 2), np.column_stack((after - jumps, after)).ravel()


def thinned(curve: Curve) -> Curve:
    """Return a curve with only visible corners: ends, lowest and highest."""
    times, heights = (np.asarray(side, dtype=float) for side in curve)
    if len(times) <= 4 * _COLUMNS:
        return times, heights
    column = ((times - times[0]) / (times[-1] - times[0]) * _COLUMNS).astype(int)
    firsts = np.flatnonzero(np.diff(column, prepend=-1))
    lasts = np.append(firsts[1:], len(column)) - 1
    by_height = np.lexsort((heights, column))
    kept = np.unique([firsts, lasts, by_height[firsts], by_height[lasts]])
    return times[kept], heights[kept]

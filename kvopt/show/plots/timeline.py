"""What ran when and what was held, as plain numbers that can be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from kvopt.problem.instance import Instance

_COLUMNS = 2_000
"""Equal parts of the time in which a curve keeps its first, last, least and largest point.

More than a picture has pixels across, so the picture is the same."""

Curve = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]
"""Times and heights of the corners of a curve, with straight lines between them."""

_MOST_ROUNDS, _MOST_STEPS = 300, 5_000
"""Rounds beyond which steps would be a few pixels wide, and steps that would be large for no gain.

Until then the height is what is held at the end of a round all through the round; beyond, a
straight line reaches it there.  So both agree at the end of every round.
"""


class Work(NamedTuple):
    """A stretch of work of one request.

    Parameters
    ----------
    request, worker
        Positions.
    begin, first, end
        When it begins, when its first round ends, and when it ends.
    before, produced
        Tokens that the request had produced before, and those that it produces here.
    is_lost
        Whether an eviction threw it away.
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
    """A schedule or a run on any clock.

    Parameters
    ----------
    name, facts
        Of the instance, and what is said of it in a line.
    label, said
        The scheduler, empty where it is not known, and what is said of what it did.
    unit
        ``rounds`` or ``seconds``.
    memory, workers
        Tokens that a worker holds, and how many workers there are.
    names, prompts, peaks
        Of each request its id, and its tokens at first and at most.
    work, waits
        What ran; and request, begin and end of all waiting, for the first time or after work.
    begin, end
        Times between which there is something to see.
    stepped
        Whether tokens rise at the begin of each round, not in straight lines.
    measured
        Of each worker the corners of the tokens held, where they do not rise in even rounds.
    """

    name: str | None
    facts: str
    label: str
    said: str
    unit: str
    memory: int
    workers: int
    names: Sequence[str]
    prompts: Sequence[int]
    peaks: Sequence[int]
    work: Sequence[Work]
    waits: Sequence[tuple[int, float, float]]
    begin: float
    end: float
    stepped: bool
    measured: Sequence[Curve] = ()

    @cached_property
    def order(self) -> list[int]:
        """Requests worker by worker, in order of their first starts."""
        first = {piece.request: piece for piece in reversed(self.work)}
        never = (self.workers, self.end, self.end)
        return sorted(
            range(len(self.names)),
            key=lambda i: (*((first[i][1], first[i][2], first[i][4]) if i in first else never), i),
        )

    def held(self, worker: int | None = None) -> Curve:
        """Return the tokens that a worker, or all together, hold over time."""
        if self.measured:
            curves = self.measured if worker is None else [self.measured[worker]]
            return curves[0] if len(curves) == 1 else accumulated(_changes(curves))
        return accumulated(change for piece in self._of(worker) for change in self._rise(piece))

    def held_prompts(self, worker: int | None = None) -> Curve:
        """Return the prompt tokens held over time."""
        return accumulated(
            (time, side * self.prompts[piece.request], 0.0)
            for piece in self._of(worker)
            for time, side in ((piece.begin, 1), (piece.end, -1))
        )

    def _of(self, worker: int | None) -> Iterator[Work]:
        return (piece for piece in self.work if worker in (None, piece.worker))

    def _rise(self, piece: Work) -> Iterator[tuple[float, float, float]]:
        tokens = self.prompts[piece.request] + piece.before
        yield piece.begin, tokens, 0
        if self.stepped:
            yield from ((piece.begin + j, 1, 0) for j in range(piece.produced))
        elif piece.end > piece.begin:
            slope = piece.produced / (piece.end - piece.begin)
            yield from ((piece.begin, 0, slope), (piece.end, 0, -slope))
        yield piece.end, -tokens - piece.produced, 0


def timeline_of(
    instance: Instance,
    work: Iterable[Work],
    arrivals: Sequence[float] | None = None,
    measured: Sequence[Curve] = (),
    *,
    label: str = "",
    said: str = "",
    unit: str = "rounds",
) -> Timeline:
    """Return a timeline from what worked when; see there what the parameters are.

    ``arrivals`` are those of the instance where they are left out.
    """
    known: list[float] = [request.arrival for request in instance]
    known = known if arrivals is None else [*arrivals]
    done = sorted(work, key=lambda piece: (piece.begin, piece.end))
    last = max((piece.end for piece in done), default=0.0)
    free, left, waits = known.copy(), [request.output for request in instance], []
    for piece in done:
        waits.append((piece.request, free[piece.request], piece.begin))
        free[piece.request] = piece.end
        left[piece.request] -= 0 if piece.is_lost else piece.produced
    waits += [(i, free[i], last) for i, tokens in enumerate(left) if tokens]
    begin = min((*known, *(piece.begin for piece in done)), default=0.0)
    end = max(last, begin + (unit == "rounds"), begin + 1e-9)
    count = "1 request" if len(instance) == 1 else f"{len(instance):,} requests"
    fleet = f"{instance.workers} workers, " if instance.workers > 1 else ""
    return Timeline(
        name=instance.name,
        facts=f"{count}, {fleet}M = {instance.memory:,}",
        label=label,
        said=said,
        unit=unit,
        memory=instance.memory,
        workers=instance.workers,
        names=[request.id or "" for request in instance],
        prompts=[request.prompt for request in instance],
        peaks=[request.peak for request in instance],
        work=done,
        waits=[(i, since, until) for i, since, until in waits if since < until],
        # A lead of idle rounds is shown unless it would take a quarter of the picture.
        begin=begin if begin * 4 > end else min(begin, 0),
        end=end,
        stepped=unit == "rounds"
        and end - begin <= _MOST_ROUNDS
        and sum(request.output for request in instance) <= _MOST_STEPS,
        measured=measured,
    )


class Drawable(Protocol):
    """A schedule, or a run."""

    def timeline(self) -> Timeline:
        """Return it as plain numbers."""
        ...


def accumulated(changes: Iterable[tuple[float, float, float]]) -> Curve:
    """Return the corners of a sum of curves from their jumps and changes of slope over time."""
    times: list[float] = []
    values: list[float] = []
    slope = 0.0
    for time, group in groupby(sorted(changes), itemgetter(0)):
        some = list(group)
        value = values[-1] + slope * (time - times[-1]) if times else 0.0
        times += [time, time]
        values += [value, value + sum(jump for _, jump, _ in some)]
        slope += sum(more for *_, more in some)
    return times, values


def _changes(curves: Sequence[Curve]) -> Iterator[tuple[float, float, float]]:
    """Yield the jumps and changes of slope of curves."""
    for times, values in curves:
        for (begin, low), (end, high) in pairwise(zip(times, values, strict=True)):
            if end == begin:
                yield begin, high - low, 0
            else:
                slope = (high - low) / (end - begin)
                yield from ((begin, 0, slope), (end, 0, -slope))


def counted(spans: Iterable[tuple[float, float]], until: float) -> Curve:
    """Return how many spans of time there are at each time, from 0 on."""
    changes = [(time, side, 0) for span in spans for time, side in zip(span, (1, -1), strict=True)]
    return accumulated([(0, 0, 0), *changes, (until, 0, 0)])


def thinned(curve: Curve) -> Curve:
    """Return a curve of no more corners than can be told apart: ends, least and largest."""
    times, heights = (np.asarray(side, dtype=float) for side in curve)
    if len(times) <= 4 * _COLUMNS:
        return times, heights
    column = ((times - times[0]) / (times[-1] - times[0]) * _COLUMNS).astype(int)
    firsts = np.flatnonzero(np.diff(column, prepend=-1))
    lasts = np.append(firsts[1:], len(column)) - 1
    least, most = (each.reduceat(heights, firsts) for each in (np.minimum, np.maximum))
    corners = np.stack((heights[firsts], least, most, heights[lasts]), axis=1)
    return [*np.repeat(times[firsts], 4)[: corners.size - 1].tolist(), times[-1]], corners.ravel()

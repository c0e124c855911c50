"""What is drawn, as plain numbers: exact, and free of matplotlib.

A request that starts at k is drawn over ``k .. k + o``; the round that ends at time t is
the stretch from t - 1 to t.  There are two ways to draw growth:

- *steps*: through the round that ends at t the height is what is held at t, an integer;
- *slopes*: a straight line that is at that height when the round ends.

Both agree at every integer time, seen from the left, and both fall upright at a
completion.  Steps are the truth and are drawn while they can be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from kvopt.model.schedule import Schedule

Points = list[tuple[float, float]]

_MOST_ROUNDS = 300
"""Rounds beyond which a step would be a few pixels wide."""

_MOST_STEPS = 5_000
"""Steps in all beyond which the file would be large for no gain."""


def is_stepped(schedule: Schedule) -> bool:
    """Whether growth is drawn in steps, not slopes."""
    left, right = window(schedule)
    return right - left <= _MOST_ROUNDS and schedule.instance.total_output <= _MOST_STEPS


def window(schedule: Schedule) -> tuple[int, int]:
    """Return the times between which there is something to see.

    A lead of idle rounds is shown unless it would take a quarter of the picture.
    """
    instance = schedule.instance
    first = min((*schedule.starts, *(request.arrival for request in instance)), default=0)
    right = max(schedule.makespan, first + 1)
    return (first if first * 4 > right else min(first, 0)), right


def growth(start: int, output: int, stepped: bool) -> Points:
    """Return the tokens produced by a request over time, from its start to its completion."""
    if not stepped:
        return [(start, 0), (start + output, output)]
    return [(start + j + side, j + 1) for j in range(output) for side in (0, 1)]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which the same requests are active: nothing starts or completes inside.

    Parameters
    ----------
    begin, end
        It covers the rounds that end at ``begin + 1 .. end``.
    active
        Requests that are active: the tokens that memory grows by in a round.
    prompts
        Prompt tokens held.
    produced
        Tokens that the active requests had produced at ``begin``.
    """

    begin: int
    end: int
    active: int
    prompts: int
    produced: int

    def outline(self, stepped: bool) -> Points:
        """Return the tokens held over time, prompts and produced."""
        held = self.prompts + self.produced
        if not stepped:
            grown = self.active * (self.end - self.begin)
            return [(self.begin, held), (self.end, held + grown)]
        rounds = range(1, self.end - self.begin + 1)
        return [
            (self.begin + j - 1 + side, held + self.active * j) for j in rounds for side in (0, 1)
        ]


@dataclass(frozen=True, slots=True)
class Piece:
    """A request at work: it holds ``prompt + j`` tokens at time ``begin + j``, until ``end``."""

    begin: int
    end: int
    prompt: int


def stretches(schedule: Schedule) -> Iterator[Stretch]:
    """Cut the schedule at every start and every completion."""
    ends = zip(schedule.starts, schedule.completions, schedule.instance, strict=True)
    return stretches_of(Piece(k, c, request.prompt) for k, c, request in ends)


def stretches_of(pieces: Iterable[Piece]) -> Iterator[Stretch]:
    """Cut what is at work, evicted later or not, wherever a piece begins or ends."""
    changes: dict[int, list[tuple[int, int, int]]] = {}
    for piece in pieces:
        changes.setdefault(piece.begin, []).append((1, piece.prompt, -piece.begin))
        changes.setdefault(piece.end, []).append((-1, -piece.prompt, piece.begin))
    active = prompts = offset = 0  # tokens produced at t are offset + active * t
    for begin, end in pairwise(sorted(changes)):
        for requests, tokens, shift in changes[begin]:
            active += requests
            prompts += tokens
            offset += shift
        yield Stretch(begin, end, active, prompts, offset + active * begin)


def profile(schedule: Schedule, stepped: bool) -> tuple[list[float], list[float], list[float]]:
    """Return times, prompt tokens and all tokens: an outline that begins and ends at 0."""
    times: list[float] = []
    prompts: list[float] = []
    totals: list[float] = []
    for stretch in stretches(schedule):
        for time, total in stretch.outline(stepped):
            times.append(time)
            prompts.append(stretch.prompts)
            totals.append(total)
    if not times:
        return [], [], []
    return [times[0], *times, times[-1]], [0, *prompts, 0], [0, *totals, 0]

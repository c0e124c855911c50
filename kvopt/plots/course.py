"""What became of requests over time, as plain numbers: how many waited, and how many ran."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kvopt.timetable.schedule import Schedule

_COLUMNS = 2_000
"""Equal parts of the time in which a curve keeps its first, last, least and largest point.

More than a picture has pixels across, so the picture is the same."""

Span = tuple[int, float, float]
"""Request, begin and end."""


@dataclass
class Course:
    """Times in rounds or in seconds, as the clock of the run counts them.

    Parameters
    ----------
    waits
        When requests waited, for the first time or after an eviction.
    lost
        Work that evictions threw away.
    prefills, decodes
        The round that processed the prompt and gave the first token, and the rounds after it.
    ended
        When the last of it ended.
    """

    waits: list[Span] = field(default_factory=list)
    lost: list[Span] = field(default_factory=list)
    prefills: list[Span] = field(default_factory=list)
    decodes: list[Span] = field(default_factory=list)
    ended: float = 0.0


def course_of(run: Schedule) -> Course:
    """Return what became of the requests of a run."""
    scale, requests = run.clock.scale, run.instance.requests
    began = {stretch.round: stretch.began / scale for stretch in run.stretches}
    first = {stretch.round: stretch.first / scale for stretch in run.stretches}
    ended = {s.round + s.rounds: s.ended / scale for s in run.stretches}
    pieces: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, start, end in run.pieces():
        pieces[i].append((start, end))
    chunks = {(c.request, c.start, c.end) for c in run.chunks}
    found = Course(ended=max(ended.values(), default=0.0))
    for i, request in enumerate(requests):
        free = run.arrivals[i] / scale
        for start, end in sorted(pieces[i]):
            found.waits.append((i, free, began[start]))
            free = ended[end]
            if (i, start, end) in chunks:
                found.prefills.append((i, began[start], free))
            elif end - start < request.output and not run.segments:
                found.lost.append((i, began[start], free))
            else:
                found.prefills.append((i, began[start], first[start]))
                found.decodes.append((i, first[start], free))
        if run.starts[i] is None:
            found.waits.append((i, free, max(free, found.ended)))
    found.waits = [span for span in found.waits if span[1] < span[2]]
    return found


def tokens_over_time(run: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the tokens held: upright at starts and ends, straight in between."""
    scale = run.clock.scale
    corners: list[tuple[float, int]] = [(0.0, 0)]
    for stretch in run.stretches:
        before, begin = corners[-1][0], stretch.began / scale
        if begin > before:  # the server was idle and held nothing
            corners += [(before, 0), (begin, 0)]
        corners += [
            (begin, stretch.held - stretch.active),
            (stretch.first / scale, stretch.held),
            (stretch.ended / scale, stretch.held_last),
        ]
    times, held = zip(*corners, (corners[-1][0], 0), strict=True)
    return np.array(times), np.array(held)


def counted(spans: Sequence[Span], until: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a curve: how many spans there are at each time, from 0 on."""
    begins, ends = ([span[side] for span in spans] for side in (1, 2))
    times, places = np.unique(np.array([0.0, *begins, *ends, until]), return_inverse=True)
    change = np.zeros(len(times), dtype=int)
    np.add.at(change, places[1 : len(spans) + 1], 1)
    np.add.at(change, places[len(spans) + 1 : -1], -1)
    after = change.cumsum()
    return np.repeat(times, 2), np.append(0, np.repeat(after, 2)[:-1])


def thinned(
    times: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray
) -> np.ndarray:
    """Return the positions of the points of a curve that can be told apart in a picture."""
    moments, heights = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if len(moments) <= 4 * _COLUMNS:
        return np.arange(len(moments))
    share = (moments - moments[0]) / (moments[-1] - moments[0])
    column = np.minimum((share * _COLUMNS).astype(int), _COLUMNS - 1)
    firsts = np.flatnonzero(np.diff(column, prepend=-1))
    lasts = np.append(firsts[1:] - 1, len(column) - 1)
    ranked = np.lexsort((heights, column))
    return np.unique(np.concatenate((firsts, lasts, ranked[firsts], ranked[lasts])))

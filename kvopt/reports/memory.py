"""The tokens held over time, with what evictions threw away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvopt.model.instance import Instance
from kvopt.model.outlines import Points, outline
from kvopt.model.sweep import Stretch, swept
from kvopt.reports.axes import Frame, label, labels, line
from kvopt.reports.html import Markup, number, tag

_MOST_CORNERS = 800
_COLUMNS = 386
"""Columns, a pixel wide, of a picture that has more corners than can be told apart."""


@dataclass(frozen=True, slots=True)
class Work:
    """A stretch of work of one request, active at the times ``begin + 1 .. end``."""

    request: int
    begin: int
    end: int
    lost: bool


def memory(instance: Instance, work: Sequence[Work], frame: Frame) -> list[Markup]:
    """Draw tokens held against the capacity, in a frame whose upward scale is tokens."""
    kept = _stretches(instance, [piece for piece in work if not piece.lost])
    capacity, base = frame.y.at(instance.memory), frame.y.at(0)
    left, right = frame.x.start, frame.x.end
    (shown,) = labels([instance.memory])
    layers = [(kept, "grown", _held), (kept, "prompt", _prompts)]
    if any(piece.lost for piece in work):  # seen where it stands above what was kept
        layers.insert(0, (_stretches(instance, work), "lost", _held))
    areas = [tag("path", d=_area(how(what), frame), class_=kind) for what, kind, how in layers]
    return [
        *areas,
        line(left, capacity, right, capacity, "capacity"),
        line(left, base, right, base, "axis"),
        label(left - 5, capacity + 3.5, shown, "end"),
        label(left - 5, base + 3.5, "0", "end"),
        label(2, frame.y.end - 4, "tokens held", "start", "title"),
    ]


def _stretches(instance: Instance, work: Sequence[Work]) -> list[Stretch]:
    prompts = [instance.requests[piece.request].prompt for piece in work]
    starts, ends = [piece.begin for piece in work], [piece.end for piece in work]
    return list(swept(starts, ends, prompts).stretches())


def _held(found: Iterable[Stretch]) -> Points:
    return [corner for stretch in found for corner in outline(stretch, stepped=False)]


def _prompts(found: Iterable[Stretch]) -> Points:
    return [(time, s.prompts) for s in found for time in (s.begin, s.end)]


def _area(corners: Points, frame: Frame) -> str:
    if not corners:
        return ""
    base = number(frame.y.at(0))
    places = [f"{number(frame.x.at(t))} {number(frame.y.at(held))}" for t, held in _thin(corners)]
    return f"M{number(frame.x.at(corners[0][0]))} {base}L{'L'.join(places)}V{base}z"


def _thin(corners: Points) -> Points:
    """Return corners as they are; of very many the highest in each column."""
    if len(corners) <= _MOST_CORNERS:
        return corners
    first, last = corners[0][0], corners[-1][0]
    highest: dict[int, tuple[float, float]] = {}
    for time, held in corners:
        column = int((time - first) * _COLUMNS / (last - first))
        highest[column] = max((held, time), highest.get(column, (0, time)))
    return [(time, held) for held, time in (highest[column] for column in sorted(highest))]

"""Bars below each other, one for each scheduler, with what they say in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvopt.reports.charts.axes import Axis, Box, Frame, label, line, path
from kvopt.reports.html import Markup, join, number

_WIDTH, _LEFT, _RIGHT, _TOP = 440.0, 16.0, 432.0, 4.0
"""Pixels of the picture and of its inner edges."""
_ROW, _BAR = 28.0, 8.0
"""Pixels from one row to the next, and of a bar."""


@dataclass(frozen=True)
class Bar:
    """A bar from start to end, with words above it and a line across at its mark.

    A thin line goes on to what is far; infinity is the end of the axis.
    """

    name: str
    said: str
    start: float
    end: float
    mark: float
    far: float | None = None


def bars(title: str, found: Sequence[Bar], across: Axis) -> Markup:
    """Draw bars over one axis; the title is for readers without the picture."""
    base = _TOP + _ROW * len(found)
    box = Box(_WIDTH, base + 36, _LEFT, _RIGHT - 8, _TOP, base)
    frame = Frame(box, across, Axis("", 0, 1))
    x = frame.x
    return frame.svg(
        title,
        *(line(x.at(tick), _TOP, x.at(tick), base, "grid") for tick, _ in x.ticks(6)),
        *(_drawn(bar, x, _TOP + _ROW * place) for place, bar in enumerate(found)),
        line(_LEFT, base, _RIGHT, base, "axis"),
        frame.bottom(),
    )


def _drawn(bar: Bar, x: Axis, top: float) -> Markup:
    left, right, mark, far = (
        x.end if math.isinf(value) else x.at(value)
        for value in (bar.start, bar.end, bar.mark, bar.end if bar.far is None else bar.far)
    )
    middle = top + 16 + _BAR / 2
    corners = f"M{number(left)} {number(top + 16)}H{number(right)}v{number(_BAR)}H{number(left)}z"
    return join(
        label(_LEFT, top + 11, bar.name, "start", "name"),
        label(_RIGHT, top + 11, bar.said, "end", "name"),
        None if bar.far is None else line(right, middle, far, middle, "far"),
        path(corners, "bar most"),
        line(mark, top + 14, mark, top + 18 + _BAR, "end"),
    )

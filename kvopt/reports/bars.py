"""Bars below each other, one for each scheduler, with what they say in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kvopt.reports.axes import Frame, Scale, label, line
from kvopt.reports.html import Markup, join, number, tag
from kvopt.reports.points import Axis

_WIDTH, _LEFT, _RIGHT, _TOP = 440.0, 16.0, 432.0, 4.0
_ROW, _BAR = 28.0, 8.0


@dataclass(frozen=True)
class Bar:
    """A bar from one value to another; infinity is the end of the axis.

    Parameters
    ----------
    name, said
        What stands above it, left and right.
    start, end
        Where it is.
    mark
        A value that gets a line across.
    far
        A thin line goes on to it.
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
    x = Scale(across.low, across.high, _LEFT, _RIGHT - 8, across.logarithmic)
    frame = Frame(_WIDTH, base + 36, x, Scale(0, 1, base, _TOP))
    ticks = x.ticks(6)
    return frame.svg(
        title,
        *(line(x.at(tick), _TOP, x.at(tick), base, "grid") for tick in ticks),
        *(_drawn(bar, x, _TOP + _ROW * place) for place, bar in enumerate(found)),
        line(_LEFT, base, _RIGHT, base, "axis"),
        frame.bottom(ticks, across.title),
    )


def _drawn(bar: Bar, x: Scale, top: float) -> Markup:
    left, right, mark = (_at(value, x) for value in (bar.start, bar.end, bar.mark))
    middle, upper = top + 16 + _BAR / 2, number(top + 16)
    corners = f"M{number(left)} {upper}H{number(right)}v{number(_BAR)}H{number(left)}z"
    return join(
        label(_LEFT, top + 11, bar.name, "start", "name"),
        label(_RIGHT, top + 11, bar.said, "end", "name"),
        *([] if bar.far is None else [line(right, middle, _at(bar.far, x), middle, "far")]),
        tag("path", d=corners, class_="bar most"),
        line(mark, top + 14, mark, top + 18 + _BAR, "end"),
    )


def _at(value: float, x: Scale) -> float:
    return x.end if math.isinf(value) else x.at(value)

"""Charts of points that can be pointed at: by a mouse, a finger or the arrow keys.

The picture is drawn here and needs no script.  What a script needs to answer a reader, places and
words, goes into the page once as data: instances by position, and points that refer to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from kvopt.reports.axes import Frame, Scale, line
from kvopt.reports.html import Markup, number, tag

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 360.0, 220.0, 46.0, 350.0, 24.0, 184.0
_WIDE = 5
"""Times by which values may differ before an axis turns logarithmic."""


@dataclass(frozen=True, slots=True)
class Point:
    """One mark: its place, the instance that it is about, and what to say of it.

    Parameters
    ----------
    x
        Across.
    low, high
        Ends of the interval upwards; an unknown high end is drawn as its low end.
    instance
        Position of the instance.
    said
        A line for the reader.
    """

    x: float
    low: float
    high: float | None
    instance: int
    said: str


@dataclass(frozen=True)
class Chart:
    """Points on axes, as a picture and as data for the script."""

    svg: Markup
    data: list[list[Any]]


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows, from where to where."""

    title: str
    low: float
    high: float
    logarithmic: bool = False
    suffix: str = ""


def spread(title: str, values: Iterable[float], suffix: str = "", floor: float = 0) -> Axis:
    """Return an axis that holds all values, logarithmic where they are far apart."""
    known = list(values)
    low, high = min(known, default=floor), max(known, default=floor + 1)
    if low > 0 and high / low > _WIDE:
        return Axis(title, max(low / 1.04, floor), high * 1.04, True, suffix)
    margin = (high - low) * 0.04 or max(abs(high), 1) * 0.02
    return Axis(title, max(low - margin, floor), high + margin, False, suffix)


def chart(
    name: str,
    points: Sequence[Point],
    across: Axis,
    up: Axis,
    trend: Sequence[tuple[float, float]] = (),
) -> Chart:
    """Draw points.

    Parameters
    ----------
    name
        What a reader without the picture is told.
    points
        The points.
    across, up
        The axes.
    trend
        Corners of a line to draw beside the points.
    """
    x = Scale(across.low, across.high, _LEFT, _RIGHT, across.logarithmic)
    y = Scale(up.low, up.high, _BOTTOM, _TOP, up.logarithmic)
    frame = Frame(_WIDTH, _HEIGHT, x, y)
    data = [_placed(point, x, y) for point in points]
    parts = [
        frame.left(y.ticks(5), up.title, up.suffix),
        frame.bottom([tick for tick in x.ticks(6) if tick == int(tick)], across.title),
        line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"),
        tag("path", d="".join(_bar(*place[:3]) for place in data), class_="span"),
        tag("path", d="".join(_dot(*place[:2]) for place in data), class_="dots"),
        tag("path", d=_line(trend, x, y), class_="trend") if trend else Markup(""),
    ]
    return Chart(frame.svg(name, *parts), data)


def _placed(point: Point, x: Scale, y: Scale) -> list[Any]:
    high = point.low if point.high is None else point.high
    places = [round(scale, 1) for scale in (x.at(point.x), y.at(point.low), y.at(high))]
    return [*places, point.instance, point.said]


def _bar(x: float, low: float, high: float) -> str:
    return "" if low == high else f"M{number(x)} {number(low)}V{number(high)}"


def _dot(x: float, low: float) -> str:
    return f"M{number(x)} {number(low)}h0"


def _line(corners: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    return "M" + "L".join(f"{number(x.at(a))} {number(y.at(b))}" for a, b in corners)


def as_float(end: Fraction | None) -> float | None:
    """Return an end as a number to draw."""
    return None if end is None else float(end)

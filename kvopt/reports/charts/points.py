"""Charts of points that can be pointed at: by a mouse, a finger or the arrow keys.

The picture is drawn here and needs no script.  What a script needs to answer a reader, places and
words, goes into the page once as data: instances by position, and points that refer to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvopt.reports.charts.axes import Axis, Box, Frame, path
from kvopt.reports.html import Markup, number

_BOX = Box(360.0, 220.0, 46.0, 350.0, 24.0, 184.0)


@dataclass(frozen=True, slots=True)
class Point:
    """One mark: its place, upwards an interval, the position of its instance, and what to say.

    An unknown high end is drawn as the low end.
    """

    x: float
    low: float
    high: float | None
    instance: int
    said: str


Drawn = tuple[Markup, list[list[Any]]]
"""A picture, and the data for the script."""


def chart(
    name: str,
    points: Sequence[Point],
    across: Axis,
    up: Axis,
    trend: Sequence[tuple[float, float]] = (),
) -> Drawn:
    """Return points as a picture with a name, and their data for the script of the page.

    A trend is a line through other points.
    """
    frame = Frame(_BOX, across, up)
    picture = frame.svg(
        name,
        frame.axes(whole=True),
        path("".join(span(frame, each.x, each.low, each.high) for each in points), "span"),
        frame.dots((each.x, each.low) for each in points),
        frame.line(trend, "trend"),
    )
    data = []
    for each in points:
        high = each.low if each.high is None else each.high
        places = (frame.x.at(each.x), frame.y.at(each.low), frame.y.at(high))
        data.append([*(round(place, 1) for place in places), each.instance, each.said])
    return picture, data


def span(frame: Frame, x: float, low: float, high: float | None) -> str:
    """Return a path from the low end of an interval to the high end; empty without one."""
    end = None if high is None else number(frame.y.at(high))
    return "" if end in {None, number(frame.y.at(low))} else f"M{frame.at(x, low)}V{end}"

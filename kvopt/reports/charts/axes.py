"""Axes of a chart, their round ticks, and the frame around what is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from kvopt.reports.html import Markup, Node, join, number, tag

_LOGARITHMIC_TICKS = ((1, 1.2, 1.5, 2, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))
"""Ticks of a decade: the first that are few enough are taken."""
_WIDE = 5
"""Times by which values may differ before an axis turns logarithmic."""

Corners = Iterable[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """Values ``low .. high`` at the places ``start .. end``, evenly or by logarithm."""

    title: str
    low: float
    high: float
    logarithmic: bool = False
    suffix: str = ""
    start: float = 0.0
    end: float = 1.0

    def on(self, start: float, end: float) -> Axis:
        """Return the axis between two places."""
        return replace(self, start=start, end=end)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int, *, whole: bool = False) -> list[tuple[float, str]]:
        """Return at most so many round values, or whole numbers alone, with their labels."""
        round_ones = (
            self._powers(most) if self.logarithmic else multiples(self.low, self.high, most)
        )
        values = [value for value in round_ones if not whole or value == int(value)]
        if self.logarithmic:  # each with places of its own
            return [(value, labels([value])[0]) for value in values]
        return list(zip(values, labels(values), strict=True))

    def _powers(self, most: int) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        inside: list[float] = []
        for steps in _LOGARITHMIC_TICKS:
            values = [round(10.0**power * step, 12) for power in powers for step in steps]
            inside = [value for value in values if self.low <= value <= self.high]
            if len(inside) <= most:
                break
        return inside


def spread(title: str, values: Iterable[float], suffix: str = "", floor: float = 0) -> Axis:
    """Return an axis that holds all values, logarithmic where they are far apart."""
    known = list(values)
    low, high = min(known, default=floor), max(known, default=floor + 1)
    if low > 0 and high / low > _WIDE:
        return Axis(title, max(low / 1.04, floor), high * 1.04, True, suffix)
    margin = (high - low) * 0.04 or max(abs(high), 1) * 0.02
    return Axis(title, max(low - margin, floor), high + margin, False, suffix)


def step_for(span: float, most: int) -> float:
    """Return the least of 1, 2, 5, 10, ... that cuts a span into at most so many parts."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(f * power for f in (1, 2, 5, 10, 20) if f * power * most >= span * (1 - 1e-9))


def multiples(low: float, high: float, most: int) -> list[float]:
    """Return multiples of a round step between two values."""
    step = step_for(high - low, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def labels(values: Iterable[float]) -> list[str]:
    """Return labels, all with as many places as the value that needs most of them."""
    values = list(values)
    places = next(
        n for n in range(13) if n == 12 or all(math.isclose(round(v, n), v) for v in values)
    )
    return [f"{value:,.{places}f}" for value in values]


class Box(NamedTuple):
    """The size of a picture, and the edges between which it is drawn."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


class Frame:
    """The room of a chart, with an axis in each direction."""

    def __init__(self, box: Box, across: Axis, up: Axis) -> None:
        self.width, self.height = box.width, box.height
        self.x, self.y = across.on(box.left, box.right), up.on(box.bottom, box.top)

    def at(self, x: float, y: float) -> str:
        """Return the place of a point, as paths have it."""
        return f"{number(self.x.at(x))} {number(self.y.at(y))}"

    def line(self, corners: Corners, kind: str) -> Markup:
        """Return a line through points; nothing where there are none."""
        places = "L".join(self.at(x, y) for x, y in corners)
        return path(f"M{places}", kind) if places else Markup("")

    def area(self, corners: Corners, kind: str) -> Markup:
        """Return what lies between 0 and a line through points."""
        places, base = [self.at(x, y) for x, y in corners], number(self.y.at(0))
        left = places[0].split()[0] if places else ""
        return path(f"M{left} {base}L{'L'.join(places)}V{base}z" if places else "", kind)

    def dots(self, points: Corners) -> Markup:
        """Return a dot for each point."""
        return path("".join(f"M{self.at(x, y)}h0" for x, y in points), "dots")

    def level(self, value: float, kind: str) -> Markup:
        """Return a line across at a value."""
        return line(self.x.start, self.y.at(value), self.x.end, self.y.at(value), kind)

    def bottom(self, *, whole: bool = False) -> Markup:
        """Return ticks and title below."""
        base = self.y.start
        parts = []
        for value, shown in self.x.ticks(6, whole=whole):
            x = self.x.at(value)
            parts += [line(x, base, x, base + 4, "tick"), label(x, base + 15, shown, "middle")]
        middle = (self.x.start + self.x.end) / 2
        return join(*parts, label(middle, self.height - 4, self.x.title, "middle", "title"))

    def left(self, most: int = 5, *, whole: bool = False) -> Markup:
        """Return ticks and lines across, the title above; what goes down from 0 is counted too."""
        x, parts = self.x.start - 5, []
        for value, shown in self.y.ticks(most, whole=whole):
            said = shown.removeprefix("-") + self.y.suffix
            parts += [self.level(value, "grid"), label(x, self.y.at(value) + 3.5, said, "end")]
        return join(*parts, label(2, self.y.end - 8, self.y.title, "start", "title"))

    def axes(self, *, whole: bool = False) -> Markup:
        """Return both axes."""
        base = line(self.x.start, self.y.start, self.x.end, self.y.start, "axis")
        return join(self.left(), self.bottom(whole=whole), base)

    def tokens(self, capacity: int) -> Markup:
        """Return what stands around tokens that are held in a cache of some capacity."""
        left, (shown,) = self.x.start - 5, labels([capacity])
        return join(
            self.level(capacity, "capacity"),
            self.level(0, "axis"),
            label(left, self.y.at(capacity) + 3.5, shown, "end"),
            label(left, self.y.at(0) + 3.5, "0", "end"),
            label(2, self.y.end - 8, "tokens held", "start", "title"),
        )

    def svg(self, title: str, *children: Node) -> Markup:
        """Return the chart as a picture with a name."""
        box = f"0 0 {number(self.width)} {number(self.height)}"
        return tag("svg", *children, viewBox=box, role="img", aria_label=title, class_="chart")


def path(d: str, kind: str) -> Markup:
    """Return a path of a kind that the style sheet knows."""
    return tag("path", d=d, class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Return a line of a kind that the style sheet knows."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


def label(x: float, y: float, shown: str, anchor: str = "start", kind: str | None = None) -> Markup:
    """Return text at a place."""
    return tag("text", shown, x=float(x), y=float(y), text_anchor=anchor, class_=kind)

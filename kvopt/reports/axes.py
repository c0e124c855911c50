"""Axes of a chart: scales, round ticks, and the frame around what is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kvopt.reports.html import Markup, join, number, tag

_LOGARITHMIC_TICKS = (1, 1.2, 1.5, 2, 3, 5, 7, 10)


@dataclass(frozen=True, slots=True)
class Scale:
    """From values ``low .. high`` to places ``start .. end``, evenly or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the place of a value."""
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Return at most so many round values."""
        if not self.logarithmic:
            return round_values(self.low, self.high, most)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [10.0**power * tick for power in powers for tick in _LOGARITHMIC_TICKS[:-1]]
        inside = [value for value in found if self.low <= value <= self.high]
        return inside[:: -(-len(inside) // most)] if inside else []


def step_for(span: float, most: int) -> float:
    """Return the least of 1, 2, 5, 10, ... that cuts a span into at most so many parts."""
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(f * power for f in (1, 2, 5, 10, 20) if f * power * most >= span * (1 - 1e-9))


def round_values(low: float, high: float, most: int) -> list[float]:
    """Return multiples of a round step between two values."""
    step = step_for(high - low, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def labels(values: Iterable[float]) -> list[str]:
    """Return labels with as many places as tell the values apart."""
    values = list(values)
    for places in range(10):
        found = [f"{value:,.{places}f}" for value in values]
        if all(math.isclose(round(v, places), v, abs_tol=1e-12) for v in values):
            return found
    return [f"{value:g}" for value in values]


@dataclass(frozen=True, slots=True)
class Frame:
    """The room of a chart, with a scale for each direction."""

    width: float
    height: float
    x: Scale
    y: Scale

    def bottom(self, ticks: list[float], title: str) -> Markup:
        """Return ticks and title below."""
        base = max(self.y.start, self.y.end)
        marks = join(*(self._below(self.x.at(v), base, t) for v, t in _labelled(ticks)))
        middle = (self.x.start + self.x.end) / 2
        return join(marks, label(middle, self.height - 4, title, "middle", "title"))

    def left(self, ticks: list[float], title: str, suffix: str = "") -> Markup:
        """Return ticks and lines across, the title above."""
        top = min(self.y.start, self.y.end)
        lines = [
            join(
                line(self.x.start, self.y.at(v), self.x.end, self.y.at(v), "grid"),
                label(self.x.start - 5, self.y.at(v) + 3.5, t + suffix, "end"),
            )
            for v, t in _labelled(ticks)
        ]
        return join(*lines, label(2, top - 8, title, "start", "title"))

    def _below(self, x: float, base: float, shown: str) -> Markup:
        return join(line(x, base, x, base + 4, "tick"), label(x, base + 15, shown, "middle"))

    def svg(self, title: str, *children: Markup) -> Markup:
        """Return the chart as a picture with a name."""
        box = f"0 0 {number(self.width)} {number(self.height)}"
        return tag("svg", *children, viewBox=box, role="img", aria_label=title, class_="chart")


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Return a line of a kind that the style sheet knows."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


def label(x: float, y: float, shown: str, anchor: str = "start", kind: str | None = None) -> Markup:
    """Return text at a place."""
    return tag("text", shown, x=float(x), y=float(y), text_anchor=anchor, class_=kind)


def _labelled(ticks: list[float]) -> list[tuple[float, str]]:
    return list(zip(ticks, labels(ticks), strict=True))

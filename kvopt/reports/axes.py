"""Axes of a chart: scales, round ticks, and the frame around what is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from kvopt.reports.html import Markup, join, number, tag

_LOGARITHMIC_TICKS = ((1, 1.2, 1.5, 2, 3, 4, 5, 7), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))


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
        inside: list[float] = []
        for steps in _LOGARITHMIC_TICKS:
            inside = [
                value for value in self._powers_times(steps) if self.low <= value <= self.high
            ]
            if len(inside) <= most:
                break
        return inside

    def _powers_times(self, steps: tuple[float, ...]) -> Iterable[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        return (round(10.0**power * step, 12) for power in range(first, last + 1) for step in steps)


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
    """Return labels, all with as many places as the value that needs most of them."""
    values = list(values)
    places = next(
        n for n in range(13) if n == 12 or all(math.isclose(round(v, n), v) for v in values)
    )
    return [f"{value:,.{places}f}" for value in values]


@dataclass(frozen=True, slots=True)
class Frame:
    """The room of a chart, with a scale for each direction."""

    width: float
    height: float
    x: Scale
    y: Scale

    def named(self, scale: Scale, ticks: list[float]) -> list[tuple[float, str]]:
        """Return ticks with labels; those of a logarithmic scale have places of their own."""
        if scale.logarithmic:
            return [(value, labels([value])[0]) for value in ticks]
        return list(zip(ticks, labels(ticks), strict=True))

    def bottom(self, ticks: list[float], title: str) -> Markup:
        """Return ticks and title below."""
        base = max(self.y.start, self.y.end)
        marks = join(*(self._below(self.x.at(v), base, t) for v, t in self.named(self.x, ticks)))
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
            for v, t in self.named(self.y, ticks)
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

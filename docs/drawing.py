"""A little SVG: marks with names for colours, which differ on light and on dark pages.

A picture carries its own paper, so that it stays readable where a viewer knows no dark mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from kvopt import Schedule

COLOURS = {  # on a light page, on a dark one
    "paper": ("#fcfcfa", "#1b1f24"),
    "ink": ("#1f2430", "#e4e7eb"),
    "quiet": ("#555b66", "#a6aeb8"),
    "line": ("#c9c9c4", "#454c55"),
    "limit": ("#b3261e", "#ff8a80"),
    "blue": ("#9fc3e8", "#7fb0e0"),
    "sand": ("#f3cf8e", "#e2b25f"),
    "green": ("#b9ddb0", "#8cc47f"),
    "rose": ("#eebdc9", "#dd94a7"),
    "violet": ("#cfc0ea", "#ab98d8"),
    "teal": ("#a8dcd4", "#74bfb4"),
    "stone": ("#d9d7ce", "#8d9299"),
}

HUES = ("blue", "sand", "green", "rose", "violet", "teal")
"""Colours of things side by side, such as requests; text on them is dark on every page."""

THICK = ' stroke-width="2.5"'


def _style() -> str:
    def rules(which: int) -> str:
        return "".join(
            f".{name}{{fill:{pair[which]}}}.{name}-edge{{stroke:{pair[which]}}}"
            for name, pair in COLOURS.items()
        )

    steady = "text{font-size:14px}.small{font-size:12px}.bold{font-weight:bold}.on{fill:#1f2430}"
    return f"{steady}{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@dataclass
class Picture:
    """An SVG of a size in pixels, with what is drawn so far."""

    width: int
    height: int
    title: str
    marks: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, words: object, look: str = "ink", anchor: str = "start"
    ) -> None:
        """Write words; ``look`` is a colour, with ``small`` or ``bold`` beside it."""
        place = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"'
        self.marks.append(f'<text {place} class="{look}">{escape(str(words))}</text>')

    def heading(self, x: float, words: str, told: str, look: str = "quiet") -> None:
        """Write what a part of the picture shows, and a smaller line below."""
        self.text(x, 34, words, "ink bold")
        self.text(x, 54, told, f"{look} small")

    def box(self, x: float, y: float, width: float, height: float, look: str) -> None:
        """Draw a rectangle."""
        size = f'width="{_number(width)}" height="{_number(height)}"'
        self.marks.append(f'<rect x="{_number(x)}" y="{_number(y)}" {size} class="{look}"/>')

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """Draw a thick line around a rectangle."""
        right, low = x + width, y + height
        self.path([(x, y), (right, y), (right, low), (x, low), (x, y)], "limit-edge", rest=THICK)

    def path(self, points: Sequence[tuple[float, float]], look: str, *, rest: str = "") -> None:
        """Draw straight lines from point to point; ``rest`` are more attributes."""
        corners = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        fill = "" if look.split()[0] in COLOURS else ' fill="none"'
        self.marks.append(f'<polyline points="{corners}" class="{look}"{fill}{rest}/>')

    def dashed(self, points: Sequence[tuple[float, float]], look: str) -> None:
        """Draw a dashed line."""
        self.path(points, look, rest=' stroke-width="2" stroke-dasharray="7 5"')

    def dot(self, x: float, y: float, look: str, radius: float = 5) -> None:
        """Draw a disc."""
        self.marks.append(
            f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" class="{look}"/>'
        )

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Draw a line with a point at its end, across or upright."""
        (x0, y0), (x1, y1) = start, end
        along = (x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0)
        self.path([start, end], "quiet-edge")
        wings = [
            (x1 - 7 * along[0] + 4 * side * along[1], y1 - 7 * along[1] + 4 * side * along[0])
            for side in (1, -1)
        ]
        self.path([*wings[:1], end, *wings[1:]], "quiet quiet-edge")

    def svg(self) -> str:
        """Return the file."""
        size = f'viewBox="0 0 {self.width} {self.height}"'
        paper = f'width="{self.width - 1}" height="{self.height - 1}" rx="10"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} width="{self.width}" '
                'role="img" font-family="system-ui, sans-serif">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{_style()}</style>",
                f'<rect x="0.5" y="0.5" {paper} class="paper line-edge"/>',
                *self.marks,
                "</svg>\n",
            ]
        )


@dataclass(frozen=True)
class Plane:
    """Where a chart lies: times to the right, tokens upwards."""

    picture: Picture
    left: float
    bottom: float
    per_time: float
    per_token: float

    def x(self, time: float) -> float:
        """Return where a time is."""
        return self.left + time * self.per_time

    def y(self, tokens: float) -> float:
        """Return where so many tokens are."""
        return self.bottom - tokens * self.per_token

    def axes(self, last: float, top: float, ticks: Sequence[int], label: str = "time") -> None:
        """Draw both axes, with ticks on that of time."""
        corners = [(self.left, self.y(top)), (self.left, self.bottom), (self.x(last), self.bottom)]
        self.picture.path(corners, "quiet-edge")
        for tick in ticks:
            x = self.x(tick)
            self.picture.path([(x, self.bottom), (x, self.bottom + 4)], "quiet-edge")
            self.picture.text(x, self.bottom + 18, tick, "quiet small", "middle")
        self.picture.text(self.x(last), self.bottom + 36, label, "quiet small", "end")

    def limit(self, last: float, memory: int) -> None:
        """Draw what the cache holds."""
        y = self.y(memory)
        self.picture.dashed([(self.left, y), (self.x(last), y)], "limit-edge")
        self.picture.text(self.x(last) + 6, y + 5, f"M = {memory}", "limit")

    def block(self, first: int, bottoms: Sequence[float], tops: Sequence[float], hue: str) -> None:
        """Draw what lies between two staircases; their first step ends at ``first``."""
        upper = [
            (self.x(first - 1 + j + side), self.y(top))
            for j, top in enumerate(tops)
            for side in (0, 1)
        ]
        lower = [
            (self.x(first - 1 + j + side), self.y(bottom))
            for j, bottom in enumerate(bottoms)
            for side in (0, 1)
        ]
        points = [*upper, *lower[::-1], upper[0]]
        self.picture.path(points, f"{hue} paper-edge")

    def stack(self, schedule: Schedule, labels: Sequence[str]) -> None:
        """Draw what requests hold, one upon the other, the first to start at the bottom."""
        held: dict[int, int] = {}
        instance = schedule.instance
        for i in sorted(range(len(instance)), key=lambda i: (schedule.starts[i], i)):
            request, start = instance.requests[i], schedule.starts[i]
            times = range(start + 1, start + request.output + 1)
            bottoms = [held.get(time, 0) for time in times]
            for time in times:
                held[time] = held.get(time, 0) + request.prompt + time - start
            tops = [held[time] for time in times]
            self.block(start + 1, bottoms, tops, HUES[i % len(HUES)])
            if labels[i]:
                middle = (bottoms[-1] + tops[-1]) / 2
                self.picture.text(
                    self.x(times[-1]) - 4, self.y(middle) + 4, labels[i], "on small", "end"
                )

    def count(
        self, begins: Sequence[int | None], ends: Sequence[int | None]
    ) -> list[tuple[float, float]]:
        """Return the outline of how many requests are between their begin and their end."""
        changes = sorted(
            (time, step)
            for times, step in ((begins, 1), (ends, -1))
            for time in times
            if time is not None
        )
        corners, number = [], 0
        for time, step in changes:
            x = self.x(time / 1e9)
            corners.append((x, self.y(number)))
            number += step
            corners.append((x, self.y(number)))
        return corners

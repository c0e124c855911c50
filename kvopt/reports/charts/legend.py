"""Letters that tell the schedulers of a picture apart, where colours would not on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from kvopt.reports.charts.axes import Frame, label, line
from kvopt.reports.html import Markup, tag

_GAP = 11.0
"""Distance at which two letters, one above the other, can be read."""


def letter(place: int) -> str:
    """Return A, B, ..., Z, AA, AB, ..."""
    before, last = divmod(place, len(ascii_uppercase))
    return (letter(before - 1) if before else "") + ascii_uppercase[last]


def legend(letters: Mapping[str, str], names: Sequence[str]) -> Markup:
    """Return a list that says what the letters of some names stand for."""
    order = sorted(names, key=lambda name: (len(letters[name]), letters[name]))
    items = [tag("li", tag("b", letters[name]), " ", name) for name in order]
    return tag("ul", *items, class_="legend", aria_label="Legend")


def beside(
    frame: Frame,
    points: Mapping[str, tuple[float, float]],
    letters: Mapping[str, str],
    *,
    led: bool = False,
) -> list[Markup]:
    """Put a letter right of each point, those above one another apart; lines may lead there."""
    columns: dict[int, list[tuple[str, float, float]]] = {}
    for name, point in points.items():
        x, y = frame.x.at(point[0]), frame.y.at(point[1])
        columns.setdefault(round(x / 16), []).append((letters[name], x, y))
    parts = []
    for members in columns.values():
        heights = apart([y for *_, y in members], frame.y.end, frame.y.start - 4)
        for (shown, x, y), height in zip(members, heights, strict=True):
            if led:
                parts.append(line(x + 4, y, x + 13, height, "leader"))
            parts.append(label(x + (15 if led else 6), height + 3.5, shown))
    return parts


def apart(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Move places as little as it takes to keep letters apart, from the top down."""
    gap = min(_GAP, (bottom - top) / max(len(places) - 1, 1))
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for i in order:
        moved[i] = max(moved[i], top)
        top = moved[i] + gap
    for i in reversed(order):
        moved[i] = min(moved[i], bottom)
        bottom = moved[i] - gap
    return moved

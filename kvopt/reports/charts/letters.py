"""Letters that tell the schedulers of a picture apart, where colours would not on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

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

"""Figures inside a page: SVG without styles of its own, with the colours of the page."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from html import escape
from io import StringIO
from typing import Any, ClassVar

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvopt.show.plots import style

_WIDE = 4.4
"""Width in inches: that of a phone, or of a column of a page."""
_COLOURS = {light: f"var(--{name})" for name, (light, _) in style.PALETTE.items()}
_COLOURS["#000000"] = _COLOURS[style.INK]
_KEPT = ("fill", "stroke", "opacity", "font-size", "text-anchor")
"""Beginnings of style rules that are kept; fonts are those of the page."""

Link = tuple[str, str | None]
"""Text of a point, and its link."""


class _PagePicture(style.Picture):
    look: ClassVar[Any] = {**style.Picture.look, **style.rules("page")}


def panels(*heights: float) -> tuple[Figure, list[Axes]]:
    """Return a figure for a page with panels of some inches, which share their times."""
    whole = sum(heights) + 0.3 + 0.35 * len(heights)
    figure = _PagePicture(figsize=(_WIDE, whole))
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    sides = {"left": 0.125, "right": 0.985, "top": 1 - 0.25 / whole, "bottom": 0.42 / whole}
    figure.subplots_adjust(**sides, hspace=0.35 * len(heights) / sum(heights))
    return figure, [*axes[:, 0]]


def are_uneven(ends: Collection[float]) -> bool:
    """Whether pictures end at times so different that each needs a time axis of its own."""
    return max(ends) > 3 * min(ends)


def embedded(figure: Figure, name: str, links: Sequence[Link] = ()) -> Markup:
    """Return a figure as an element of a page, with a name for readers without the picture.

    Addresses in the figure are positions among the links.
    """
    for ax in figure.axes:
        ax.set_title(ax.get_ylabel(), loc="left", fontsize=8, y=1.0)
        ax.set_ylabel("")
    stream = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style.quietly(name, **{"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    _, _, drawn = stream.getvalue().partition("<svg")
    drawn = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</defs>", "", drawn, flags=re.DOTALL)
    _, _, inside = drawn.partition(">")
    inside = re.sub(r"<[^>]*>", lambda match: _plain(match[0], links), inside)
    width, height = (72 * inches for inches in figure.get_size_inches())
    kind = f'class="chart" role="{"group" if links else "img"}" aria-label="{escape(name)}"'
    inside = re.sub(r">\s+<", "><", inside)
    return Markup(f'<svg {kind} viewBox="0 0 {width:.1f} {height:.1f}">{inside}')


def _plain(tag: str, links: Sequence[Link]) -> str:
    """Return a tag without style, and without names of groups; a link with its words."""
    if link := re.match(r'<a xlink:href="(\d+)"', tag):
        words, address = links[int(link[1])]
        href = "" if address is None else f' href="{escape(address)}"'
        return f"<a{href}><title>{escape(words)}</title>"
    tag = re.sub(r'(?<=^<g) id="[^"]*"|(?<=\.\d\d)\d+', "", tag)
    return re.sub(r"\s*\n\s*", " ", re.sub(r' style="([^"]*)"', _attributes, tag))


def _attributes(match: re.Match[str]) -> str:
    rules = (rule.strip().partition(": ") for rule in match[1].split(";"))
    kept = [(name, value) for name, _, value in rules if name.startswith(_KEPT)]
    return "".join(f' {name}="{_COLOURS.get(value, value)}"' for name, value in kept)

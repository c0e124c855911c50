"""Figures inside a page: SVG without styles of its own, whose colours are those of the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from io import StringIO

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kvopt.show.plots import style

_WIDE = 4.4
"""Inches, so that a figure is as wide as a phone, or a column of a page."""
_COLOURS = {light: name for name, (light, _) in style.PALETTE.items()} | {"#000000": "ink"}
_KEPT = ("fill", "stroke", "opacity", "font-size", "text-anchor")
"""Beginnings of what a style says that is kept; fonts are those of the page."""

Link = tuple[str, str | None]
"""What is said of a point, and where it leads."""


class Svg(str):
    """Text that templates take for what it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return it as it is."""
        return self


def panels(*heights: float) -> tuple[Figure, list[Axes]]:
    """Return a figure for a page with panels of some inches, which share their times."""
    whole = sum(heights) + 0.3 + 0.35 * len(heights)
    figure = Figure(figsize=(_WIDE, whole))
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
    sides = {"left": 0.125, "right": 0.985, "top": 1 - 0.25 / whole, "bottom": 0.42 / whole}
    figure.subplots_adjust(**sides, hspace=0.35 * len(heights) / sum(heights))
    return figure, [*axes[:, 0]]


def embedded(figure: Figure, name: str, links: Sequence[Link] = ()) -> Svg:
    """Return a figure as an element of a page, with a name for readers without the picture.

    The address of a thing in the figure is a position among the links.
    """
    for ax in figure.axes:
        ax.tick_params(which="both", labelsize=8, bottom=False, left=False)
        ax.set_title(ax.get_ylabel(), loc="left", fontsize=8, y=1.0)
        ax.set_ylabel("")
        ax.xaxis.label.set_fontsize(8)
        ax.spines[["top", "right"]].set_visible(False)
    stream = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style.quietly(name, **{"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    _, _, drawn = stream.getvalue().partition("<svg")
    drawn = re.sub(r"<!--.*?-->|<defs>\s*<style.*?</defs>", "", drawn, flags=re.DOTALL)
    _, _, inside = drawn.partition(">")
    inside = re.sub(r"<[^>]*>", lambda found: _plain(found[0], links), inside)
    width, height = (72 * inches for inches in figure.get_size_inches())
    kind = f'class="chart" role="{"group" if links else "img"}" aria-label="{escape(name)}"'
    inside = re.sub(r">\s+<", "><", inside)
    return Svg(f'<svg {kind} viewBox="0 0 {width:.1f} {height:.1f}">{inside}')


def _plain(tag: str, links: Sequence[Link]) -> str:
    """Return a tag without style, and without names of groups; a link with its words."""
    if found := re.match(r'<a xlink:href="(\d+)"', tag):
        said, address = links[int(found[1])]
        href = "" if address is None else f' href="{escape(address)}"'
        return f"<a{href}><title>{escape(said)}</title>"
    if tag.startswith("<g "):
        tag = re.sub(r' id="[^"]*"', "", tag)
    tag = re.sub(r' style="([^"]*)"', _attributes, tag)
    tag = re.sub(r"#[0-9a-f]{6}\b", lambda found: _variable(found[0]), tag)
    return re.sub(r"\s*\n\s*", " ", re.sub(r"(\.\d\d)\d+", r"\1", tag))


def _attributes(found: re.Match[str]) -> str:
    rules = (rule.strip().partition(": ") for rule in found[1].split(";"))
    return "".join(f' {name}="{value}"' for name, _, value in rules if name.startswith(_KEPT))


def _variable(colour: str) -> str:
    return f"var(--{_COLOURS[colour]})" if colour in _COLOURS else colour

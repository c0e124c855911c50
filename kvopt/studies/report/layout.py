"""Layout of a page: the macros of ``pieces.html``, and formats of numbers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from kvopt.show.summary import counted, percent
from kvopt.studies.intervals import Interval, four_digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from kvopt.show.plots.embedding import Link, embedded
from kvopt.show.plots.style import MARKERS, policy

UNKNOWN = Interval(None, None)

BOUND = ("bound", "╌", "proved bound")
OPTIMUM = ("optimum", "█", "optimum")
"""Entries of a legend: a colour, a sign in the form of the drawing, and words."""


def sign(place: int, name: str) -> tuple[str, str, str]:
    """Return the entry of a scheduler in a legend; see `kvopt.show.plots.style.policy`."""
    return f"policy-{place % 5}", MARKERS[policy(place)["marker"]], name


class Cell(NamedTuple):
    """Text of a table cell, and the value by which it is sorted; None comes last."""

    said: object
    value: float | Fraction | None


def _cell(value: object) -> Cell:
    """Return a value as a cell: thousands apart, four digits of a fraction, a dash for unknown."""
    match value:
        case Cell():
            return value
        case Interval():
            return Cell("-" if value == UNKNOWN else value, value.least)
        case int():
            return Cell(f"{value:,}", value)
        case float():
            return Cell(four_digits(value), value)
        case None:
            return Cell("-", None)
    return Cell(value, None)


def _visible(value: object) -> object:
    """Escape characters that a page cannot hold, such as control characters."""
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in value)


def _digest(text: str) -> str:
    """Return the digest by which a content security policy allows a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    finalize=_visible,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.globals.update(counted=counted)
ENVIRONMENT.filters.update(
    cell=_cell,
    digest=_digest,
    percent=percent,
    thousands="{:,.0f}".format,
    sortable=lambda value: "" if value is None else f"{float(value):.9g}",
)


class _Pieces(Protocol):
    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


pieces = cast(_Pieces, ENVIRONMENT.get_template("pieces.html").module)
"""Functions that give markup: ``table``, ``cards``, ``figure``, ``gallery``, ``unfolded``, ..."""


def picture(
    title: str,
    figure: Figure,
    name: str,
    said: str | None = None,
    *,
    links: Sequence[Link] = (),
    legend: Sequence[tuple[str, str, str]] = (),
    more: str = "",
) -> Markup:
    """Return a figure with a title, a line, a text for screen readers, and a legend."""
    return pieces.figure(title, said, embedded(figure, name, links), legend, more)

"""Pages: the macros of ``pieces.html``, formats of numbers, and the context of a study's page."""

from __future__ import annotations

import base64
import hashlib
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from matplotlib.figure import Figure

from kvopt.show.plots.embedding import Link, embedded
from kvopt.show.plots.style import MARKERS, PALETTE, policy
from kvopt.show.summary import counted, percent
from kvopt.studies.ratio_intervals import Interval, four_digits
from kvopt.studies.report.findings import Checked, Findings
from kvopt.version import __version__

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("sections.toml").read_text(encoding="utf-8")
)
"""The sections by name, which is an address on the page, in the order of the page."""

BOUND = ("bound", "╌", "proved bound")
OPTIMUM = ("optimum", "█", "optimum")
"""Entries of a legend: a colour, a sign in the form of the drawing, and words."""


def sign(place: int, name: str) -> tuple[str, str, str]:
    """Return the entry of a scheduler in a legend; see `kvopt.show.plots.style.policy`."""
    return f"policy-{place % 5}", MARKERS[policy(place)["marker"]], name


class Cell(NamedTuple):
    """Text of a table cell, and the value by which it is sorted; None comes last."""

    text: object
    value: float | Fraction | None


def _cell(value: object) -> Cell:
    """Return a value as a cell: thousands apart, four digits of a fraction, a dash for unknown."""
    match value:
        case Cell():
            return value
        case Interval():
            return Cell("-" if value == Interval(None, None) else value, value.lower)
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


Sections = Iterable[tuple[str, tuple[str, str]]]
"""Address, title and content of each section of a page."""


def rendered(kind: str, name: str, title: str | None, sections: Sections, source: str) -> str:
    """Return a page: its kind, name and title, its sections, and what it is made from."""
    return ENVIRONMENT.get_template("page.html").render(
        kind=kind,
        name=name,
        title=title,
        sections=dict(sections),
        source=source,
        palette=PALETTE,
        version=__version__,
    )


class _Pieces(Protocol):
    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


pieces = cast(_Pieces, ENVIRONMENT.get_template("pieces.html").module)
"""Functions that give markup: ``table``, ``cards``, ``figure``, ``gallery``, ``unfolded``, ..."""


def picture(
    title: str,
    figure: Figure,
    name: str,
    line: str | None = None,
    *,
    links: Sequence[Link] = (),
    legend: Sequence[tuple[str, str, str]] = (),
    more: str = "",
) -> Markup:
    """Return a figure with a title, a line, a text for screen readers, and a legend."""
    return pieces.figure(title, line, embedded(figure, name, links), legend, more)


@dataclass(frozen=True)
class Context:
    """A study and the page about it, which will lie in the folder ``home``.

    ``csv`` is the path of the table; ``checked`` has verdicts if certificates were verified.
    """

    study: Findings
    home: Path
    csv: Path | None
    checked: Checked | None = None

    def address(self, path: Path) -> str:
        """Return the relative address of a file, safe in an attribute and free of any scheme."""
        relative = os.path.relpath(os.path.realpath(path), os.path.realpath(self.home))
        return quote(os.fsencode(relative).replace(os.sep.encode(), b"/"))

    def certificate(self, path: str | None) -> str | None:
        """Return the address of a certificate, or None if it does not exist."""
        return self.address(self.study.folder / path) if path and self.study.has(path) else None

    def link(self, path: str | None, words: str = "certificate") -> Markup:
        """Return a link to a certificate, or the text that none exists."""
        trouble = "no certificate" if path is None else f"missing: {path}"
        return pieces.link(self.certificate(path), words, trouble)

    def text(self, name: str) -> str:
        """Return the text above a section, on the clock of the study."""
        row = TEXTS[name]
        return str(row.get("seconds" if self.study.in_seconds else "said", row["said"]))

    def gallery(self, name: str, drawn: Mapping[str, Sequence[Markup]]) -> str:
        """Return the pictures of each family below the text of a section, empty without any."""
        row, shown = TEXTS[name], {family: figures for family, figures in drawn.items() if figures}
        if not shown:
            return ""
        return pieces.gallery(self.text(name), shown, row.get("legend"), row.get("wide"))

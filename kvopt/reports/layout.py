"""What sections are put together from: tables, figures, and words that unfold."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files

from kvopt.reports.html import Markup, Node, breakable, join, tag
from kvopt.reports.registry import Charts, Section

_SHOWN = 12
"""Pictures of a family that are shown at once; the others unfold."""


def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("kvopt.reports").joinpath(name).read_text(encoding="utf-8")


def said_of(section: str) -> str:
    """Return what the page says of a section that is built in."""
    return " ".join(_notes()[section].split())


@cache
def _notes() -> dict[str, str]:
    return tomllib.loads(asset("notes.toml"))


def figure(title: str, said: str | None, picture: Markup) -> Markup:
    """Return a picture with a title and a line below it."""
    words = join(tag("strong", title), tag("span", said) if said else None)
    return tag("figure", tag("figcaption", words), picture)


def gallery(
    title: str,
    note: Node,
    figures: Iterable[Markup | None],
    kind: str = "figures wide",
    charts: Charts | None = None,
) -> Section | None:
    """Return a section of pictures, up to one a family; None where there are none."""
    drawn = [each for each in figures if each is not None]
    body = join(tag("p", note), tag("div", *drawn, class_=kind))
    return Section(title, body, charts or {}) if drawn else None


def by_family(
    title: str, note: Node, figures: Mapping[str, Sequence[Markup]], charts: Charts | None = None
) -> Section | None:
    """Return a section of pictures under a heading for each family; None where there are none."""
    parts = [tag("p", note)]
    for family, found in figures.items():
        if found and len(figures) > 1:
            parts.append(tag("h3", family))
        if found:
            parts.append(tag("div", *found[:_SHOWN], class_="figures"))
        if rest := found[_SHOWN:]:
            parts.append(unfolded(f"{len(rest)} more", tag("div", *rest, class_="figures")))
    return Section(title, join(*parts), charts or {}) if any(figures.values()) else None


def unfolded(title: str, *children: Node) -> Markup:
    """Return what a reader may unfold; on paper it is unfolded."""
    return tag("details", tag("summary", title), *children)


def listed(items: Sequence[Node], most: int) -> Markup:
    """Return a list of which the first few are shown at once, and the others unfold."""
    lines = [tag("li", item) for item in items]
    first, rest = lines[:most], lines[most:]
    more = unfolded(f"{len(rest)} more", tag("ul", *rest)) if rest else None
    return join(tag("ul", *first), more)


def table(
    caption: str, head: Sequence[Node], rows: Sequence[Sequence[Markup]], name: str, words: int = 1
) -> Markup:
    """Return a table that scrolls in a box of its own where the page is too narrow.

    A heading sorts its column when it is pressed: the first ``words`` as text, the others as
    numbers.
    """
    columns = []
    for place, title in enumerate(head):
        kind = "text" if place < words else "number"
        button = tag("button", title, type="button")
        columns.append(tag("th", button, scope="col", aria_sort="none", data_kind=kind))
    box = tag(
        "table",
        # The words of the caption stay in view while the table is scrolled.
        tag("caption", tag("span", caption)),
        tag("thead", tag("tr", *columns)),
        tag("tbody", *(tag("tr", *row) for row in rows)),
    )
    return tag("div", box, class_="scroll", tabindex=0, role="region", aria_label=name)


def named(policy: str) -> Markup:
    """Return the heading of a row that is about a scheduler."""
    return tag("th", breakable(policy, ":,{"), scope="row")


def cell(shown: Node, value: float | Fraction | None) -> Markup:
    """Return a cell that is sorted by a value; what is unknown comes last."""
    return tag("td", shown, data_value="" if value is None else f"{float(value):.9g}")


def count(value: int) -> Markup:
    """Return a cell with a whole number."""
    return cell(f"{value:,}", value)


def cards(caption: Node, head: Sequence[str], rows: Sequence[Sequence[Node]]) -> Markup:
    """Return a table of words whose rows become cards where the page is narrow.

    A browser may take a table that is laid out as blocks for none; the roles say it is one.
    """
    names = [tag("th", name, scope="col", role="columnheader") for name in head]
    body = []
    for first, *rest in rows:
        cells = [tag("th", first, scope="row", role="rowheader")]
        for name, said in zip(head[1:], rest, strict=True):
            cells.append(tag("td", tag("div", said), role="cell", data_label=name))
        body.append(tag("tr", *cells, role="row"))
    parts = [
        tag("caption", caption),
        tag("thead", tag("tr", *names, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
    ]
    return tag("table", *parts, class_="cards", role="table")

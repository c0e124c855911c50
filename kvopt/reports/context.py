"""What every section of a report is made from, and what it gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kvopt.reports.checking import Checked
from kvopt.reports.html import Markup, Node, join, tag
from kvopt.reports.legend import letter
from kvopt.reports.study import Study
from kvopt.reports.summaries import Group, groups

_SHOWN_LINKS = 4
"""Certificates of a verdict that are listed at once; the others unfold."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its place in the address, its heading, its content and its points."""

    place: str
    title: str
    body: Markup
    charts: dict[str, list[list[Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """A study and the page about it.

    Parameters
    ----------
    study
        The study.
    home
        The folder in which the page will lie.
    csv
        Where the table goes.
    checked
        What became of the certificates, where they were verified.
    """

    study: Study
    home: Path
    csv: Path | None
    checked: Checked | None = None

    @cached_property
    def groups(self) -> list[Group]:
        """Runs by family and policy."""
        return groups(self.study)

    @cached_property
    def families(self) -> list[str]:
        """Families in the order of the page."""
        return list(dict.fromkeys(group.family for group in self.groups))

    @cached_property
    def letters(self) -> dict[str, str]:
        """A letter for each scheduler, the same in all pictures."""
        names = dict.fromkeys(group.label for group in self.groups)
        return {name: letter(place) for place, name in enumerate(names)}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Names of the instances that certificates are about."""
        records = self.study.records
        return {r.certificate: r.instance.name for r in records if r.certificate is not None}

    def address(self, path: Path) -> str:
        """Return the relative address of a file, safe in an attribute and free of any scheme."""
        relative = os.path.relpath(os.path.realpath(path), os.path.realpath(self.home))
        return quote(os.fsencode(relative).replace(os.sep.encode(), b"/"))

    def certificate(self, path: str | None) -> str | None:
        """Return the address of a certificate, None when it is not there."""
        if path is None or not self.study.has(path):
            return None
        return self.address(self.study.folder / path)

    def link(self, path: str | None, shown: str = "certificate") -> Markup:
        """Return a link to a certificate, or words that there is none."""
        address = self.certificate(path)
        if address is not None:
            return tag("a", shown, href=address)
        return tag("span", "no certificate" if path is None else f"missing: {path}", class_="bad")

    def links(self, paths: Sequence[str]) -> Markup:
        """Return links to certificates, the first few at once."""
        names = self._names
        items = [tag("li", self.link(path, names.get(path, Path(path).name))) for path in paths]
        first, rest = items[:_SHOWN_LINKS], items[_SHOWN_LINKS:]
        if not items:
            return Markup("none")
        more = unfolded(f"{len(rest)} more", tag("ul", *rest)) if rest else None
        return join(tag("ul", *first), more)


def unfolded(title: str, *children: Node) -> Markup:
    """Return what a reader may unfold; on paper it is unfolded."""
    return tag("details", tag("summary", title), *children)


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def table(caption: Node, head: Sequence[Markup], rows: Sequence[Markup], name: str) -> Markup:
    """Return a table that scrolls in a box of its own where the page is too narrow."""
    # The words of the caption stay in view while the table is scrolled.
    words = tag("caption", tag("span", caption))
    parts = words, tag("thead", tag("tr", *head)), tag("tbody", *rows)
    box = tag("table", *parts)
    return tag("div", box, class_="scroll", tabindex=0, role="region", aria_label=name)


def cards(caption: Node, head: Sequence[str], rows: Sequence[Sequence[Node]]) -> Markup:
    """Return a table of words whose rows become cards where the page is narrow.

    A browser may take a table that is laid out as blocks for none; the roles say it is one.
    """
    names = [tag("th", name, scope="col", role="columnheader") for name in head]
    body = [
        tag(
            "tr",
            tag("th", cells[0], scope="row", role="rowheader"),
            *(
                tag("td", tag("div", cell), role="cell", data_label=name)
                for name, cell in zip(head[1:], cells[1:], strict=True)
            ),
            role="row",
        )
        for cells in rows
    ]
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *names, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        class_="cards",
        role="table",
    )


def column(title: Node, sort: str) -> Markup:
    """Return a heading that sorts its column when pressed, as ``number`` or as ``text``."""
    button = tag("button", title, type="button")
    return tag("th", button, scope="col", aria_sort="none", data_kind=sort)

"""Input, output and registration of report sections."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kvopt.errors import InvalidInput, shown
from kvopt.experiments.report.layout import pieces
from kvopt.experiments.report.study import Checked, Family, Study, families
from kvopt.experiments.studies.intervals import Runs
from kvopt.kernels.registry import Registry

if TYPE_CHECKING:
    from markupsafe import Markup

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("sections.toml").read_text(encoding="utf-8")
)
"""The built-in sections by name in the order of the page, with their texts."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    title, body
        Its heading and its content; text is escaped, markup is not.
    after
        The built-in section that a section of your own follows.
    """

    title: str
    body: str
    after: str = "worst"


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
        Path of the table.
    checked
        Verdicts of the certificates, if they were verified.
    """

    study: Study
    home: Path
    csv: Path | None
    checked: Checked | None = None

    @cached_property
    def families(self) -> list[Family]:
        """Families in the order of the page."""
        return families(self.study)

    @cached_property
    def groups(self) -> list[Runs]:
        """Runs by family and policy."""
        return [group for family in self.families for group in family.groups]

    @cached_property
    def looks(self) -> dict[str, int]:
        """The place of each scheduler, which gives it one colour and marker in all pictures."""
        return {name: i for i, name in enumerate(dict.fromkeys(g.policy for g in self.groups))}

    def address(self, path: Path) -> str:
        """Return the relative address of a file, safe in an attribute and free of any scheme."""
        relative = os.path.relpath(os.path.realpath(path), os.path.realpath(self.home))
        return quote(os.fsencode(relative).replace(os.sep.encode(), b"/"))

    def certificate(self, path: str | None) -> str | None:
        """Return the address of a certificate, or None if it does not exist."""
        return self.address(self.study.folder / path) if path and self.study.has(path) else None

    def link(self, path: str | None, said: str = "certificate") -> Markup:
        """Return a link to a certificate, or the text that none exists."""
        trouble = "no certificate" if path is None else f"missing: {path}"
        return pieces.link(self.certificate(path), said, trouble)

    def said(self, name: str) -> str:
        """Return the text above a built-in section, on the clock of the study."""
        row = TABLE[name]
        return str(row.get("seconds" if self.study.in_seconds else "said", row["said"]))


Make = Callable[[Context], Section | None]
Body = Callable[[Context], str]
Draw = Callable[[Context, Family], "Sequence[Markup]"]

SECTIONS: Registry[Make] = Registry(
    "section",
    "kvopt.sections",
    {name: f"kvopt.experiments.report.sections.{row['module']}" for name, row in TABLE.items()},
    "context",
    Section | None,
)
"""Functions that make a section, or None without data.  A name is an address on the page."""

register = SECTIONS.register
"""Register a section under a name; a decorator."""

_TAKEN = "content"
"""An address on the page other than a section."""


def section(name: str, *, led: bool = False) -> Callable[[Body], Make]:
    """Return a decorator for the function that makes a built-in section, empty without data.

    The text of the section leads it, unless the function writes it somewhere else.
    """

    def add(make: Body) -> Make:
        @register(name)
        @wraps(make)
        def whole(context: Context) -> Section | None:
            body = make(context)
            said = pieces.paragraphs([context.said(name)]) if led else ""
            return Section(TABLE[name]["title"], said + body) if body else None

        return whole

    return add


def pictures(name: str) -> Callable[[Draw], Make]:
    """Return a decorator for the function that draws a family in a built-in section."""

    def add(draw: Draw) -> Make:
        @wraps(draw)
        def whole(context: Context) -> str:
            return gallery(name, context, {f.name: draw(context, f) for f in context.families})

        return section(name)(whole)

    return add


def gallery(name: str, context: Context, drawn: Mapping[str, Sequence[Markup]]) -> str:
    """Return the pictures of each family below their text, empty without any."""
    row, known = TABLE[name], {family: found for family, found in drawn.items() if found}
    legend, is_wide = row.get("legend"), row.get("wide")
    return pieces.gallery(context.said(name), known, legend, is_wide) if known else ""


def sections_of(context: Context) -> dict[str, Section]:
    """Return the sections of a page by name, in order, without those that have no data.

    Sections of users follow the built-in section that they name, sorted by name.
    """
    places = {name: place for place, name in enumerate(TABLE)}
    made: list[tuple[int, bool, str, Section]] = []
    found = SECTIONS.all().items()
    for name, make in sorted(found, key=lambda each: each[0] in places):  # users' own may fail
        section = make(context)
        if name == _TAKEN:
            reason = "is taken by the page: write another name"
            raise InvalidInput(reason, field=f"section {name}")
        if section is not None:
            if section.after not in places:
                reason = f"after: must be one of {', '.join(places)}, got {shown(section.after)}"
                raise InvalidInput(reason, field=f"section {name}")
            place = places.get(name, places[section.after])
            made.append((place, name not in places, name, section))
    return {name: section for *_, name, section in sorted(made, key=itemgetter(0, 1, 2))}

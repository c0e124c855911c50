"""A study and the page about it, for the functions that make its sections."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kvopt.studies.intervals import Runs
from kvopt.studies.report.layout import pieces
from kvopt.studies.report.study import Checked, Family, Study, families

if TYPE_CHECKING:
    from markupsafe import Markup

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("sections.toml").read_text(encoding="utf-8")
)
"""The sections by name, which is an address on the page, in the order of the page."""


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
        """Return the text above a section, on the clock of the study."""
        row = TEXTS[name]
        return str(row.get("seconds" if self.study.in_seconds else "said", row["said"]))

    def gallery(self, name: str, drawn: Mapping[str, Sequence[Markup]]) -> str:
        """Return the pictures of each family below the text of a section, empty without any."""
        row, known = TEXTS[name], {family: shown for family, shown in drawn.items() if shown}
        return (
            pieces.gallery(self.said(name), known, row.get("legend"), row.get("wide"))
            if known
            else ""
        )

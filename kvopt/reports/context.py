"""What every section of a report is made from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from kvopt.reports.charts.letters import letter
from kvopt.reports.checking import Checked
from kvopt.reports.html import Markup, tag
from kvopt.reports.study import Study
from kvopt.reports.summaries import Family, Group, families


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
    def families(self) -> list[Family]:
        """Families in the order of the page."""
        return families(self.study)

    @cached_property
    def groups(self) -> list[Group]:
        """Runs by family and policy."""
        return [group for family in self.families for group in family.groups]

    @cached_property
    def letters(self) -> dict[str, str]:
        """A letter for each scheduler, the same in all pictures."""
        names = dict.fromkeys(group.label for group in self.groups)
        return {name: letter(place) for place, name in enumerate(names)}

    def address(self, path: Path) -> str:
        """Return the relative address of a file, safe in an attribute and free of any scheme."""
        relative = os.path.relpath(os.path.realpath(path), os.path.realpath(self.home))
        return quote(os.fsencode(relative).replace(os.sep.encode(), b"/"))

    def certificate(self, path: str | None) -> str | None:
        """Return the address of a certificate, None when it is not there."""
        return self.address(self.study.folder / path) if path and self.study.has(path) else None

    def link(self, path: str | None, shown: str = "certificate") -> Markup:
        """Return a link to a certificate, or words that there is none."""
        address = self.certificate(path)
        if address is not None:
            return tag("a", shown, href=address)
        return tag("span", "no certificate" if path is None else f"missing: {path}", class_="bad")

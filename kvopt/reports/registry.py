"""What sections of a report are made from, what they give, and how they are registered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kvopt.errors import InvalidInput, shown
from kvopt.kernels.registry import Registry
from kvopt.reports.charts.legend import letter
from kvopt.reports.checking import Checked
from kvopt.reports.html import Markup, tag
from kvopt.reports.study import Study
from kvopt.reports.summaries import Family, Group, families

Charts = dict[str, list[list[Any]]]
"""Points of charts, each with its place and words, for the script of the page."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    title, body
        Its heading and its content.
    charts
        Points of its charts, by names that begin with that of the section.
    after
        The built-in section behind which one's own stands.
    """

    title: str
    body: Markup
    charts: Charts = field(default_factory=dict)
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


Make = Callable[[Context], Section | None]

_MODULES = {
    "overview": "overview",
    "verdicts": "overview",
    "by-memory": "axes",
    "by-rate": "axes",
    "by-workers": "axes",
    "latency": "seconds",
    "worth": "worth",
    "schedulers": "schedulers",
    "ranking": "schedulers",
    "histograms": "schedulers",
    "runs": "sizes",
    "gaps": "sizes",
    "volume": "axes",
    "evictions": "latencies",
    "deadlines": "deadlines",
    "memory": "seconds",
    "worst": "worst",
    "failures": "closing",
    "provenance": "closing",
}
"""Built-in sections in the order of the page, and the modules that register them."""

SECTIONS: Registry[Make] = Registry(
    "section",
    "kvopt.sections",
    {name: f"kvopt.reports.sections.{module}" for name, module in _MODULES.items()},
    "context",
    Section | None,
)
"""Functions that make a section, or None without data.  A name is an address on the page."""

register = SECTIONS.register
"""Make a section known by a name; a decorator."""

_TAKEN = {"content", "cross", "data", "hatch", "tip"}
"""Addresses on the page that are no sections."""


def sections_of(context: Context) -> dict[str, Section]:
    """Return the sections of a page by name, in order, without those that have no data.

    One's own stand behind the built-in section that they name, and behind the same one by name.
    """
    places = {name: place for place, name in enumerate(SECTIONS.built_in)}
    made: list[tuple[int, str, Section]] = []
    charts: set[str] = set()
    for name, make in SECTIONS.all().items():
        section = make(context) if name in places else _own(name, make, context, charts)
        if section is not None:
            charts |= section.charts.keys()
            made.append((places.get(name, places[section.after]), name, section))
    made.sort(key=lambda each: (each[0], each[1] not in places, each[1]))
    return {name: section for _, name, section in made}


def _own(name: str, make: Make, context: Context, charts: set[str]) -> Section | None:
    """Return a section of others; whatever they do wrong is one line that names it."""
    section, reason = make(context), None
    if name in _TAKEN:
        reason = "is taken by the page: write another name"
    elif section is None:
        pass
    elif section.after not in SECTIONS.built_in:
        known = ", ".join(SECTIONS.built_in)
        reason = f"after: must be one of {known}, got {shown(section.after)}"
    elif fault := _chart_fault(section.charts):
        reason = f"charts: {fault}"
    elif twice := sorted(charts & section.charts.keys()):
        reason = f"charts: {twice[0]} is of another section: write another name"
    if reason:
        raise InvalidInput(reason, field=f"section {name}")
    return section


def _chart_fault(charts: object) -> str | None:
    """Return why the page's script could not read charts, None where it can."""
    if not isinstance(charts, dict) or not all(isinstance(name, str) for name in charts):
        return f"must be lists of points by name, got {shown(charts)}"
    for name, points in charts.items():
        try:
            json.dumps(points, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            return f"{name} is no JSON: {error}"
        if not isinstance(points, list) or not all(isinstance(point, list) for point in points):
            return f"{name} must be a list of lists, got {shown(points)}"
    return None

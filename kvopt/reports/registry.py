"""Sections of a report by name: what stands on the page, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb

from kvopt.errors import InvalidInput, shown
from kvopt.kernels.registry import Registry
from kvopt.reports.context import Context
from kvopt.reports.layout import Section

Make = Callable[[Context], Section | None]

_MODULES = {
    "overview": ("overview", "verdicts"),
    "latency": ("latency",),
    "schedulers": ("schedulers", "ranking", "histograms"),
    "sizes": ("runs", "gaps"),
    "volume": ("volume",),
    "evictions": ("evictions",),
    "memory": ("memory",),
    "worst": ("worst",),
    "closing": ("failures", "provenance"),
}
"""Modules and the sections that each registers, in the order of the page."""

SECTIONS: Registry[Make] = Registry(
    "section",
    "kvopt.sections",
    {
        name: f"kvopt.reports.sections.{module}"
        for module, names in _MODULES.items()
        for name in names
    },
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
    section, reason = None, None
    if name in _TAKEN:
        reason = "is taken by the page: write another name"
    else:
        try:
            section = make(context)
        except Exception as error:
            last = extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}, line {last.lineno}"
            reason = f"cannot be made: {type(error).__name__}: {error} ({where})"
    if section is not None and not isinstance(section, Section):
        reason = f"must be a Section or None, got {shown(section)}: write return Section(...)"
    elif section is not None and section.after not in SECTIONS.built_in:
        known = ", ".join(SECTIONS.built_in)
        reason = f"after: must be one of {known}, got {shown(section.after)}"
    elif section is not None and (twice := sorted(charts & section.charts.keys())):
        reason = f"charts: {twice[0]} is of another section: write another name"
    if reason:
        raise InvalidInput(reason, field=f"section {name}")
    return section

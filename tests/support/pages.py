"""Pages of reports as a browser would read them, and studies that found something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvopt.certificates import certificate_files
from kvopt.studies.record_lines import FILE, Record, read_records
from kvopt.studies.report import write_report
from kvopt.verify import Verdict, verify

COLUMNS_OF_SCHEDULERS = 12
"""Cells in a row of the table of schedulers, which no other table has."""

_VOID = {"br", "link", "meta", "wbr"}


class Page(HTMLParser):
    """A page as a browser would read it: elements, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.handlers: list[str] = []
        self.rows: list[list[str]] = []
        self.inside: dict[str, list[str]] = {"style": [], "script": [], "pre": [], "p": []}
        self.kinds: list[str | None] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, pairs: list[tuple[str, str | None]]) -> None:
        attributes = dict(pairs)
        assert len(attributes) == len(pairs), "an attribute is given twice"
        if name not in _VOID:
            self.open.append(name)
        if name in self.inside:
            self.inside[name].append("")
        if name == "script":
            self.kinds.append(attributes.get("type"))
        if name == "tr":
            self.rows.append([])
        if name in {"td", "th"} and self.rows:
            self.rows[-1].append("")
        self.links += [link for link in [attributes.get("href")] if link is not None]
        self.ids += [name for name in [attributes.get("id")] if name is not None]
        self.loads += [key for key in attributes if key in {"src", "srcset", "action", "style"}]
        self.handlers += [key for key in attributes if key.startswith("on")]

    def handle_startendtag(self, name: str, pairs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(name, pairs)
        if name not in _VOID:  # an element of SVG
            self.open.pop()

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]][-1] += text
        if {"td", "th"} & set(self.open) and self.rows and self.rows[-1]:
            self.rows[-1][-1] += text


def page_of(folder: Path) -> Page:
    write_report(folder)
    return Page((folder / "report.html").read_text())


def rewrite(folder: Path, change: Callable[[Record], Record]) -> None:
    """Change the records of a study, as if it had found this."""
    lines = [json.dumps(change(record).to_json()) for record in read_records(folder)]
    (folder / FILE).write_text("".join(line + "\n" for line in lines))


def sketch(patch: pytest.MonkeyPatch) -> None:
    """Have reports written with the names of their pictures, and no certificate checked twice.

    To draw and to check takes most of the time; a verdict depends on the content of a file alone.
    """
    place = "kvopt.studies.report.pages.embedded"
    patch.setattr(place, lambda _, name, links=(): f"picture: {name}, {len(links)} points")
    patch.setattr(certificate_files, "checker", SimpleNamespace(verify=_verified_once))


_verdicts: dict[tuple[bytes, float | None], Verdict] = {}


def _verified_once(path: Path, budget: float | None) -> Verdict:
    key = path.read_bytes(), budget
    if key not in _verdicts:
        _verdicts[key] = verify(path, budget)
    return _verdicts[key]

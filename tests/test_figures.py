"""The pictures of docs/ are what `docs/figures.py` draws, and pages show all of them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("figures")


def test_pictures_are_what_the_script_draws(figures: Any) -> None:
    for path, content in figures.drawn():
        assert path.read_text(encoding="utf-8") == content, f"run python docs/figures.py: {path}"


def test_nothing_reaches_beyond_its_picture(figures: Any) -> None:
    for path, content in figures.drawn():
        root = ElementTree.fromstring(content)
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for mark in root:
            for x, y in corners(mark):
                assert 0 <= x <= width, (path.name, mark.attrib)
                assert 0 <= y <= height, (path.name, mark.attrib)


def corners(mark: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the corners of a mark; text is as wide as its letters, about."""
    at = mark.attrib
    if "points" in at:
        pairs = (pair.split(",") for pair in at["points"].split())
        return [(float(x), float(y)) for x, y in pairs]
    if "x" not in at:
        return []
    x, y = float(at["x"]), float(at["y"])
    if mark.text is None:
        return [(x, y), (x + float(at["width"]), y + float(at["height"]))]
    size = 6.0 if "small" in at["class"] else 7.5 if "bold" in at["class"] else 7.0
    width = size * len(mark.text)
    left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[at["text-anchor"]]
    return [(left, y), (left + width, y)]


def test_every_picture_is_shown_and_described() -> None:
    shown = set()
    for page in PAGES:
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8")):
            assert len(words) > 20, f"{page.name}: {target} says nothing to a reader who cannot see"
            shown.add((page.parent / target).resolve())
    assert shown == set((DOCS / "images").iterdir())

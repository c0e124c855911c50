"""Scripts of papers, hunts and the library use public names alone, so that they are users.

import-linter sees packages alone, and scripts are none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PUBLIC = ("kvopt", "kvopt.bounds", "kvopt.studies", "kvopt.problem.three_partition")
"""Packages and modules whose ``__all__`` is for users; ``docs/api.md`` describes each name."""
INSIDE = {"kept_draws.py", "tables.py"}
"""Scripts that pack prices of states of the tables of papers: they read proofs inside out."""
SCRIPTS = [
    path
    for folder in ("benchmarks/papers", "benchmarks/hunts", "instances")
    for path in sorted((ROOT / folder).glob("*.py"))
    if path.name not in INSIDE
]


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each module of kvopt that a script imports from, with the name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name[:5] == "kvopt")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "kvopt":
            yield from ((str(node.module), alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_import_public_names_alone(path: Path) -> None:
    private = [
        f"{module}.{name}"
        for module, name in imported(path)
        if module not in PUBLIC or (name and name not in import_module(module).__all__)
    ]
    assert private == []


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_on_the_page_of_the_api(module: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    names = [n for n in import_module(module).__all__ if n[:2] != "__"]
    assert [name for name in names if f":: {module}.{name}\n" not in page] == []

"""What a wheel and an sdist hold, and that the words about Pythons and extras agree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from environments import project
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]["kvopt"]
    files = (path for path in (ROOT / "kvopt").rglob("*") if path.is_file())
    names = {
        str(path.relative_to(ROOT / "kvopt")) for path in files if path.parent.name[:2] != "__"
    }
    data = {name for name in names if not name.endswith(".py")}
    assert data
    assert [name for name in data if not any(fnmatch(name, one) for one in patterns)] == []


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "kvopt").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_sdist_holds_what_its_tests_need() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text()
    for folder in ("benchmarks", "docs", "instances", "models", "samples", "tests"):
        assert f"graft {folder}\n" in manifest
    for name in ("Makefile", "constraints.txt", ".pre-commit-config.yaml"):
        assert (ROOT / name).exists()
        assert name in manifest


def test_pythons_of_the_classifiers_are_those_that_are_tested() -> None:
    named = [
        line.rpartition(" ")[2] for line in project()["classifiers"] if ":: Python :: 3." in line
    ]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    tested = re.search(r"python: \[(.*)\]", workflow)
    assert tested is not None
    assert re.findall(r"[\d.]+", tested[1]) == named
    assert project()["requires-python"] == f">={named[0]}"


def test_every_requirement_has_a_tested_release() -> None:
    pinned = {
        line.partition("==")[0].lower(): line.partition("==")[2]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    lists = [project()["dependencies"], *project()["optional-dependencies"].values()]
    for requirement in {Requirement(line) for lines in lists for line in lines}:
        if requirement.name != "kvopt":
            assert requirement.specifier.contains(pinned[requirement.name.lower()]), requirement


def test_files_stay_small() -> None:
    """A file that is committed stays in every clone for good; the kept prices are the exception."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = {name: ROOT / name for name in named.stdout.decode().split("\0") if name}
    sizes = {name: path.stat().st_size for name, path in files.items() if path.is_file()}
    tables = [size for name, size in sizes.items() if fnmatch(name, "instances/tables/*")]
    assert sum(tables) < 15_000_000
    assert [
        name
        for name, size in sizes.items()
        if size > 2_000_000 and not fnmatch(name, "instances/tables/*.prices.zip")
    ] == []

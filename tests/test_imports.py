"""The core stays light: nothing that solves, plots or compiles is loaded with it."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest
from importlinter.cli import lint_imports
from interpreters import printed

import kvopt

ROOT = Path(__file__).parents[1]
HEAVY = {"highspy", "matplotlib", "networkx", "numba", "numpy", "ortools", "pyomo"}
LIGHT = (
    "kvopt",
    "kvopt.problem.instance",
    "kvopt.timetable.schedule",
    "kvopt.timetable.schedule_files",
    "kvopt.incumbent.result",
    "kvopt.incumbent.incumbent",
    "kvopt.bounds.start_windows",
    "kvopt.bounds.volume",
    "kvopt.verify",
)


def test_light_modules_load_nothing_heavy() -> None:
    # Other tests fill sys.modules of this process, so a fresh one has to answer.
    modules = ", ".join(LIGHT)
    code = f"import sys, {modules}; print(*(name.partition('.')[0] for name in sys.modules))"
    loaded = printed(code)
    assert "kvopt" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_types_of_public_names_are_of_what_is_loaded() -> None:
    stub = ast.parse((ROOT / "kvopt" / "__init__.pyi").read_text())
    found = {
        alias.name: getattr(import_module(node.module or ""), alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kvopt.")
        for alias in node.names
    }
    assert sorted([*found, "__version__"]) == kvopt.__all__
    loaded = {name: getattr(kvopt, name) for name in found}
    assert loaded.pop("verify").verify is found.pop("verify")
    assert loaded == found


@pytest.mark.slow
def test_the_package_shows_its_public_names_alone() -> None:
    assert dir(kvopt) == kvopt.__all__
    assert all(hasattr(kvopt, name) for name in dir(kvopt))


def test_policies_and_families_are_listed_with_a_line_about_each() -> None:
    for listed, some in ((kvopt.list_policies(), "mc-sf"), (kvopt.list_families(), "arrival-1")):
        assert some in listed
        assert all(about and "\n" not in about for about in listed.values())
        shown = repr(listed).splitlines()
        assert [line.split()[0] for line in shown[1:]] == list(listed)
        assert listed[some] in str(listed)
        assert f'<th style="text-align:left">{some}</th>' in listed._repr_html_()


def test_imports_point_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rooms and their order stand in pyproject.toml; imports inside functions count."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0


def test_few_files_stand_at_the_root() -> None:
    assert len([*(ROOT / "kvopt").glob("*.py")]) <= 5


def test_the_verifier_stands_on_the_standard_library_alone() -> None:
    # The package that it lives in is loaded with it, and names its version: nothing else.
    code = "import sys; old = {*sys.modules}; import kvopt.verify; print(*{*sys.modules} - old)"
    loaded = printed(code)
    ours = {name for name in loaded if name.partition(".")[0] == "kvopt"}
    ours = {name for name in ours if not name.startswith("kvopt.verify.")}
    assert ours == {"kvopt", "kvopt.version", "kvopt.verify"}
    assert {name.partition(".")[0] for name in loaded} - {"kvopt"} <= sys.stdlib_module_names


def test_the_command_line_starts_without_what_single_commands_need() -> None:
    code = "import sys, kvopt.cli.app; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = printed(code)
    assert "kvopt" in loaded
    assert {"highspy", "matplotlib", "networkx", "numba", "ortools", "scipy"}.isdisjoint(loaded)

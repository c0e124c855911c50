"""Policies, routers, formats and sections by name, loaded when they are asked for."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from pathlib import Path

import pytest
from interpreters import python
from registered import REGISTRIES

from kvopt.errors import InvalidInput
from kvopt.kernels.extensions import OTHER_REGISTERS, Registry

pytestmark = pytest.mark.usefixtures("own_things")

ROOT = Path(__file__).parents[2]


def test_listing_names_loads_nothing_that_is_built_in() -> None:
    code = (
        "import sys; from registered import REGISTRIES; [r.names() for r in REGISTRIES];"
        "print(*(name.partition('.')[0] for name in sys.modules), *sys.modules)"
    )
    path = f"{ROOT}:{ROOT / 'tests' / 'support'}"
    done = python("-c", code, check=True, env={"PYTHONPATH": path})
    loaded = set(done.stdout.split())
    assert {"highspy", "numba", "ortools", "pyomo", "scipy"}.isdisjoint(loaded)
    assert "kvopt.simulate.policies.order_policies" not in loaded


def test_every_built_in_name_is_registered_by_its_module() -> None:
    for registry in REGISTRIES:
        assert set(registry.all()) >= set(registry.built_in)


def test_what_is_said_of_mistakes_names_homes_of_registers() -> None:
    homes = [word for word in OTHER_REGISTERS.split() if word.startswith("kvopt.")]
    assert len(homes) == 2
    for home in homes:
        assert callable(importlib.import_module(home).register)


def test_entry_points_are_loaded_when_a_name_is_not_built_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry: Registry[object] = Registry("thing", "kvopt.tests", {})
    module = tmp_path / "kvopt_tests_entry.py"
    module.write_text("from kvopt_tests_registry import registry\nregistry.add('mine', print)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    holder = type(sys)("kvopt_tests_registry")
    holder.__dict__["registry"] = registry
    monkeypatch.setitem(sys.modules, "kvopt_tests_registry", holder)
    entry = metadata.EntryPoint("any", "kvopt_tests_entry", "kvopt.tests")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [entry])
    assert registry.names() == ["mine"]
    assert registry.find("mine") is print


def test_an_entry_point_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    registry: Registry[object] = Registry("thing", "kvopt.tests", {})
    entry = metadata.EntryPoint("broken", "no_such_module", "kvopt.tests")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [entry])
    with pytest.raises(InvalidInput, match=r"entry point kvopt\.tests broken: cannot be loaded"):
        registry.find("mine")

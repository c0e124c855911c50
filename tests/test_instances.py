"""The instance library: every file, schedule and bound is checked again."""

from __future__ import annotations

import datetime
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from kvopt import Schedule, read_instance
from kvopt.problem.instance_files import instance_text

HERE = Path(__file__).parent.parent / "instances"
KNOWN: dict[str, dict[str, Any]] = json.loads((HERE / "best-known.json").read_text())
NAMES = sorted(path.stem for path in HERE.glob("*.json") if path.stem != "best-known")
OPTIMA = {  # the worked cases, from the papers and by hand
    "wang-example-3.1": 45,
    "chen-example-1": 5,
    "chen-example-ec.1": 12,
    "mc-sf-equal-prompts": 27,
    "mc-sf-equal-prompts-n6": 42,
    "mc-sf-no-prompts": 15,
    "short-horizon": 7,
}


def script() -> Any:
    spec = importlib.util.spec_from_file_location("extend", HERE / "extend.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_is_known_and_every_entry_has_a_file() -> None:
    assert sorted(KNOWN) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_schedule_and_bound_hold(name: str) -> None:
    instance, entry = read_instance(HERE / f"{name}.json"), KNOWN[name]
    check = Schedule(instance, entry["starts"]).check()
    assert entry["instance"] == instance.hash
    assert check.feasible, check.violations
    assert check.objective == entry["objective"]
    assert instance.total_output <= entry["lower_bound"] <= entry["objective"]
    assert entry["bound_source"] in ("checked", "solver")
    assert entry["bounded_by"]
    assert datetime.date.fromisoformat(entry["date"])


@pytest.mark.parametrize("name", OPTIMA)
def test_worked_cases_have_their_optimum(name: str) -> None:
    entry = KNOWN[name]
    assert entry["objective"] == entry["lower_bound"] == OPTIMA[name]


def test_the_script_writes_the_same_files() -> None:
    made = script().every_instance()
    assert sorted(made) == NAMES
    for name, instance in made.items():
        assert instance_text(instance) == (HERE / f"{name}.json").read_text()


def test_the_script_keeps_the_better_of_both_sides() -> None:
    module, instance = script(), read_instance(HERE / "chen-example-ec.1.json")
    poor = {
        **KNOWN["chen-example-ec.1"],
        "starts": [0, 1, 3, 6],
        "objective": 20,
        "lower_bound": 11,
        "date": "2000-01-01",
    }
    better, signal_number = module.improved(instance, poor, 20.0)
    assert signal_number is None
    assert (better["objective"], better["lower_bound"]) == (12, 12)
    again, _ = module.improved(instance, better, 20.0)
    assert {**again, "seconds": 0} == {**better, "seconds": 0}

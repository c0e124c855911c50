"""The core alone: what works without the extras, and the line that names the one to install."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import EC1
from environments import ROOT, commands, core_environment, project
from packaging.requirements import Requirement

from kvopt.show.optional import EXTRAS, remedy

STUDY = """
name = "tiny"
policies = ["mc-sf", "svf"]

[limits]
time_limit = 20

[[instances]]
family = "arrival-1"
draws = 1
n = 4
"""


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment without any extra."""
    return core_environment(tmp_path_factory.mktemp("core") / "venv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.json").write_text(json.dumps(EC1))
    (tmp_path / "study.toml").write_text(STUDY)
    shutil.copy(ROOT / "samples" / "batches.csv", tmp_path)
    return tmp_path


def test_every_extra_is_one_of_the_project() -> None:
    extras = project()["optional-dependencies"]
    for name, extra in EXTRAS.items():
        assert Requirement(extras[name][0]).name == extra.package
    assert Requirement(extras["all"][0]).extras == set(EXTRAS)
    assert "kvopt[all]" in extras["dev"]


REFUSED = {
    "plot": [
        ["plot", "a.json", "-o", "a.png"],
        ["theory", "theorem-2", "-o", "a.png"],
        ["report", "."],
    ],
    "cluster": [["study", "study.toml", "--out", "out", "--scheduler", "tcp://127.0.0.1:1"]],
}


@pytest.mark.slow
def test_what_is_missing_is_named_in_one_line(core: Path, folder: Path) -> None:
    asked = [(extra, command) for extra, all_ in REFUSED.items() for command in all_]
    answers = commands(core, [command for _, command in asked], folder)
    for (extra, command), (code, _, err) in zip(asked, answers, strict=True):
        line = f"kvopt: {EXTRAS[extra].package} is not installed: {remedy(extra)}"
        assert (code, err.splitlines()[-1]) == (2, line), command
    assert not [*folder.glob("*.png")]


@pytest.mark.slow
def test_info_says_which_extra_brings_what_is_missing(core: Path, folder: Path) -> None:
    told, facts = commands(core, [["info"], ["info", "--json"]], folder)
    assert told[0] == facts[0] == 0
    for name, extra in EXTRAS.items():
        assert f"{extra.package:15} not installed: {remedy(name)}" in told[1]
    found = json.loads(facts[1])
    assert found["missing_extras"] == [*EXTRAS]
    assert found["problem"] is None
    assert found["versions"]["matplotlib"] == "not installed"
    assert found["versions"]["ortools"] != "not installed"
    assert "highs" in found["pyomo_solvers"]


@pytest.mark.slow
def test_the_core_alone_solves_bounds_runs_certifies_and_studies(core: Path, folder: Path) -> None:
    asked = [
        ["generate", "arrival-1", "--n", "5", "-o", "b.json"],
        ["solve", "a.json", "--json", "-o", "s.json"],
        *(["solve", "a.json", "--engine", name, "--json"] for name in ("highs", "cpsat", "pyomo")),
        ["check", "a.json", "s.json"],
        *(
            ["bound", "a.json", "--method", kind]
            for kind in ("lp", "lagrangian", "slots", "configuration")
        ),
        ["bound", "a.json", "--json"],
        ["run", "a.json", "--policy", "mc-sf", "--policy", "svf", "--policy", "sorted-lp"],
        ["run", "a.json", "--policy", "svf", "--seconds"],
        ["certify", "a.json", "--policy", "svf", "-o", "c.json"],
        ["verify", "c.json"],
        ["export", "a.json", "-o", "m.lp"],
        ["study", "study.toml", "--out", "out"],
        ["theory", "theorem-2"],
        ["theory", "rayleigh"],
        ["hardware", "fit", "batches.csv", "-o", "b.json"],
        ["policies"],
        ["hardware", "capacity", "--model", "llama-3-8b"],
        ["reduce", "three-partition", "--target", "20", "6", "6", "7", "7", "6", "8"],
    ]
    answers = commands(core, asked, folder)
    for command, (code, _, err) in zip(asked, answers, strict=True):
        assert code == 0, (command, err)
    for solved in answers[1:5]:
        assert json.loads(solved[1])["objective"] == json.loads(solved[1])["lower_bound"] == 12
    assert not any("not installed" in err for _, _, err in answers)

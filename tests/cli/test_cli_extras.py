"""The core alone: what works without the extras, and the line that names the one to install."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import EC1
from environments import ROOT, commands, core_environment, project
from packaging.requirements import Requirement
from studied import tiny

from kvopt.show.optional import EXTRAS, remedy

REFUSED = {
    "plot": [["plot", "a.json", "-o", "a.png"], ["report", "."]],
    "cluster": [["study", "study.toml", "--out", "never", "--scheduler", "tcp://127.0.0.1:1"]],
}
"""What needs an extra."""
INFO = [["info"], ["info", "--json"]]
SOLVES = [
    ["solve", "a.json", "--json", "-o", "s.json"],
    *(["solve", "a.json", "--engine", name, "--json"] for name in ("highs", "cpsat", "pyomo")),
]
DONE = [
    ["generate", "arrival-1", "--n", "5", "-o", "b.json"],
    *SOLVES,
    ["check", "a.json", "s.json"],
    *(
        ["bound", "a.json", "--method", kind, "-t", "0.5"]
        for kind in ("lp", "lagrangian", "slots", "configuration")
    ),
    ["bound", "a.json", "--json"],
    ["run", "a.json", "--policy", "mc-sf", "--policy", "svf", "--policy", "sorted-lp"],
    ["run", "a.json", "--policy", "svf", "--seconds"],
    ["certify", "a.json", "--policy", "svf", "-o", "c.json"],
    ["verify", "c.json"],
    ["export", "a.json", "-o", "m.lp"],
    ["study", "study.toml", "--out", "out"],
    ["hardware", "fit", "batches.csv", "-o", "b.json"],
    ["policies"],
    ["hardware", "capacity", "--model", "llama-3-8b"],
    ["reduce", "three-partition", "--target", "20", "6", "6", "7", "7", "6", "8"],
]
"""What the core does alone."""
Answer = tuple[int, str, str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("core")
    (made / "a.json").write_text(json.dumps(EC1))
    tiny(made / "study.toml", draws=1)
    shutil.copy(ROOT / "samples" / "batches.csv", made)
    return made


@pytest.fixture(scope="module")
def answer(folder: Path) -> Callable[[list[str]], Answer]:
    """Return what gives the answer to a command; one process without any extra has had all."""
    asked = [*(command for each in REFUSED.values() for command in each), *INFO, *DONE]
    found = commands(core_environment(folder / "venv"), asked, folder)
    known = {tuple(command): said for command, said in zip(asked, found, strict=True)}
    return lambda command: known[tuple(command)]


def test_every_extra_is_one_of_the_project() -> None:
    extras = project()["optional-dependencies"]
    for name, extra in EXTRAS.items():
        assert Requirement(extras[name][0]).name == extra.package
    assert Requirement(extras["all"][0]).extras == set(EXTRAS)
    assert "kvopt[all]" in extras["dev"]


@pytest.mark.slow
def test_what_is_missing_is_named_in_one_line(
    answer: Callable[[list[str]], Answer], folder: Path
) -> None:
    for extra, asked in REFUSED.items():
        line = f"kvopt: {EXTRAS[extra].package} is not installed: {remedy(extra)}"
        for command in asked:
            code, _, err = answer(command)
            assert (code, err.splitlines()[-1]) == (2, line), command
    assert not [*folder.glob("*.png")]


@pytest.mark.slow
def test_info_says_which_extra_brings_what_is_missing(
    answer: Callable[[list[str]], Answer],
) -> None:
    told, facts = map(answer, INFO)
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
def test_the_core_alone_solves_bounds_runs_certifies_and_studies(
    answer: Callable[[list[str]], Answer],
) -> None:
    for command in DONE:
        code, _, err = answer(command)
        assert code == 0, (command, err)
        assert "not installed" not in err
    for command in SOLVES:
        found = json.loads(answer(command)[1])
        assert found["objective"] == found["lower_bound"] == 12

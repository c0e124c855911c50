"""A study goes through the values of a key of a scheduler, such as alpha."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Outcome, Request, write_instance
from kvopt import run as simulate

TWO = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])


@pytest.mark.parametrize("clock", ["rounds", "seconds"])
def test_each_value_is_a_run_of_its_own(run: Run, tmp_path: Path, clock: str) -> None:
    """Two requests start together while 2 tokens are within (1 - alpha) 6, and never both fit."""
    write_instance(TWO, tmp_path / "two.json")
    values = [f"alpha={k / 10:g}" for k in range(10)]
    study, folder = tmp_path / "alpha.toml", tmp_path / "out"
    study.write_text(
        f'clock = "{clock}"\ncertify = false\npolicies = ["alpha-protect"]\n'
        f'predictions = {json.dumps(values)}\n[[instances]]\nfile = "two.json"\n'
    )
    code, _, err = run("study", study, "--out", folder, "--jobs", 1, "--json")
    assert code == 0, err
    assert run("report", folder)[0] == 0
    with (folder / "report.csv").open(encoding="utf-8") as file:
        found = {row["policy"]: row["outcome"] for row in csv.DictReader(file)}
    assert found == {
        f"alpha-protect:{value}": str(simulate(TWO, f"alpha-protect:{value}").outcome)
        for value in values
    }
    done = [name for name, outcome in found.items() if outcome == Outcome.COMPLETED]
    assert done == ["alpha-protect:alpha=0.7", "alpha-protect:alpha=0.8"]

"""A study goes through the values of a key of a scheduler, such as alpha."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Outcome, Request, generate, write_instance
from kvopt import run as simulate

TWO = Instance(6, [Request(0, 0, 5), Request(0, 0, 5)])


def outcomes(run: Run, study: Path, text: str) -> dict[str, str]:
    """Return the outcome of each variant of a study."""
    study.write_text(text)
    folder = study.with_suffix("")
    code, _, err = run("study", study, "--out", folder, "--jobs", 1, "--json")
    assert code == 0, err
    assert run("report", folder)[0] == 0
    with (folder / "report.csv").open(encoding="utf-8") as file:
        return {row["policy"]: row["outcome"] for row in csv.DictReader(file)}


@pytest.mark.parametrize("clock", ["rounds", "seconds"])
def test_each_value_is_a_run_of_its_own(run: Run, tmp_path: Path, clock: str) -> None:
    """Two requests start together while 2 tokens are within (1 - alpha) 6, and never both fit."""
    write_instance(TWO, tmp_path / "two.json")
    values = [f"alpha={k / 10:g}" for k in range(10)]
    found = outcomes(
        run,
        tmp_path / "alpha.toml",
        f'clock = "{clock}"\ncertify = false\npolicies = ["alpha-protect"]\n'
        f'predictions = {json.dumps(values)}\n[[instances]]\nfile = "two.json"\n',
    )
    assert found == {
        f"alpha-protect:{value}": str(simulate(TWO, f"alpha-protect:{value}").outcome)
        for value in values
    }
    done = [name for name, outcome in found.items() if outcome == Outcome.COMPLETED]
    assert done == ["alpha-protect:alpha=0.7", "alpha-protect:alpha=0.8"]


@pytest.mark.slow
def test_two_keys_make_every_pair(run: Run, tmp_path: Path) -> None:
    write_instance(generate("conversation", n=60, memory=1000, seed=1), tmp_path / "chat.json")
    found = outcomes(
        run,
        tmp_path / "both.toml",
        'certify = false\npolicies = ["alpha-beta:alpha=0.1", "alpha-beta:alpha=0.4"]\n'
        'predictions = ["beta=0.2", "beta=1"]\n[[instances]]\nfile = "chat.json"\n',
    )
    assert [*found] == [
        f"alpha-beta:alpha={alpha},beta={beta}" for alpha in (0.1, 0.4) for beta in ("0.2", "1")
    ]

"""``--module``: what others register, from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run, written

from kvopt.studies.record_lines import read_records

pytestmark = pytest.mark.usefixtures("own_things")

GOOD = '''
from dataclasses import dataclass
from kvopt import PrefixPolicy, register

@register
@dataclass
class Longest(PrefixPolicy):
    """Longest first."""

    name = "longest"
    weight: int = 1

    def key(self, view, i):
        return (-self.weight * view.beliefs.output[i],)
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return written(tmp_path / "mine.py", GOOD)


@pytest.mark.slow
def test_commands_know_what_a_file_registers(run: Run, ec1: Path, mine: Path) -> None:
    folder = mine.parent
    module, policy = ("--module", mine), ("--policy", "longest:weight=2")
    code, out, err = run("run", ec1, *module, *policy, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["policies"][0]["objective"] == 21
    cert = folder / "c.json"
    assert run("certify", ec1, *module, *policy, "-o", cert)[0] == 0
    assert run("plot", ec1, *module, *policy, "-o", folder / "p.svg")[0] == 0
    assert "longest" in run("policies", *module)[1]
    assert "alpha: is not a key of longest" in run.refused(
        "run", ec1, *module, "--policy", "longest:alpha=0.1"
    )


def test_several_files_are_loaded(run: Run, ec1: Path, mine: Path) -> None:
    other = written(mine.with_name("other.py"), GOOD.replace('"longest"', '"other"'))
    modules = ("--module", mine, "--module", other)
    assert run("run", ec1, *modules, "-P", "longest", "-P", "other")[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("own_processes")
def test_a_study_carries_the_file_to_its_processes(run: Run, mine: Path, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'policies = ["longest"]\n[limits]\ntime_limit = 5\n'
        '[[instances]]\nfamily = "geometric"\nn = 4\nmemory = 8\nparameters = { u = 4 }\n'
    )
    command = ("study", tmp_path / "s.toml", "--module", mine, "--out", tmp_path / "out")
    run.done(*command, "--jobs", 2)
    (record,) = read_records(tmp_path / "out")
    assert (record.policy, record.outcome) == ("longest", "completed")
    assert f'modules = ["{mine}"]' in (tmp_path / "out" / "study.toml").read_text()
    assert run(*command)[0] == 0, "the same study goes on"


def test_two_files_cannot_share_a_name(run: Run, ec1: Path, mine: Path) -> None:
    other = written(mine.with_name("other.py"), GOOD)
    assert "longest: is the name of kvopt_module_mine_" in run.refused(
        "run", ec1, "--module", mine, "--module", other, "-P", "longest"
    )

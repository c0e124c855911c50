"""``--module``: what others register, from a file, and what is said of mistakes in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt.studies.records import read_records

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
PLAIN = """
from dataclasses import dataclass
from kvopt import Policy, register

@register
@dataclass
class Mine(Policy):
    name = "mine"
    def admit(self, view):
        return 3
"""
WRONG_REGISTER = (
    "must be the class of a policy: write @register above it without brackets; register of "
    "routers and formats is in kvopt."
)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


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
    code, _, err = run("run", ec1, *module, "--policy", "longest:alpha=0.1")
    assert (code, "alpha: is not a key of longest" in err) == (2, True)


def test_several_files_are_loaded(run: Run, ec1: Path, mine: Path) -> None:
    other = mine.with_name("other.py")
    other.write_text(GOOD.replace('"longest"', '"other"'))
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
    code, _, err = run(*command, "--jobs", 2)
    assert code == 0, err
    (record,) = read_records(tmp_path / "out")
    assert (record.policy, record.outcome) == ("longest", "completed")
    assert f'modules = ["{mine}"]' in (tmp_path / "out" / "study.toml").read_text()
    assert run(*command)[0] == 0, "the same study goes on"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory; write the path of a Python file"),
        ("x = 1\ndef (\n", "line 2: invalid syntax: def ("),
        ("x = 1\n1 / 0\n", "line 2: cannot be loaded: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "line 2: cannot be loaded: SystemExit: 3"),
        (
            "x = 1\n",
            "registers nothing: write @register above a policy (from kvopt import register); "
            "register of routers and formats is in kvopt.",
        ),
        (PLAIN.replace('    name = "mine"\n', ""), 'Mine: has no name: write name = "..." in it'),
        (
            PLAIN.replace("admit", "admits"),
            "Mine: does not define admit: write def admit(self, view)",
        ),
        (
            PLAIN.replace('"mine"', '"mine"\n    weight = 10'),
            "weight: has no type: write weight: int = 10",
        ),
        (
            PLAIN.replace('"mine"', '"mine"\n    weight: int = 10').replace("@dataclass\n", ""),
            "weight: is no key: write @dataclass between @register and the class",
        ),
        (PLAIN.replace("(Policy)", ""), "Mine: is no policy: write class NAME(Policy)"),
        (
            PLAIN.replace("mine", "mc-sf"),
            "mc-sf: is the name of kvopt.simulate.policies.orders: write another",
        ),
        (PLAIN.replace("@register", '@register("mine")'), WRONG_REGISTER),
        (
            "from kvopt.problem.traces import register\n@register\ndef f(path): ...",
            "f: has no name: write",
        ),
        (PLAIN.replace("mine", "a:b"), "name of a policy: must be a text without"),
        (PLAIN, "mine: admit returned 3, and must return positions of requests: write return [i]"),
    ],
)
def test_mistakes_are_one_line_with_the_file(
    text: str | None, said: str, run: Run, ec1: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    policy = "mine:weight=2" if "weight" in str(text) else "mine"
    code, out, err = run("run", ec1, "--module", path, "--policy", policy)
    assert (code, out) == (2, "")
    assert err.startswith(f"kvopt: {path}: ")
    assert said in err
    assert err.count("\n") == 1


FAULTS = {
    "lines": ("        raise OSError('a\\nb')", "line 10: mine: admit failed: OSError: a\\nb"),
    "own": (
        "        return own()\ndef own():\n    return 1 / 0",
        "line 12: mine: admit failed: Z",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_policy_raises_is_one_line_that_says_where(
    run: Run, ec1: Path, tmp_path: Path, fault: str
) -> None:
    body, said = FAULTS[fault]
    path = tmp_path / "mine.py"
    path.write_text(PLAIN.replace("        return 3", body))
    command = ("run", ec1, "--module", path, "--policy", "mine")
    code, out, err = run(*command)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"kvopt: {path}: {said}")
    code, _, err = run(*command, "-v")
    assert code == 2
    assert "Traceback (most recent call last):" in err
    assert err.count(f"kvopt: {path}: {said}") == 1


def test_two_files_cannot_share_a_name(run: Run, ec1: Path, mine: Path) -> None:
    other = mine.with_name("other.py")
    other.write_text(GOOD)
    code, _, err = run("run", ec1, "--module", mine, "--module", other, "-P", "longest")
    assert (code, "longest: is the name of kvopt_module_mine_" in err) == (2, True)

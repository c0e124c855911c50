"""Parameters: read, refused with a reason, printed, and of effect."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kvopt import InvalidInput, SolveParams, bound, certify, generate, solve
from kvopt.files import write_instance

Run = Callable[..., tuple[int, str, str]]


def test_what_is_printed_reads_back() -> None:
    assert SolveParams.of(tomllib.loads(SolveParams().to_toml())) == SolveParams()
    other = SolveParams.of({"exact": {"wide_horizons": [1]}, "improve": {"coldest": 1}})
    assert other.improve.coldest == 1.0
    assert SolveParams.of(tomllib.loads(other.to_toml())) == other != SolveParams()


def test_the_page_shows_all_of_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "parameters.md").read_text(encoding="utf-8")
    assert SolveParams().to_toml() in page


def test_stages_are_a_list_of_tables() -> None:
    text = "[[configuration.stages]]\nsteps = 5\n[[configuration.stages]]\nheat = 0.5\n"
    first, second = SolveParams.of(tomllib.loads(text)).configuration.stages
    assert (first.steps, first.refinement, second.heat) == (5, 1, 0.5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exact = 3", "exact: must be a table, got 3"),
        ("[exat]", "exat: is not one of portfolio, exact,"),
        ("[exact]\nwidht = 3", "exact.widht: is not one of patience,"),
        ("[exact]\nwidth = 'a'", "exact.width: must be an integer, got 'a'"),
        ("[exact]\nwidth = true", "exact.width: must be an integer, got True"),
        ("[exact]\nwidth = 0", "exact.width: must be at least 1, got 0"),
        ("[exact]\nwide_horizons = []", "exact.wide_horizons: must be a list that is not empty"),
        ("[exact]\nwide_horizons = [1.5]", "exact.wide_horizons[0]: must be an integer, got 1.5"),
        ("[portfolio]\nbound_share = 1.5", "portfolio.bound_share: must be from 0 to 1, got 1.5"),
        ("[lagrangian]\nlowered = nan", "lagrangian.lowered: must be from 0 to 1, got nan"),
        ("[[lagrangian.stages]]\nfailures = 0", "lagrangian.stages[0].failures: must be at least"),
        ("[exact", "cannot be read: "),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "params.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        SolveParams.from_toml(path)
    assert str(caught.value).startswith(f"{path}: {reason}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        SolveParams.from_toml(tmp_path / "none.toml")


def test_each_says_what_it_means() -> None:
    lines = SolveParams().to_toml().splitlines()
    for before, line in pairwise(lines):
        if " = " in line and not before.startswith("[["):
            assert before.startswith("# ") or " = " in before


@pytest.mark.slow
def test_they_are_of_effect() -> None:
    instance = generate("arrival-1", 7, seed=4)
    cheap = SolveParams.of({"configuration": {"stages": [{"steps": 1}]}})
    rough, fine = bound(instance, "configuration", params=cheap), bound(instance, "configuration")
    assert rough.value is not None
    assert fine.value is not None
    assert rough.value < fine.value
    never = SolveParams.of({"exact": {"searchable": 0, "widest_width": 1, "most_labels": 1}})
    assert solve(instance, "exact", params=never).objective == solve(instance).objective
    assert certify(instance, params=cheap).gap == 0


class TestCommands:
    def test_info_prints_them(self, run: Run) -> None:
        code, out, _ = run("info", "--params")
        assert code == 0
        assert SolveParams.of(tomllib.loads(out)) == SolveParams()
        assert json.loads(run("info", "--params", "--json")[1]) == json.loads(
            json.dumps(asdict(SolveParams()))
        )

    @pytest.mark.parametrize("command", ["solve", "bound", "certify"])
    def test_commands_take_them(self, run: Run, tmp_path: Path, command: str) -> None:
        file, params = tmp_path / "i.json", tmp_path / "p.toml"
        write_instance(generate("arrival-1", 5, seed=1), file)
        params.write_text("[exact]\nwidth = 50\n")
        arguments: list[Any] = [command, file, "--params", params]
        if command == "certify":
            arguments += ["-o", tmp_path / "c.json"]
        assert run(*arguments)[0] == 0
        params.write_text("[exact]\nwidht = 50\n")
        code, _, errors = run(*arguments)
        assert code == 2
        assert f"{params}: exact.widht: is not one of" in errors

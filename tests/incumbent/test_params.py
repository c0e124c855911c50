"""Parameters: read, refused with a reason, printed, and of effect."""

from __future__ import annotations

import ast
import json
import math
import random
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import brute_force
import pytest
from commands import Run
from effort import many
from known import known
from strategies import plain, random_instances

import kvopt
from kvopt import Instance, InvalidInput, Request, SolveParams, bound, certify, generate, solve
from kvopt.bounds.lagrangian import priced_rounds
from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget
from kvopt.problem.instance_files import write_instance

pytestmark = pytest.mark.usefixtures("processor_clock")


def test_what_is_printed_reads_back() -> None:
    assert SolveParams.of(tomllib.loads(SolveParams().to_toml())) == SolveParams()
    other = SolveParams.of({"exact": {"searchable": 1}, "portfolio": {"bound_share": 1}})
    assert other == SolveParams(exact_searchable=1, portfolio_bound_share=1.0) != SolveParams()
    assert SolveParams.of(tomllib.loads(other.to_toml())) == other


def test_a_page_shows_all_parameters() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert page.endswith("\n`kvopt info --params` prints all of them.\n")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exact = 3", "exact: must be a table, got 3"),
        ("[exat]\nwidth = 3", "exat.width: is not one of portfolio.bound_share, exact.searchable,"),
        ("[exact]\nserchable = 3", "exact.serchable: is not one of portfolio.bound_share,"),
        ("[exact]\nwidth = 3", "exact.width: is a constant now"),
        ("[deadlines]\nshare = 0.3", "deadlines.share: is a constant now"),
        ("[exact]\nsearchable = 'a'", "exact.searchable: must be an integer, got 'a'"),
        ("[exact]\nsearchable = true", "exact.searchable: must be an integer, got True"),
        ("[exact]\nsearchable = [1]", "exact.searchable: must be an integer, got [1]"),
        (
            "[exact]\nmost_labels = 0",
            "exact.most_labels: must be from 1 to 9007199254740991, got 0",
        ),
        ("[exact]\nsearchable = 10000000000000000000", "exact.searchable: must be from 0 to "),
        ("[portfolio]\nbound_share = 1.5", "portfolio.bound_share: must be from 0 to 1, got 1.5"),
        ("[portfolio]\nbound_share = nan", "portfolio.bound_share: must be from 0 to 1, got nan"),
        ("[exact", "cannot be read: "),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "params.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        SolveParams.from_toml(path)
    assert str(caught.value).startswith(f"{path}: {reason}")


def drawn(source: random.Random) -> SolveParams:
    """Return parameters of which many stand at an end of their range, or far out."""
    changed = {}
    for param in fields(SolveParams):
        if source.random() < 0.4:
            ends = (param.metadata["minimum"], param.metadata["maximum"])
            changed[param.name] = type(getattr(SolveParams(), param.name))(source.choice(ends))
    return SolveParams(**changed)


def test_an_unknown_option_is_named_with_the_nearest() -> None:
    for work in (solve, bound, certify):
        with pytest.raises(TypeError, match="unknown option timelimit; did you mean time_limit"):
            work(ONE, timelimit=5)  # type: ignore[call-arg]


@pytest.mark.slow
def test_answers_are_true_whatever_they_are() -> None:
    source = random.Random(5)
    shapes = random_instances(many(10), 8, least_requests=2, most_requests=4, last_arrival=9)
    for instance in shapes:
        params = drawn(source)
        optimum = brute_force.optimum(*plain(instance))
        for engine in ("auto", "exact"):
            found = solve(instance, engine, time_limit=0.1, params=params)
            assert found.faults == (), params
            assert (found.lower_bound or 0) <= optimum <= known(found.objective), params
        for method in ("auto", "lagrangian", "configuration"):
            lower = bound(instance, method, time_limit=0.1, params=params).value
            assert lower is None or lower <= optimum, params
        lower = certify(instance, ["svf"], time_limit=0.1, params=params).lower_bound
        assert known(lower) <= optimum


def test_no_share_of_no_limit_is_no_time() -> None:
    """Zero times infinity is not a number, which no clock ever reaches."""
    assert (Budget().part(0.0).left, Budget().part(0.5).left) == (0.0, math.inf)
    assert (Budget(8.0).part(0.0).left, round(Budget(8.0).part(0.5).left)) == (0.0, 4)


def test_time_is_divided_by_shares_with_names() -> None:
    """Those of stages are in the plan, those of their steps next to their use."""
    source = Path(kvopt.__file__).parent
    for folder in ("bounds", "heuristics"):
        for path in (source / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "part":
                    assert not any(isinstance(a, ast.Constant) for a in node.args), path


@pytest.mark.slow
def test_parameters_limit_the_search() -> None:
    instance = generate("arrival-1", 7, seed=4)
    few = SolveParams(exact_searchable=0, exact_most_labels=1)
    narrow = solve(instance, "exact", params=few, threads=1, time_limit=2.0)
    assert narrow.objective == solve(instance).objective
    with pytest.raises(TooLarge, match="the limit is 3"):
        priced_rounds(instance, Budget(), Limits(params=SolveParams(lagrangian_longest=3)))


class TestCommands:
    def test_info_prints_parameters(self, run: Run) -> None:
        out = run.done("info", "--params")[0]
        assert SolveParams.of(tomllib.loads(out)) == SolveParams()
        assert run.json("info", "--params") == json.loads(json.dumps(SolveParams().tables()))

    @pytest.mark.parametrize("command", ["solve", "bound", "certify"])
    def test_commands_take_parameters(self, run: Run, tmp_path: Path, command: str) -> None:
        file, params = tmp_path / "i.json", tmp_path / "p.toml"
        write_instance(generate("arrival-1", 5, seed=1), file)
        params.write_text("[exact]\nsearchable = 50\n[portfolio]\nbound_share = 0.2\n")
        arguments: list[Any] = [command, file, "--params", params]
        if command == "certify":
            arguments += ["-o", tmp_path / "c.json"]
        assert run(*arguments)[0] == 0


# ---- searches inside another one


ONE = Instance(3, [Request(0, 1, 2)])


def test_an_inner_search_has_the_time_left_and_ends_with_the_whole() -> None:
    whole = Search(ONE, Limits(time_limit=50, seed=3, threads=1), checkable=True)
    inner = whole.inside(ONE)
    assert 0 < inner.budget.left <= 50
    assert (inner.limits.seed, inner.limits.threads, inner.checkable) == (3, 1, True)
    assert not inner.budget.over()
    whole.granted.interrupt()
    assert inner.budget.over()


def test_the_budget_of_an_inner_search_counts_though_the_whole_has_none() -> None:
    whole = Search(ONE, Limits(time_limit=0))
    inner = whole.inside(ONE, Budget(5.0))
    assert inner.budget.left > 1
    assert not inner.budget.over()

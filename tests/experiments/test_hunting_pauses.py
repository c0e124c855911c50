"""Hunts with a scope: pausing policies, and where pausing is worth most."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import pause_oracle
import pytest
from commands import Run
from effort import many
from oracle import every_problem, optimum

from kvopt import InvalidInput, verify
from kvopt.experiments.hunting import hunt, tiny_pauses
from kvopt.experiments.hunting.judge import one_by_one
from kvopt.experiments.hunting.tiny_pauses import paused_optimum_below
from kvopt.problem.scopes import Scope
from kvopt.search.exact.starts import best_below
from kvopt.simulate.simulator import Stopped

Triple = tuple[int, int, int]


def drawn(rng: random.Random, most: int) -> tuple[int, tuple[Triple, ...]]:
    memory, requests = rng.randint(1, 7), []
    for _ in range(rng.randint(1, most)):
        prompt = rng.randrange(memory)
        requests.append((rng.randint(0, 4), prompt, rng.randint(1, memory - prompt)))
    return memory, tuple(requests)


@pytest.mark.slow
def test_the_quick_optimum_with_pauses_is_the_optimum() -> None:
    rng = random.Random(3)
    for _ in range(many(80)):
        memory, requests = case = drawn(rng, 4)
        least = pause_oracle.optimum(memory, requests)
        assert paused_optimum_below(case, least + rng.randint(1, 9)) == least
        assert paused_optimum_below(case, least) is None


def test_the_quick_optimum_of_nothing() -> None:
    assert paused_optimum_below((3, ()), 1) == 0
    assert paused_optimum_below((3, ()), 0) is None


def test_labels_take_over_where_sets_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_pauses, "_MOST_SETS", 5)
    rng = random.Random(4)
    for _ in range(20):
        memory, requests = case = drawn(rng, 3)
        least = pause_oracle.optimum(memory, requests)
        assert paused_optimum_below(case, least + 1) == least
        assert paused_optimum_below(case, least) is None
    with pytest.raises(Stopped):
        paused_optimum_below((9, ((0, 1, 5), (0, 1, 6))), 99, lambda: True)


def test_one_by_one_is_not_below_the_optimum() -> None:
    rng = random.Random(5)
    for _ in range(50):
        case = drawn(rng, 3)
        found = best_below(*case, one_by_one(case) + 1)
        assert found is not None
        assert found[0] == optimum(*case)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("memory", "arrivals"), [(4, 0), (2, 2)])
def test_a_hunt_finds_where_pausing_is_worth_most(memory: int, arrivals: int) -> None:
    worst = max(
        Fraction(optimum(smaller, requests)[0], pause_oracle.optimum(smaller, requests))
        for smaller, requests in every_problem(memory, 3, arrivals)
    )
    found = hunt([], n=3, memory=memory, last_arrival=arrivals, scope="pauses", time_limit=30)
    assert found.exhausted == 3
    assert found.verified
    assert found.ratio == worst > 1
    assert (found.scope, found.runs is not None) == (Scope.PAUSES, True)


@pytest.mark.slow
def test_a_server_is_judged_by_the_optimum_with_pauses(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "worst.json"
    arguments = ("hunt", "-P", "sglang", "--n", 2, "--memory", 4, "-t", 20, "-o", file, "--json")
    code, out, _ = run(*arguments)
    found = json.loads(out)
    assert (code, found["scope"], found["verified"]) == (0, "pauses", True)
    requests = [(r["arrival"], r["prompt"], r["output"]) for r in found["instance"]["requests"]]
    least = pause_oracle.optimum(found["instance"]["memory"], requests)
    assert found["lower_bound"] <= least <= found["optimum"]
    assert verify(file).valid


def test_no_policy_goes_with_pauses_alone() -> None:
    with pytest.raises(InvalidInput, match="needs at least one; none goes with --scope pauses"):
        hunt([], n=2, memory=4, scope="chunks")


def test_pauses_that_are_worth_nothing(run: Run) -> None:
    code, out, _ = run("hunt", "--scope", "pauses", "--n", 1, "--memory", 3)
    assert (code, out.splitlines()[-1]) == (3, "pausing is worth nothing on any")

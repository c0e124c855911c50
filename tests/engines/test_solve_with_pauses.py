"""``solve_with_pauses``: optima by brute force, both sides at any limit."""

from __future__ import annotations

import json
from pathlib import Path

import pause_oracle
import pytest
from effort import many
from strategies import instance_of, plain, random_instances

from kvopt import InvalidInput, generate, solve, write_instance
from kvopt.bounds.volume import volume_bound
from kvopt.engines.pausing import solve_with_pauses
from kvopt.heuristics import paused_layers
from kvopt.model.scopes import Scope


@pytest.mark.parametrize(
    ("memory", "requests", "best"),
    [(10, [(0, 0, 10), (6, 5, 1)], 12), (3, [(0, 0, 3), (1, 2, 1)], 5), (3, [], 0)],
)
def test_worked_cases(memory: int, requests: list[tuple[int, int, int]], best: int) -> None:
    found = solve_with_pauses(instance_of(memory, requests))
    assert (found.objective, found.lower_bound, str(found.status)) == (best, best, "optimal")
    assert (str(found.stop_reason), str(found.scope)) == ("proved", "pauses")


@pytest.mark.slow
def test_optima_are_those_of_brute_force() -> None:
    for instance in random_instances(many(10), 5, most_memory=8, most_output=4, last_arrival=3):
        found = solve_with_pauses(instance)
        assert found.objective == found.lower_bound == pause_oracle.optimum(*plain(instance))


@pytest.mark.slow
def test_an_optimum_of_the_papers_family() -> None:
    """No longer than without pauses, and proved by the search where prices leave a gap."""
    instance = generate("arrival-1", n=6, seed=1)
    found = solve_with_pauses(instance)
    runs = solve(instance).objective
    assert (str(found.status), str(found.bound_source)) == ("optimal", "solver")
    assert found.objective is not None
    assert runs is not None
    assert found.checked is not None
    assert found.checked.value < found.objective < runs


def test_a_limit_leaves_both_sides() -> None:
    instance = generate("arrival-1", n=40, seed=1)
    found = solve_with_pauses(instance, time_limit=0)
    assert (str(found.status), str(found.stop_reason)) == ("feasible", "time-limit")
    assert found.schedule is not None
    assert found.schedule.check().feasible
    assert found.lower_bound == volume_bound(instance) < found.schedule.objective


@pytest.mark.slow
def test_what_cannot_be_searched_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paused_layers, "LARGEST_LAYER", 5)
    found = solve_with_pauses(generate("arrival-1", n=5, seed=1), time_limit=5)
    assert "more than 5 labels with pauses" in found.notes[0]
    assert str(found.status) == "feasible"


def test_json_says_what_is_known(tmp_path: Path) -> None:
    instance = instance_of(10, [(0, 0, 10), (6, 5, 1)])
    write_instance(instance, tmp_path / "a.json")
    said = solve_with_pauses(tmp_path / "a.json").to_json()
    assert json.loads(json.dumps(said))["segments"] == [[[1, 6], [8, 11]], [[7, 7]]]
    assert (said["scope"], said["objective"], said["lower_bound"]) == ("pauses", 12, 12)


def test_summaries_say_what_is_covered() -> None:
    text = " ".join(str(solve_with_pauses(instance_of(10, [(0, 0, 3)]))).split())
    assert Scope.PAUSES.sentence in text


def test_limits_are_checked() -> None:
    with pytest.raises(InvalidInput, match="time limit: must not be negative"):
        solve_with_pauses(instance_of(3, [(0, 0, 1)]), time_limit=-1)

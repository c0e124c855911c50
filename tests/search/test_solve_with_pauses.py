"""``solve`` with pauses: optima by brute force, both sides at any limit."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from known import known
from strategies import instance_of

from kvopt import Instance, InvalidInput, Request, generate, solve, write_instance
from kvopt.bounds.volume import volume_bound
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import token_prices
from kvopt.search.exact import paused_layers
from kvopt.search.exact.paused_layers import search_layers
from kvopt.search.stages import as_longer_prompts

pytestmark = pytest.mark.usefixtures("processor_clock", "few_steps")

solve_paused = partial(solve, scope="pauses")


@pytest.mark.parametrize(
    ("memory", "requests", "best"),
    [
        (10, [(0, 0, 10), (6, 5, 1)], 12),
        (3, [(0, 0, 3), (1, 2, 1)], 5),
        (3, [], 0),
        # Found by hunts: runs take 14, 6 and 10.
        (6, [(0, 0, 6), (2, 5, 1), (5, 5, 1)], 10),
        (2, [(0, 0, 2)] * 2, 5),
        (4, [(0, 0, 2), (0, 2, 2), (3, 2, 1), (4, 2, 1)], 7),
    ],
)
def test_worked_cases_are_proved(
    memory: int, requests: list[tuple[int, int, int]], best: int
) -> None:
    found = solve_paused(instance_of(memory, requests))
    assert (found.objective, found.lower_bound, str(found.status)) == (best, best, "optimal")
    assert (str(found.stop_reason), str(found.scope)) == ("proved", "pauses")


@pytest.mark.thorough
def test_pauses_gain_on_an_instance_of_the_papers() -> None:
    """No longer than without pauses, and proved by the search where prices leave a gap."""
    instance = generate("arrival-1", n=6, seed=1)
    found = solve_paused(instance)
    runs = solve(instance).objective
    assert (str(found.status), str(found.bound_source)) == ("optimal", "solver")
    assert known(found.checked).value < known(found.objective) < known(runs)


def test_a_limit_leaves_both_sides() -> None:
    instance = generate("arrival-1", n=40, seed=1)
    found = solve_paused(instance, time_limit=0)
    assert (str(found.status), str(found.stop_reason)) == ("feasible", "time-limit")
    assert known(found.schedule).check().feasible
    assert found.lower_bound == volume_bound(instance) < known(found.schedule).objective


@pytest.mark.slow
def test_what_cannot_be_searched_has_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paused_layers, "search_layers", partial(search_layers, limit=5))
    found = solve_paused(generate("arrival-1", n=6, seed=1), time_limit=1)
    assert "more than 5 labels with pauses" in found.notes[0]
    assert str(found.status) == "feasible"


def test_json_has_both_sides_and_segments(tmp_path: Path) -> None:
    instance = instance_of(10, [(0, 0, 10), (6, 5, 1)])
    write_instance(instance, tmp_path / "a.json")
    said = solve_paused(tmp_path / "a.json").to_json()
    assert json.loads(json.dumps(said))["segments"] == [[[1, 6], [8, 11]], [[7, 7]]]
    assert (said["scope"], said["objective"], said["lower_bound"]) == ("pauses", 12, 12)


def test_a_cold_start_has_no_volume_bound_and_no_list_schedule() -> None:
    found = solve_paused(generate("arrival-1", n=20, seed=1), quick_start=False, time_limit=0)
    assert found.lower_bound is None
    assert (found.found_by, found.objective is None) in {
        ("orders with pauses", False), (None, True)
    }  # fmt: skip


def test_what_observers_see_are_schedules_with_pauses() -> None:
    instance = instance_of(10, [(0, 0, 10), (6, 5, 1)])
    seen: list[int | None] = []
    solve_paused(instance, observer=lambda progress: seen.append(progress.objective))
    assert 12 in seen
    values = [value for value in seen if value is not None]
    assert values == sorted(values, reverse=True)


def test_prices_to_begin_from_are_refused() -> None:
    with pytest.raises(InvalidInput, match="prices: cannot be given with the scope pauses"):
        solve_paused(instance_of(3, [(0, 0, 1)]), prices=token_prices((1,), 1))


# ---- searches in whole blocks


def test_a_schedule_in_blocks_is_known_while_the_engine_works() -> None:
    search = Search(Instance(24, [Request(0, 3, 5)] * 4, block_size=4))
    values: list[int | None] = []

    def work(inner: Search) -> None:
        offer_list_schedules(inner)
        values.append(search.objective)

    as_longer_prompts(search, work)
    assert values == [search.objective]
    assert search.objective is not None

"""Schedules of fleets: exhaustive engines against brute force, programs, limits, the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from known import known

from kvopt import (
    Instance,
    InvalidInput,
    Request,
    Schedule,
    certify,
    generate,
    read_schedule,
    run,
    solve,
    write_certificate,
    write_instance,
)
from kvopt.heuristics.list_schedules import one_after_another
from kvopt.heuristics.reinsertion import search_reinsertions
from kvopt.heuristics.trace_beams import search_traces
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.problem.problem import Problem
from kvopt.search.plan import solving
from kvopt.timetable.schedule_files import schedule_of_solution
from kvopt.verify import verify

pytestmark = pytest.mark.usefixtures("processor_clock")

TWO = Instance(3, [Request(0, 0, 3), Request(0, 0, 3), Request(0, 1, 2)], workers=2)
CHAT = generate("conversation", n=240, memory=3_000, seed=1)
FLEET = Instance(3_000, CHAT.requests, workers=3)


def begun(instance: Instance) -> Search:
    """Return a search with a poor schedule."""
    search = Search(instance)
    assert search.offer(one_after_another(instance), "one after another")
    return search


def test_more_workers_are_never_worse() -> None:
    requests = generate("arrival-2", n=9, seed=4).requests
    values = [solve(Instance(50, requests, workers=m)).objective for m in (2, 3, 4)]
    assert None not in values
    assert values == sorted(values, key=lambda value: -(value or 0))
    assert solve(Instance(50, requests, workers=30)).objective == sum(r.output for r in requests)


@pytest.mark.parametrize("clock", ["rounds", "seconds"])
@pytest.mark.parametrize("scope", ["runs", "pauses"])
@pytest.mark.parametrize("axis", [{}, {"block_size": 2}, {"max_active": 1}, {"block_tokens": 1}])
def test_idle_workers_change_nothing(
    clock: str, scope: str, axis: dict[str, Any], tmp_path: Path
) -> None:
    """Also from schedules on the last workers; proofs hold for all workers."""
    shared = {"prefix": (1,)} if "block_tokens" in axis else {}
    rows = [Request(0, 2, 3, **shared), Request(1, 1, 4, **shared)]  # type: ignore[arg-type]
    few, many = (Instance(8, rows, workers=m, round_ms=40, **axis) for m in (2, 50))
    of: dict[str, Any] = {"scope": scope, "clock": clock}
    plain, certificate = (certify(each, ["fcfs"], time_limit=2, **of) for each in (few, many))
    assert known(certificate.upper).objective == known(plain.upper).objective
    assert certificate.lower is not None
    assert plain.lower is not None
    assert clock == "seconds" or certificate.lower.value == plain.lower.value
    write_certificate(certificate, file := tmp_path / "certificate.json")
    assert verify(file).valid, verify(file).lines
    late = run(many, "fcfs", router="round-robin", clock=clock)
    last = replace(late, workers=[48, 49], resumed=[{}] * 48 + list(late.resumed[:2]))
    assert last.violations() == []
    search = Search(Problem(many, clock=late.clock))
    assert search.offer((clock == "rounds" and last.schedule) or last, "last workers")
    solving(search)
    assert search.objective == known(certificate.upper).objective


@pytest.mark.parametrize(
    "way",
    [
        lambda search: search_reinsertions(search, Budget(9.0), most_passes=100),
        lambda search: search_traces(search, Budget(0.5)),
    ],
    ids=["moves", "beams"],
)
def test_each_way_improves_a_fleet(way: Callable[[Search], None]) -> None:
    search = begun(Instance(300, generate("uniform", n=14, seed=1).requests, workers=2))
    before = search.objective
    way(search)
    assert not search.faults
    assert known(search.schedule).check().feasible
    assert known(search.objective) < known(before)


@pytest.mark.slow
def test_a_larger_fleet_has_both_sides() -> None:
    result = solve(FLEET, time_limit=1)
    assert known(result.schedule).check().feasible
    pool = solve(FLEET.pooled(), time_limit=0.5)
    assert known(result.lower_bound) >= 0.9 * known(pool.lower_bound)
    assert 0 < known(result.lower_bound) <= known(result.objective)
    assert len(set(known(result.schedule).workers)) == 3


def test_a_limit_of_nothing_keeps_both_sides() -> None:
    result = solve(FLEET, time_limit=0)
    assert result.schedule is not None
    assert result.lower_bound is not None
    assert str(result.stop_reason) == "time-limit"


def test_a_search_begins_from_the_schedule_of_a_caller() -> None:
    given = Schedule(TWO, (0, 3, 3), (0, 1, 0))
    result = solve(TWO, start=given, quick_start=False, time_limit=0)
    assert known(result.objective) <= given.objective
    with pytest.raises(InvalidInput, match="worker 0, time"):
        solve(TWO, start=Schedule(TWO, (0, 0, 0), (0, 0, 0)))


def test_an_engine_that_knows_one_worker_is_refused() -> None:
    with pytest.raises(InvalidInput, match="several workers"):
        solve(TWO, "exact")


def test_a_column_on_a_worker_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no column of this instance"):
        schedule_of_solution("x_r0_0_2 1\n", TWO)


def test_solve_writes_the_workers_of_a_fleet(run: Run, tmp_path: Path) -> None:
    file, schedule = tmp_path / "fleet.json", tmp_path / "schedule.json"
    write_instance(Instance(3, TWO.requests), file)
    said = run.json("solve", file, "--workers", "2", "-o", schedule)
    assert said["status"] == "optimal"
    assert sorted(set(said["workers"])) == [0, 1]
    assert Schedule(TWO, said["starts"], said["workers"]).check().objective == said["objective"]
    assert read_schedule(schedule, TWO).objective == said["objective"]
    assert "workers" not in json.loads(run("solve", file, "--json")[1])

"""Beams in seconds: real runs, better than lists, the same for a seed, whole when stopped."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from brute_force import Server, optimum
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from known import known
from strategies import batch_time, timed_instance

from kvopt import BatchTime, Instance, Line, Request, certify, generate, run, solve
from kvopt.bounds.seconds import seconds_bound
from kvopt.heuristics.seconds import timed_beams
from kvopt.heuristics.seconds.timed_beams import beams_in_seconds, run_of_beam
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds
from kvopt.timetable.policy_run import PolicyRun

pytestmark = pytest.mark.usefixtures("processor_clock")

ROOF = BatchTime([Line(42_000_000, 200_000), Line(25_000_000, 310_000)], kv_ns=80, prompt_ns=90)
MIXED = generate("conversation-summarisation", n=200, memory=16_492, seed=1)


def made_by_beams(instance: Instance, model: BatchTime, *lines: int, **options: Any) -> PolicyRun:
    """Return the run of some beams, whose times it has computed again itself."""
    made = known(beams_in_seconds(instance, Seconds(model), lines or (0,), **options))
    assert made.violations() == []
    return made


@pytest.mark.slow
@pytest.mark.interpreted
@examples(20)
@given(
    lines=st.sampled_from([[(10, 0)], [(0, 3)], [(7, 1), (2, 3)]]),
    costs=st.tuples(st.integers(0, 1), st.integers(0, 2)),
    rows=st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 4), st.integers(1, 3)), min_size=2, max_size=3
    ),
)
def test_a_beam_makes_runs_and_none_is_below_the_optimum(
    lines: list[tuple[int, int]], costs: tuple[int, int], rows: list[tuple[int, int, int]]
) -> None:
    server = Server(lines, *costs)
    found = known(made_by_beams(timed_instance(8, rows), batch_time(server)).objective)
    assert found >= optimum(8, rows, server=server)


@pytest.mark.parametrize("arrivals", [False, True])
def test_beams_beat_lists_where_many_wait(arrivals: bool) -> None:
    late = [replace(r, arrival_seconds=0.4 * i * arrivals) for i, r in enumerate(MIXED)]
    instance = replace(MIXED, requests=tuple(late))
    found, same, other = (made_by_beams(instance, ROOF, 0, 1, seed=seed) for seed in (1, 1, 2))
    assert found.starts == same.starts != other.starts
    lists = [
        run(instance, name, clock=Seconds(ROOF)).objective or inf for name in ("svf", "patient")
    ]
    assert seconds_bound(instance, ROOF).value_ns <= (found.objective or 0) < 0.99 * min(lists)


def test_threads_make_no_difference() -> None:
    one, two = (made_by_beams(MIXED, ROOF, 0, 1, threads=threads) for threads in (1, 2))
    assert one.starts == two.starts


def test_beams_go_on_after_gaps() -> None:
    late = [replace(r, arrival_seconds=1000.0 * (i // 50)) for i, r in enumerate(MIXED)]
    instance = replace(MIXED, requests=tuple(late))
    found = made_by_beams(instance, ROOF, 0, 1).objective
    parts = [
        made_by_beams(replace(MIXED, requests=MIXED.requests[i : i + 50]), ROOF, 0, 1).objective
        for i in range(0, 200, 50)
    ]
    assert known(found) < 1.02 * sum(part or 0 for part in parts)


def widths_of(monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[int]:
    """Return how wide the beams of a search are."""
    seen: list[int] = []

    def noted(*work: Any) -> Any:
        seen.append(work[3].width)
        return run_of_beam(*work)

    monkeypatch.setattr(timed_beams, "run_of_beam", noted)
    made_by_beams(MIXED, ROOF, 0, 1, **options)
    return seen


def test_beams_widen_within_time_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert widths_of(monkeypatch)[-1] == timed_beams.WIDEST_WITHOUT_LIMIT
    assert max(widths_of(monkeypatch, budget=Budget(1.0))) > timed_beams.WIDEST_WITHOUT_LIMIT
    assert max(widths_of(monkeypatch, budget=Budget(0.3, ram=0))) == 1


def test_a_beam_that_has_to_stop_makes_a_whole_run() -> None:
    assert made_by_beams(MIXED, ROOF, budget=Budget(0.0)).completed == len(MIXED)


def test_what_is_too_large_or_too_small_is_left_alone() -> None:
    pair = [Request(0, 1, 1), Request(0, 1, 1)]
    for requests in (pair[:1], [Request(0, 1, 2**40)] * 2):
        assert beams_in_seconds(Instance(2**50, requests), Seconds(ROOF), [0]) is None
    long, slow = Instance(900, [Request(0, 1, 400)] * 2), BatchTime([Line(2**51, 0)], 2**52)
    assert beams_in_seconds(long, Seconds(slow), [0]) is None
    far = [replace(r, arrival_seconds=1.7e9) for r in pair]
    assert made_by_beams(Instance(9, far), ROOF).completed


def test_certify_and_solve_take_the_best_run() -> None:
    found = certify(MIXED, ["svf"], clock=Seconds(ROOF), time_limit=0.8, seed=1)
    assert isinstance(found.upper, PolicyRun)
    assert found.upper.policy == "beams"
    solved = solve(MIXED, clock=Seconds(ROOF), time_limit=0.8, seed=1, threads=1)
    for objective in (found.objective, solved.objective):
        assert known(objective) < 0.99 * known(found.runs[0].objective)

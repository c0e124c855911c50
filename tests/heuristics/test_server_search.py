"""Servers in compiled loops take the decisions of the simulator; good settings, also over time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from known import known

from kvopt import BatchTime, Instance, Line, Request, generate, run, solve
from kvopt.errors import InvalidInput
from kvopt.heuristics.seconds.limits_by_window import SettingsByWindow, settings_by_load
from kvopt.heuristics.seconds.server_search import (
    OVER_TIME,
    good_settings,
    search_over_time,
    search_servers,
)
from kvopt.heuristics.seconds.server_settings import (
    ORDERS,
    Explored,
    ServerSetting,
    SettingsGrid,
    sampled,
)
from kvopt.heuristics.seconds.vllm_rules import OneServer
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.timetable.policy_run import PolicyRun

pytestmark = [pytest.mark.usefixtures("processor_clock"), pytest.mark.slow]

CLOCK = Seconds(BatchTime([Line(90, 1), Line(0, 10)], kv_ns=3, prompt_ns=2))
ROOF = Seconds(BatchTime([Line(20_000_000, 15_000), Line(7_000_000, 73_000)], kv_ns=31))
HUMPS = generate("two-humps", n=120, seed=1, parameters={"seconds": 40})
FLEET = replace(HUMPS, workers=2)
CHATS = Instance(
    20_000,
    [
        replace(r, arrival=0, arrival_seconds=i / 20)
        for i, r in enumerate(generate("sessions", n=60, memory=20_000, seed=1))
    ],
    block_tokens=16,
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Instance, ServerSetting]:
    block = draw(st.sampled_from([1, 1, 2, 8]))
    memory = block * draw(st.integers(1, 60 // block))
    requests, arrival = [], 0
    for peak in draw(st.lists(st.integers(1, memory), min_size=1, max_size=10)):
        output = draw(st.integers(1, peak))
        arrival += draw(st.sampled_from([0, 0, 1, 7, 30]))
        since, weight = arrival / 10**7, draw(st.sampled_from([1, 3]))
        requests.append(Request(0, peak - output, output, arrival_seconds=since, weight=weight))
    most = draw(st.sampled_from([None, 2]))
    cap, chunked = draw(st.sampled_from([1, 2, 3, 100])), draw(st.booleans())
    budget = cap + draw(st.sampled_from([0, 1, 5, 40]))
    if not chunked:
        budget = max(budget, *(request.peak for request in requests), 0)
    setting = ServerSetting(
        draw(st.sampled_from(ORDERS)), budget, cap, draw(st.sampled_from([None, 1, 2])), chunked,
        block,
    )  # fmt: skip
    return Instance(memory, requests, max_active=most, block_size=block), setting


def run_in_loops(instance: Instance, setting: ServerSetting) -> PolicyRun:
    events = OneServer(instance, CLOCK).events(setting.by, setting.limits())
    return PolicyRun(instance, clock=CLOCK, policy="loops", **events)


@examples(150)
@given(cases())
def test_a_run_in_loops_is_the_run_of_the_policy(case: tuple[Instance, ServerSetting]) -> None:
    instance, setting = case
    named, ours = run(instance, setting.label, clock=CLOCK), run_in_loops(instance, setting)
    assert ours.violations() == []
    assert ours.segments == named.segments
    assert sorted(ours.chunks) == sorted(chunks for chunks in named.chunks if chunks.tokens)
    latency, pauses = OneServer(instance, CLOCK).latency(setting.by, setting.limits())
    assert latency == ours.objective == named.objective
    assert pauses == (named.pauses > 0)


@examples(40)
@given(cases(), st.integers(0, 3))
def test_settings_over_time_make_runs(case: tuple[Instance, ServerSetting], seed: int) -> None:
    instance, setting = case
    server = OneServer(instance, CLOCK)
    windows = SettingsByWindow(server, setting, Budget(), seed, may_pause=True)
    windows.divide(2)
    for _ in range(3):
        windows.go_over(2)
    made = PolicyRun(instance, clock=CLOCK, policy="x", **windows.events())
    assert made.violations() == []
    assert made.objective == windows.best <= run_in_loops(instance, setting).objective


def searched(instance: Instance, scope: Scope, budget: Budget | None = None) -> Search:
    search = Search(Problem(instance, clock=ROOF, scope=scope), Limits())
    budget = budget or Budget(2.0)
    search_servers(search, budget.part(0.5))
    if search.is_led_by_server:
        search_over_time(search, budget)
    return search


@pytest.mark.parametrize("instance", [HUMPS, FLEET, CHATS], ids=["humps", "fleet", "chats"])
def test_answers_are_runs_of_policies_and_the_schedule_is_as_good(instance: Instance) -> None:
    search = searched(instance, Scope.SHARING_PAUSES_AND_CHUNKS)
    assert known(search.best).violations() == []
    answers = search.result("auto").settings
    assert list(answers) == ["all", "vllm", "vllm without outputs"]
    means = [answer["mean_seconds"] for answer in answers.values()]
    assert means == sorted(means)
    assert known(search.best).objective / len(instance) / 1e9 <= means[0] * (1 + 1e-12)
    for answer in answers.values():
        again = run(instance, answer["policy"], clock=ROOF, router=answer.get("router", "central"))
        assert again.objective / len(instance) / 1e9 == pytest.approx(answer["mean_seconds"])
    assert answers["vllm"]["vllm"].startswith("--max-num-batched-tokens ")


@pytest.mark.parametrize("prompts", [None, 2])
@pytest.mark.parametrize("by", ORDERS)
def test_settings_are_read_from_their_policy(by: str, prompts: int | None) -> None:
    setting = ServerSetting(by, 700, 33, prompts, chunked=False, block=4)
    assert ServerSetting.of_policy(setting.label) == setting


def test_settings_over_time_beat_the_best_settings() -> None:
    search = searched(HUMPS, Scope.PAUSES_AND_CHUNKS, Budget())
    assert search.found_by == OVER_TIME
    again = searched(HUMPS, Scope.PAUSES_AND_CHUNKS, Budget())
    assert known(search.best).objective == known(again.best).objective


def test_settings_by_load_are_chosen_on_one_half_and_judged_on_the_other() -> None:
    long = generate("two-humps", n=1_000, seed=2, parameters={"seconds": 300})
    first = ServerSetting("prompt", 1024, 256)
    found = known(settings_by_load(long, ROOF, first, Budget()))
    assert [one.by for one in found.settings] == ["prompt"] * 3
    assert found.mean_in_hindsight <= found.mean
    in_order = sorted(range(1_000), key=lambda i: long[i].arrival_seconds or 0.0)
    half = long.of_one_worker(sorted(in_order[500:]))
    assert found.mean < run(half, first.label, clock=ROOF).objective / 500 / 1e9
    assert "simulated" in found.sentence
    assert f"{found.mean:.3f} s" in found.sentence
    assert settings_by_load(HUMPS, ROOF, first, Budget()) is None
    assert settings_by_load(long, ROOF, first, Budget(0.0)) is None


def test_whole_prompts_stay_whole() -> None:
    search = searched(HUMPS, Scope.RUNS)
    assert known(search.best).scope is Scope.RUNS
    assert "chunked=0" in search.result("auto").settings["vllm"]["policy"]


def test_where_every_run_pauses_others_have_the_time() -> None:
    short = Instance(30, [Request(0, 1, 25, arrival_seconds=0.0) for _ in range(12)])
    search = searched(short, Scope.CHUNKS)
    assert search.best is None or search.best.scope is not Scope.PAUSES_AND_CHUNKS


def test_nothing_is_offered_without_time() -> None:
    assert searched(HUMPS, Scope.PAUSES_AND_CHUNKS, Budget(0.0)).best is None


def test_large_numbers_and_no_requests_are_left_alone() -> None:
    assert OneServer.of(Instance(2**50, [Request(0, 1, 2**40)]), CLOCK) is None
    assert searched(Instance(9, []), Scope.PAUSES_AND_CHUNKS).best is None


def test_a_grid_begins_on_a_sample_and_keeps_the_limits_of_servers() -> None:
    arrivals = list(range(10))
    many = Instance(9, [Request(0, i % 3, 1, arrival_seconds=float(i)) for i in arrivals])
    part = known(sampled(many, arrivals, 4))
    assert [r.arrival_seconds for r in part] == [3.0, 4.0, 5.0, 6.0]
    assert sampled(many, arrivals, 6) is None
    grid = SettingsGrid(HUMPS, ROOF.batch_time, chunked=False)
    largest = max(request.peak for request in HUMPS)
    assert all(point.budget >= max(largest, point.cap) for point in grid.points())
    assert 224 in SettingsGrid(HUMPS, ROOF.batch_time, chunked=True).budgets  # where the lines meet
    made = Explored(lambda _: math.inf, Budget())
    made.try_all(grid.points())
    assert made.best() is None


@pytest.mark.parametrize("prompts", ["0", "x"])
def test_a_limit_of_prompts_is_at_least_one(prompts: str) -> None:
    with pytest.raises(InvalidInput, match="prompts"):
        run(HUMPS, f"vllm-fcfs:prompts={prompts}", clock=ROOF)


def test_solve_names_the_settings() -> None:
    found = solve(HUMPS, clock=ROOF, scope="pauses+chunks", time_limit=1.0)
    assert found.to_json()["settings"] == found.settings
    assert found.settings["all"]["policy"] in str(found)
    assert found.certificate().provenance["settings"] == found.settings


@pytest.mark.parametrize("block", [1, 16])
def test_good_settings_of_classes_are_as_good_as_the_simulator_says(block: int) -> None:
    requests = replace(HUMPS, block_size=block)
    problem = Problem(requests, ROOF, Scope.PAUSES_AND_CHUNKS)
    kinds = [lambda s: s.by == "arrival", lambda s: s.by == "prompt" and s.prompts is None]
    ranked = good_settings(problem, kinds, 3, Budget(1.0))
    for kind, settings in zip(kinds, ranked, strict=True):
        assert settings
        assert all(map(kind, settings))
        latencies = [run(problem, setting.label).objective for setting in settings]
        assert latencies == sorted({*latencies})
    assert good_settings(problem, kinds, 3, Budget(0.0)) == [[], []]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_order_by_prefixes_is_for_the_simulator_alone(workers: int) -> None:
    requests = (Request(0, 2, 1), Request(0, 3, 1, prefix=("a",)))  # the first machine shares none
    instance = Instance(8, requests, workers=workers, block_tokens=1)
    problem = Problem(instance, ROOF, Scope.SHARING)
    (settings,) = good_settings(problem, [lambda _: True], 3, Budget(1.0))
    assert settings
    assert all(setting.by != "work" for setting in settings)
    assert solve(problem, time_limit=0.5).schedule is not None

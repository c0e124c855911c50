"""Fleets in seconds: the search against brute force, limits, Ctrl-C, the command."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from signal import SIGINT, raise_signal

import pytest
from commands import Run
from effort import many
from known import known
from strategies import batch_time, drawn_in_seconds, optimum_of

from kvopt import (
    BatchTime,
    Instance,
    Line,
    Progress,
    Request,
    SolveResult,
    certify,
    gap_below,
    generate,
    run,
    solve,
    write_instance,
)
from kvopt.heuristics.seconds.worker_moves import (
    offer_one_by_one,
    search_moves,
    search_routed,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import PRESETS
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search import stages
from kvopt.timetable.policy_run import PolicyRun

CLOCK = Seconds(BatchTime([Line(40_000_000, 100_000)], kv_ns=200))
CHAT = generate("conversation", n=60, memory=2_000, seed=2)
FLEET = Instance(
    2_000,
    [Request(0, r.prompt, r.output, arrival_seconds=0.5 * i) for i, r in enumerate(CHAT.requests)],
    workers=2,
)


def checked(found: SolveResult) -> None:
    """Both sides must be there, and be true."""
    run = found.schedule
    assert isinstance(run, PolicyRun)
    assert run.violations() == []
    assert found.objective == run.objective == sum(run.latencies)
    assert found.lower_bound is not None
    assert found.lower_bound <= (found.objective or 0)
    assert not found.faults
    assert (str(found.status) == "optimal") == (found.objective == found.lower_bound)


def test_moves_stay_above_brute_force_and_reach_it_often() -> None:
    reached = 0
    for seed in range(12):
        instance, server = drawn_in_seconds(3 * seed)
        search = Search(Problem(instance, Seconds(batch_time(server))))
        search_routed(search)
        search_moves(search, seed)
        assert isinstance(known(search.best), PolicyRun)
        assert known(search.best).violations() == []
        best = optimum_of(instance, server=server)
        assert (search.objective or 0) >= best, seed
        reached += search.objective == best
    assert reached >= 9


@pytest.mark.usefixtures("processor_clock")
def test_moves_beat_every_router() -> None:
    values = [
        run(FLEET, policy, router=router, clock=CLOCK).objective
        for router in ("central", "least-volume")
        for policy in ("svf", "fcfs")
    ]
    search = Search(Problem(FLEET, CLOCK))
    search_routed(search)
    routed = known(search.objective)
    assert routed <= min(known(value) for value in values)

    def better(now: Progress) -> bool:
        return now.objective is not None and now.objective < routed

    # The limit is only there to end a search that finds none.
    found = solve(FLEET, clock=CLOCK, time_limit=120, stop=better)
    checked(found)
    assert known(found.objective) < routed
    assert found.found_by == "moves between workers"


def test_moves_are_repeatable() -> None:
    values = []
    for _ in range(2):
        few = Instance(2_000, FLEET.requests[:8], workers=2)
        search = Search(Problem(few, CLOCK))
        search_routed(search)
        search_moves(search, 5)
        values.append(search.objective)
    assert values[0] == values[1]


def test_limits_and_interrupts_keep_both_sides() -> None:
    nothing = solve(FLEET, clock=CLOCK, time_limit=0)
    checked(nothing)
    assert nothing.found_by == "one after another"
    assert str(nothing.stop_reason) == "time-limit"
    enough = solve(FLEET, clock=CLOCK, stop=gap_below(0.99))
    checked(enough)
    assert str(enough.stop_reason) == "gap"
    search: Search = Search(
        Problem(FLEET, CLOCK), Limits(observer=lambda _: search.granted.interrupt(2))
    )
    search_routed(search)
    first = search.objective
    search_moves(search)
    assert search.objective == known(first)
    assert search.result("auto").signal_number == 2


def test_a_result_becomes_a_table_and_a_picture() -> None:
    found = solve(Instance(5, [Request(0, 2, 1)] * 3, "three", workers=2), clock=CLOCK)
    row = found.to_dataframe().iloc[0]
    assert row["objective_ns"] == found.objective
    assert (row["instance"], row["requests"]) == ("three", 3)
    assert "seconds" in str(found.facts()["total latency"])
    assert found.plot() is not None


def test_no_requests_take_no_time() -> None:
    found = solve(Instance(5, [], workers=2), clock=CLOCK)
    assert (found.objective, found.lower_bound, str(found.status)) == (0, 0, "optimal")


def test_solve_prints_seconds_and_workers(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    write_instance(Instance(3, [Request(0, 0, 3), Request(0, 0, 3), Request(0, 1, 2)]), file)
    said = run.json("solve", file, "--workers", "2", "--seconds")
    assert said["status"] == "optimal"
    assert said["objective_seconds"] == said["lower_bound_seconds"]
    assert sorted(set(said["workers"])) == [0, 1]
    assert len(said["starts"]) == len(said["starts_seconds"]) == 3


def test_options_of_searches_are_for_seconds_too(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    write_instance(Instance(2_000, FLEET.requests[:8], workers=2), file)
    options = "--cold", "--ram", "2G", "--scope", "restarts", "-t", "0.5", "--json"
    out = run.done("solve", file, "--seconds", *options)[0]
    assert json.loads(out)["scope"] == "restarts"


def test_a_run_of_many_rounds_does_not_exhaust_the_stack() -> None:
    requests = [Request(0, 0, 700), Request(0, 300, 600), Request(0, 5, 650)]
    found = solve(Instance(1300, requests), clock=CLOCK, time_limit=1)
    assert found.schedule is not None
    assert known(found.lower_bound) <= known(found.objective)


def test_all_files_are_looked_at_before_the_first_is_solved(run: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    write_instance(FLEET, good)
    write_instance(Instance(9, [Request(3, 1, 1)]), bad)
    code, out, err = run("solve", good, bad, "--seconds", "--time-limit", "600")
    assert code == 2
    assert not out
    assert "bad.json" in err


# ---- the exhaustive search beside policies

POLICIES = ("svf", "mc-sf", "fcfs")
LLAMA = Seconds(PRESETS["llama-2-70b-2xa100"])
WORSE = Instance(12, [Request(0, 0, 2), Request(0, 5, 3)])
"""Where `certify` had 862, and the optimum is 630."""
WORSE_CLOCK = Seconds(BatchTime([Line(9, 11), Line(19, 41)], kv_ns=1, prompt_ns=30))


def test_a_claim_of_the_exhaustive_search_is_no_bound_of_a_certificate() -> None:
    found = certify(WORSE, clock=WORSE_CLOCK)
    result = solve(WORSE, clock=WORSE_CLOCK)
    best = known(result.objective)
    assert str(result.bound_source) == "solver"
    assert found.objective == best > (found.lower_bound or 0)
    claim = f"exhaustive search claims that no schedule is below {best:,} ns;"
    assert found.notes[-1].startswith(claim)


@pytest.mark.parametrize("workers", [1, 2])
def test_policies_come_before_the_exhaustive_search(workers: int) -> None:
    """A limit may end that before it has found anything."""
    for seed in range(many(8)):
        rng = random.Random(seed)
        requests = [Request(0, rng.randint(0, 300), rng.randint(1, 300)) for _ in range(6)]
        instance = Instance(600, requests, workers=workers)
        found = solve(instance, clock=LLAMA, stop=lambda now: now.engine == "exact")
        values = [run(instance, name, clock=LLAMA).objective for name in POLICIES]
        assert found.objective == min(value for value in values if value is not None)


@pytest.mark.parametrize("output", [20_000, 4 * 10**10])
@pytest.mark.parametrize("workers", [1, 2])
def test_long_outputs_are_not_laid_out_round_by_round(output: int, workers: int) -> None:
    """Twice as many rounds took four times as long; 4 * 10^10 of them do not fit anywhere."""
    requests = [Request(0, 5, output)] * 2
    instance = Instance(output + 5, requests, workers=workers)
    found = solve(instance, clock=LLAMA)
    assert found.schedule is not None
    assert (found.lower_bound or 0) <= (found.objective or 0)
    said = f"exhaustive search: an output has {output:,} tokens; the limit is 400"
    assert str(found.status) == "optimal" or said in found.notes


def test_clocks_that_count_from_1970(run: Run, tmp_path: Path) -> None:
    requests = [Request(0, 1, 3, arrival_seconds=1764000000.0 + i / 100) for i in range(3)]
    write_instance(Instance(8, requests), tmp_path / "i.json")
    common = (tmp_path / "i.json", "--seconds", "--json")
    _, out, _ = run("solve", *common)
    best = json.loads(out)["objective_ns"]
    code, out, _ = run("certify", *common, "-o", tmp_path / "c.json")
    assert (code, json.loads(out)["upper_ns"]) == (0, best)
    assert run("verify", tmp_path / "c.json")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("family", ["sessions", "conversation"])
def test_an_interrupt_of_the_first_bound_leaves_a_good_schedule(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = generate(family, n=60, memory=20_000, seed=2)
    busy = replace(rows, requests=[replace(r, arrival_seconds=0.01 * r.arrival) for r in rows])
    problem = Problem(busy, CLOCK, scope=Scope.parse("sharing+pauses+chunks"))
    monkeypatch.setattr(stages, "seconds_bound", lambda *_, **__: raise_signal(SIGINT))
    slow = Search(problem)
    offer_one_by_one(slow)
    assert slow.objective is not None
    for found in (solve(problem), certify(problem)):
        assert found.objective is not None
        assert 2 * found.objective < slow.objective

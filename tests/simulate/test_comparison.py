"""Runs side by side: each is what it is alone, and what is of no use together is refused."""

from __future__ import annotations

import pandas as pd
import pytest
from known import known

from kvopt import (
    Comparison,
    Instance,
    InvalidInput,
    Request,
    Schedule,
    certify,
    compare,
    generate,
    run,
    solve,
)
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import Seconds
from kvopt.timetable.waiting_times import MEASURES

pytestmark = pytest.mark.usefixtures("processor_clock")

SMALL = generate("arrival-1", n=6, seed=3)
LOOP = "alpha-protect:alpha=0.2"


def test_a_comparison_holds_the_runs_in_their_order() -> None:
    found = compare(SMALL, ["mc-sf", "fcfs", LOOP])
    assert len(found) == 3
    assert [each.policy for each in found] == ["mc-sf", "fcfs", LOOP]
    assert found[1].starts == run(SMALL, "fcfs").starts
    assert found.best == run(SMALL, "mc-sf").objective
    assert "livelock" in str(found)
    assert compare(SMALL, "svf")[0].policy == "svf"


def test_its_table_has_the_measures_of_the_runs() -> None:
    found = compare(SMALL, ["mc-sf", LOOP])
    first, second = found.to_dataframe().to_dict("records")
    assert first["total_latency"] == found[0].objective
    for name in MEASURES:
        assert first[f"{name}_p99"] == found[0].measures()[name]["p99"]
    assert pd.isna(second["total_latency"])
    assert pd.isna(second["latency_mean"])
    assert second["evictions"] == found[1].evictions


def test_run_sends_several_policies_here() -> None:
    with pytest.raises(InvalidInput, match=r"policy: must be a single one; kvopt\.compare"):
        run(SMALL, ["mc-sf", "fcfs"])  # type: ignore[arg-type]


def test_totals_are_in_seconds() -> None:
    found = compare(SMALL, ["mc-sf"], clock=Seconds(BatchTime([Line(500_000_000, 0)])))
    (row,) = found.to_dataframe().to_dict("records")
    assert found[0].objective is not None
    assert row["total_latency"] == found[0].objective / 1e9


def test_runs_that_cannot_be_compared_are_refused() -> None:
    other = run(Instance(9, [Request(0, 1, 2)]), "svf")
    with pytest.raises(InvalidInput, match="run of svf: is of another instance or clock"):
        Comparison([run(SMALL, "svf"), other])
    with pytest.raises(InvalidInput, match="at least one"):
        Comparison([])


def test_schedules_and_results_stand_beside_policies() -> None:
    result = solve(SMALL)
    starts = result.starts or ()
    found = compare(SMALL, ["fcfs", Schedule(SMALL, starts), result, starts])
    assert [each.policy for each in found] == ["fcfs", "schedule 2", "optimal 3", "schedule 4"]
    assert [each.objective for each in found.runs[1:]] == [result.objective] * 3
    assert compare(SMALL, [certify(SMALL)]).optimum == result.objective


def test_totals_are_multiples_of_the_optimum_where_it_is_known() -> None:
    result = solve(SMALL)
    assert result.objective is not None
    compared = compare(SMALL, ["fcfs", result])
    worst = known(compared[0].objective)
    assert compared.to_dataframe()["times_the_optimum"].tolist() == [worst / result.objective, 1]
    assert "times the optimum" in str(compared)
    unknown = compare(SMALL, ["fcfs", solve(SMALL, time_limit=0, quick_start=False, start="svf")])
    assert unknown.optimum is None
    assert "times_the_best_of_these" in unknown.to_dataframe()
    assert "times the best of these" in str(unknown)


def test_an_optimum_of_runs_says_nothing_of_what_pauses() -> None:
    pair = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    plain, paused = solve(pair), solve(pair, scope="pauses")
    assert compare(pair, [plain, "svf"]).optimum == 14
    found = compare(pair, [plain, paused])
    assert found.optimum == found.best == 12
    assert compare(pair, [plain, known(paused.schedule)]).optimum is None


def test_results_are_compared_on_their_own_clock() -> None:
    fleet = Instance(9, [Request(0, 1, 3)] * 5, workers=2)
    result = solve(fleet)
    found = compare(fleet, ["svf", result])
    assert found[1].objective == result.objective
    assert found[1].violations() == []
    clock = Seconds(BatchTime([Line(500_000_000, 0)]))
    timed = solve(SMALL, clock=clock, time_limit=1)
    assert compare(SMALL, ["svf", timed], clock=clock)[1].objective == timed.objective
    with pytest.raises(InvalidInput, match="is of another instance or clock than the first"):
        compare(SMALL, ["svf", solve(SMALL)], clock=clock)

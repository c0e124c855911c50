"""Engines against brute force, against each other, and against their own claims."""

from __future__ import annotations

import random
from pathlib import Path

import brute_force
import pyomo.environ as pyo
import pytest
from commands import Run
from effort import many
from known import known
from strategies import instance_of, plain, random_instances

from kvopt import (
    Instance,
    InvalidInput,
    Request,
    SolveResult,
    Status,
    bound,
    gap_below,
    generate,
    solve,
    solve_many,
    write_instance,
)
from kvopt.errors import SolverFault
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import PriceProof, VolumeProof
from kvopt.incumbent.result import BoundSource, Progress, StopReason
from kvopt.kernels.budget import Budget
from kvopt.search.engines import engine_of
from kvopt.search.solvers.pyomo_worker import EXACT
from kvopt.search.stages import solve_lp
from kvopt.timetable.schedule import Schedule

IN_PROCESS = ("highs", "cpsat", "auto")
ALL = (*IN_PROCESS, "pyomo")

WORKED = [
    (Instance(64, [Request(0, 63, 1), *[Request(0, 1, 2)] * 21]), 45),
    (Instance(10, [Request(0, 1, 1)] * 5), 5),
    (Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)]), 12),
    (Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), 27),
    (Instance(4, [Request(0, 0, o) for o in (2, 2, 3, 3)]), 15),
    (Instance(4, [Request(0, 0, 2), Request(0, 2, 1)]), 3),
    (Instance(5, [Request(2, 2, 3), Request(4, 3, 2)]), 6),
    (Instance(3, [Request(0, 2, 1)] * 2), 3),
    (Instance(5, []), 0),
]


def assert_sound(result: SolveResult, optimum: int) -> None:
    """Check everything a result says against a known optimum."""
    assert result.status is Status.OPTIMAL
    assert result.stop_reason is StopReason.PROVED
    assert result.objective == result.lower_bound == optimum
    assert known(result.schedule).check().feasible
    assert result.bound_source is not None
    assert not result.faults


@pytest.mark.parametrize("engine", IN_PROCESS)
@pytest.mark.parametrize("quick_start", [True, False])
@pytest.mark.parametrize(("instance", "optimum"), WORKED)
def test_worked_cases_are_solved(
    engine: str, quick_start: bool, instance: Instance, optimum: int
) -> None:
    assert_sound(solve(instance, engine, quick_start=quick_start), optimum)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "count"), [*((name, many(250)) for name in IN_PROCESS), ("pyomo", 2)]
)
def test_engines_agree_with_brute_force(engine: str, count: int) -> None:
    for number, instance in enumerate(random_instances(count, ALL.index(engine))):
        optimum = brute_force.optimum(*plain(instance))
        presolve, quick = number % 2 == 0, number % 5 > 0
        found = solve(
            instance, engine, seed=number % 3, presolve=presolve, quick_start=quick, threads=1
        )
        assert_sound(found, optimum)


@pytest.mark.slow
@pytest.mark.parametrize("engine", IN_PROCESS)
def test_the_same_seed_gives_the_same_result(engine: str) -> None:
    instance = instance_of(12, [(0, 2, 5), (0, 1, 7), (1, 3, 4), (2, 0, 9), (2, 4, 3)])
    first = solve(instance, engine, seed=1, threads=1)
    again = solve(instance, engine, seed=1, threads=1)
    assert (first.starts, first.lower_bound) == (again.starts, again.lower_bound)


def hard_instance(n: int = 40) -> Instance:
    source = random.Random(1)
    requests = [Request(0, source.randint(1, 5), source.randint(1, 30)) for _ in range(n)]
    return Instance(40, requests)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ALL)
def test_a_limit_keeps_both_sides(engine: str) -> None:
    result = solve(hard_instance(), engine, time_limit=0.5)
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.status is Status.FEASIBLE
    assert known(result.lower_bound) <= known(result.objective)


class FastClock(Budget):
    """Solvers are told of less time than there is, as if their clocks were fast."""

    told: float

    @property
    def left(self) -> float:
        return min(self.told, super().left)


def hurried(n: int, told: float) -> Search:
    """Return a search whose solvers have a fast clock."""
    clock = FastClock(100.0)
    clock.told = told
    search = Search(hard_instance(n), budget=clock)
    search.budget = clock
    return search


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ALL if name not in ("auto", "exact")])
def test_a_solver_that_ends_before_the_deadline_ran_out_of_time(engine: str) -> None:
    search = hurried(25, 0.3)
    offer_list_schedules(search)
    engine_of(engine)(search)
    result = search.result(engine)
    assert result.stop_reason is StopReason.TIME_LIMIT
    assert result.status is Status.FEASIBLE


def test_a_share_of_the_time_is_not_all_of_it() -> None:
    search = Search(hard_instance(), Limits(time_limit=100.0))
    assert not solve_lp(search, search.budget.part(most=1e-3))
    assert search.result("lp").stop_reason is StopReason.NO_ENGINE
    assert not search.budget.over()


def test_no_time_and_no_quick_start_is_unknown_on_both_sides() -> None:
    result = solve(WORKED[0][0], "highs", time_limit=0, quick_start=False)
    assert result.status is Status.UNKNOWN
    assert result.objective is None
    assert result.lower_bound is None
    assert result.starts is None
    assert result.gap is None


def test_a_gap_that_is_good_enough_ends_the_search() -> None:
    instance = instance_of(30, [(0, 2, 5 + i) for i in range(20)])
    result = solve(instance, "cpsat", stop=gap_below(0.9))
    assert result.stop_reason is StopReason.GAP
    assert known(result.gap) <= 0.9


@pytest.mark.parametrize("target", [5, 1, 1.0, -0.1, float("nan")])
def test_a_gap_is_a_share_below_1(target: float) -> None:
    with pytest.raises(InvalidInput):
        gap_below(target)


@pytest.mark.parametrize("engine", ["cpsat", "exact"])
def test_observers_see_both_sides_move(engine: str) -> None:
    seen: list[Progress] = []
    result = solve(WORKED[3][0], engine, observer=seen.append, quick_start=False)
    assert seen[-1].objective == result.objective
    assert seen[-1].lower_bound == result.lower_bound
    objectives = [p.objective for p in seen if p.objective is not None]
    assert objectives == sorted(objectives, reverse=True)
    bounds = [p.lower_bound for p in seen if p.lower_bound is not None]
    assert bounds == sorted(bounds)


@pytest.mark.parametrize("engine", ["cpsat", "exact"])
def test_an_error_in_a_callback_is_raised_where_the_caller_can_see_it(engine: str) -> None:
    def broken(progress: Progress) -> None:
        raise RuntimeError(f"at {progress.objective}")

    with pytest.raises(RuntimeError, match="at "):
        solve(WORKED[3][0], engine, observer=broken)


def test_engines_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInput, match="engine"):
        solve(WORKED[2][0], "gurobi")


class TestClaims:
    """What a faulty solver could say, and what becomes of it."""

    instance = WORKED[2][0]

    def test_an_infeasible_schedule_is_dropped(self) -> None:
        search = Search(self.instance)
        with pytest.warns(SolverFault, match="infeasible"):
            assert not search.offer_starts((0, 0, 0, 0), "a solver")
        assert search.result("test").schedule is None
        assert search.result("test").faults

    def test_a_bound_above_a_checked_schedule_is_dropped(self) -> None:
        search = Search(self.instance)
        search.offer_checked(11, "volume", VolumeProof())
        search.offer_claimed(13, "a solver")
        with pytest.warns(SolverFault, match="13"):
            search.offer_starts((0, 0, 0, 2), "list")
        result = search.result("test")
        assert (result.objective, result.lower_bound) == (12, 11)
        assert result.bound_source is BoundSource.CHECKED
        assert result.status is Status.FEASIBLE

    def test_a_wrong_bound_after_the_schedule_is_dropped_too(self) -> None:
        search = Search(self.instance)
        search.offer_starts((0, 0, 0, 2), "list")
        with pytest.warns(SolverFault):
            search.offer_claimed(13, "a solver")
        assert search.result("test").lower_bound is None

    def test_a_wrong_checked_bound_is_a_bug_and_stops_everything(self) -> None:
        search = Search(self.instance)
        search.offer_starts((0, 0, 0, 2), "list")
        with pytest.raises(AssertionError):
            search.offer_checked(13, "volume", VolumeProof())

    def test_a_checked_bound_replaces_an_equal_word(self) -> None:
        search = Search(self.instance)
        search.offer_claimed(12, "a solver")
        search.offer_checked(12, "lp", VolumeProof())
        search.offer_claimed(12, "a solver")
        assert search.result("test").bound_source is BoundSource.CHECKED


@pytest.mark.parametrize("engine", ["highs", "cpsat"])
def test_a_late_or_swapped_start_does_no_harm(engine: str) -> None:
    """A start outside the windows, and equal requests in the other order, are still a start."""
    instance = Instance(3, [Request(0, 1, 2), Request(0, 1, 2), Request(0, 0, 1)])
    start = Schedule(instance, (40, 2, 0))
    result = solve(instance, engine, start=start, quick_start=False)
    assert result.objective == 7
    assert result.status is Status.OPTIMAL
    assert result.faults == ()


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_prices_to_begin_from_are_evaluated_again(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = generate("conversation", n=60, memory=1_500, seed=1)
    proof = known(bound(instance, "lagrangian", time_limit=1).checked)
    assert isinstance(proof.proof, PriceProof)
    if compiled:
        monkeypatch.setattr("kvopt.bounds.prices._FEW_COSTS", 0)
    result = solve(instance, time_limit=0, prices=proof.proof)
    assert result.lower_bound == proof.value
    assert result.bound_source is BoundSource.CHECKED


# ---- what solvers of Pyomo call optimal


def least_slack(options: dict[str, float]) -> float:
    """Return what HiGHS calls the least slack of some equations, beside a large constant."""
    rng = random.Random(5)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(14), within=pyo.Binary)
    model.misses = pyo.Var(range(2), within=pyo.NonNegativeIntegers)
    model.rows = pyo.ConstraintList()
    for row in range(2):
        weights = [rng.randrange(100) for _ in model.x]
        held = sum(weight * model.x[i] for i, weight in enumerate(weights))
        model.rows.add(held + model.misses[row] >= sum(weights) // 2)
        model.rows.add(held - model.misses[row] <= sum(weights) // 2)
    model.cost = pyo.Objective(expr=1_000_000 + model.misses[0] + model.misses[1])
    solver = pyo.SolverFactory("appsi_highs")
    solver.options.update(options)
    solver.solve(model)
    return float(pyo.value(model.cost))


@pytest.mark.slow
def test_highs_goes_on_until_no_better_integer_is_left() -> None:
    careless, exact = least_slack({}), least_slack(EXACT["appsi_highs"])
    assert exact < careless - 0.5


# ---- the plan says which stages apply, and a result which ran


INSTANCE = Instance(7, [Request(0, 1, output) for output in (1, 2, 3, 4)])


@pytest.mark.parametrize(
    ("options", "stage"),
    [
        ((), "exact"),
        (("--scope", "pauses"), "all with pauses"),
        (("--workers", "2"), "proof by a solver"),
        (("--block-size", "2"), "longer prompts"),
        (("--seconds",), "bounds in seconds"),
    ],
)
def test_stages_that_apply_are_named_with_their_times(
    options: tuple[str, ...], stage: str, run: Run, tmp_path: Path
) -> None:
    write_instance(INSTANCE, tmp_path / "i.json")
    out = run.done("solve", tmp_path / "i.json", "--explain", *options)[0]
    assert stage in out
    assert "nan" not in out


def test_a_result_says_which_stages_ran_and_what_they_brought() -> None:
    found = solve(INSTANCE, time_limit=0)
    assert [log.name for log in found.stages] == ["volume", "staircases", "list schedules"]
    assert found.stages[0].rose == 11
    assert str(found.stages[2]).endswith("the first schedule")


# ---- several instances in one call, a table of progress, and other fields of an insta


@pytest.mark.slow
def test_processes_find_what_one_process_finds(capfd: pytest.CaptureFixture[str]) -> None:
    instances = [generate("arrival-1", n=5, seed=seed) for seed in range(3)]
    found = solve_many(instances, "exact", jobs=2, display=True, time_limit=60)
    expected = [solve(instance, "exact").objective for instance in instances]
    assert [None if each is None else each.objective for each in found] == expected
    lines = capfd.readouterr().err.splitlines()
    assert [line[:6] for line in lines] == ["1 of 3", "2 of 3", "3 of 3"]


def test_what_no_process_can_be_handed_is_refused() -> None:
    with pytest.raises(InvalidInput, match="stop: is a function"):
        solve_many([], stop=lambda _: True)
    with pytest.raises(InvalidInput, match="jobs: must be at least 1"):
        solve_many([], jobs=0)


def test_a_table_of_progress_ends_with_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    result = solve(generate("arrival-1", n=5, seed=1), display=True)
    heads, *rows = capsys.readouterr().err.splitlines()
    assert heads.split() == ["seconds", "latency", "bound", "gap", "by"]
    assert rows[-1].split()[1:4] == [f"{result.objective:,}", f"{result.lower_bound:,}", "0.00%"]


def test_other_fields_of_an_instance_are_checked_again() -> None:
    instance = generate("arrival-1", n=5, seed=1)
    larger = instance.replace(memory=100, name="larger")
    assert (larger.memory, larger.name, larger.requests) == (100, "larger", instance.requests)
    with pytest.raises(InvalidInput, match="memory"):
        instance.replace(memory=1)

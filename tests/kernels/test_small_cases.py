"""Every family of kernels on tiny cases, against oracles that share no code with kvopt.

They are small enough for kernels as plain Python: `make coverage-kernels` runs them so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from brute_force import Due, Server, most_in_time, optimum, tel
from known import known
from strategies import batch_time, drawn_fleet, plain, random_instances, timed_instance

from kvopt import Instance, Schedule, bound, certify, heuristics, solve
from kvopt.bounds import lagrangian
from kvopt.bounds.slo_ceiling import least_times, slo_ceiling, spans_of
from kvopt.heuristics import reinsertion
from kvopt.heuristics.attaining.in_rounds import attaining_in_rounds
from kvopt.heuristics.attaining.in_seconds import attaining_in_seconds
from kvopt.heuristics.fleets.fluid_orders import fluid_of, placed
from kvopt.heuristics.fleets.placing import Tries
from kvopt.heuristics.list_schedules import one_after_another
from kvopt.heuristics.reinsertion import search_reinsertions, search_with_pauses
from kvopt.heuristics.trace_beams import search_traces
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.params import SolveParams
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.problem.slo import Levels
from kvopt.search.exact import exact_engine as engine
from kvopt.search.exact import forward as searches
from kvopt.search.exact.tiny_optimum import best_below

pytestmark = [pytest.mark.interpreted, pytest.mark.slow]

BRIEF = SolveParams(improve_widest_beam=3)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every stage of a search begin, and end soon."""
    improve_soon = partial(heuristics.improve, beam_requests=2)
    brief_search = partial(search_reinsertions, longest_cycle=60)
    brief_pauses = partial(search_with_pauses, longest_cycle=60)
    monkeypatch.setattr(heuristics, "improve", improve_soon)
    monkeypatch.setattr(engine, "improve", improve_soon)
    monkeypatch.setattr(reinsertion, "search_reinsertions", brief_search)
    monkeypatch.setattr(reinsertion, "search_with_pauses", brief_pauses)
    monkeypatch.setattr(lagrangian, "MAX_STEPS", 4)


def drawn(count: int, seed: int, most: int = 5) -> list[Instance]:
    return list(random_instances(count, seed, least_requests=2, most_requests=most, most_memory=8))


@pytest.mark.parametrize("many", [False, True])
def test_exact_search_finds_the_optimum(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few requests are also searched as many are, with a look-ahead and completion bounds."""
    limits = Limits(threads=1)
    if many:
        params = SolveParams(exact_searchable=0, exact_checkable_labels=0)
        limits = Limits(threads=1, params=params)
        for module in (engine, searches):
            monkeypatch.setattr(module, "FIRST_WIDTH", 5)
            monkeypatch.setattr(module, "WIDTH", 5)
        monkeypatch.setattr(searches, "WIDEST_WIDTH", 9)
    for instance in drawn(5, 1):
        search = Search(instance, limits)
        engine.run(search, few_requests=0 if many else 20)
        assert search.lower_bound == search.objective == optimum(*plain(instance))


def test_starts_of_few_requests_are_tried_in_full() -> None:
    for instance in drawn(40, 2):
        memory, requests = plain(instance)
        least = optimum(memory, requests)
        found = known(best_below(memory, requests, least + 1))
        assert found[0] == least == tel(requests, found[1])
        assert best_below(memory, requests, least) is None
    assert (best_below(3, (), 1), best_below(3, (), 0)) == ((0, []), None)


def test_pauses_are_searched_in_full() -> None:
    for instance in drawn(12, 3, most=4):
        memory, requests = plain(instance)
        least = optimum(memory, requests, scope="pauses")
        for target in (least + 1, least + 9):
            assert known(best_below(memory, requests, target, pauses=True))[0] == least
        assert best_below(memory, requests, least, pauses=True) is None
        search = Search(Problem(instance, scope=Scope.PAUSES), Limits(params=BRIEF))
        search_with_pauses(search, search.budget, longest_cycle=60)
        assert (search.objective or 0) >= least


def test_exact_search_with_pauses_finds_the_optimum() -> None:
    for instance in drawn(6, 8, most=4):
        found = solve(instance, scope="pauses", threads=1, params=BRIEF)
        assert found.lower_bound == found.objective == optimum(*plain(instance), scope="pauses")


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("scope", ["runs", "pauses"])
@pytest.mark.parametrize("method", ["lagrangian", "slots"])
def test_bounds_by_prices_are_below_the_optimum(method: str, scope: str, block: int) -> None:
    if method == "slots" and (scope, block) != ("runs", 1):
        pytest.skip("prices of slots are of runs, in tokens")
    values = []
    for instance in drawn(8, 4, most=4):
        whole = replace(instance, memory=instance.memory // block * block + block, block_size=block)
        memory, requests = plain(whole)
        least = optimum(memory, requests, block=block, scope=scope)
        found = bound(whole, method, scope=scope, params=BRIEF)
        assert (found.value or 0) <= least
        values.append(found.value or 0)
    assert max(values) > 0


@pytest.mark.parametrize("seed", range(6))
def test_fleets_are_feasible_and_not_below_the_optimum(seed: int) -> None:
    instance = drawn_fleet(seed)
    memory, requests = plain(instance)
    least = optimum(memory, requests, workers=instance.workers)
    search = Search(instance, Limits(params=BRIEF))
    search.offer(one_after_another(instance), "one after another")
    search_traces(search, search.budget, seed)
    search_reinsertions(search, search.budget, most_passes=1, longest_cycle=60)
    assert search.faults == []
    assert (search.objective or 0) >= least
    made = placed(instance, fluid_of(instance, 0.9), Tries(3, seed), Budget())
    schedule = Schedule(instance, *known(made))
    assert schedule.check().feasible
    assert schedule.objective >= least
    assert solve(instance, quick_start=False, threads=1).objective == least


SERVER = Server([(7, 1), (2, 3)], prompt_ns=2, kv_ns=1)
MODEL = batch_time(SERVER)


def timed(count: int, seed: int) -> Iterator[tuple[Instance, list[tuple[int, int, int]]]]:
    """Yield instances with arrivals in nanoseconds, and their rows."""
    source = random.Random(seed)
    for instance in drawn(count, seed, most=3):
        rows = [(source.randint(0, 40), r.prompt, r.output) for r in instance]
        yield timed_instance(instance.memory, rows), rows


def test_both_sides_in_seconds_have_the_optimum_between_them() -> None:
    for instance, rows in timed(4, 6):
        least = optimum(instance.memory, rows, server=SERVER)
        found = certify(instance, ["svf"], clock=Seconds(MODEL), time_limit=1.0, params=BRIEF)
        assert 0 < (found.lower_bound or 0) <= least <= (found.objective or 0)


def levels_of(due: list[Due]) -> Levels:
    return Levels(*([*column] for column in zip(*due, strict=True)))


@pytest.mark.parametrize("due", [Due(end=20), Due(first=20), Due(20, 15), Due(20, 15, 40)])
def test_as_many_are_in_time_in_seconds_as_can_be(due: Due) -> None:
    for number, (instance, rows) in enumerate(timed(8, 9)):
        more = [25 * ((i + number) % 4) for i in range(len(rows))]
        each = [Due(due.first + n, due.rest + n, due.end + n) for n in more]
        levels = levels_of(each)
        found = slo_ceiling(instance, levels, MODEL)
        spans = spans_of(levels, *least_times(instance, MODEL))
        floor = attaining_in_seconds(instance, MODEL, spans, found.costs)
        most = most_in_time(instance.memory, rows, each, server=SERVER)
        assert known(floor).count <= most <= found.value


@pytest.mark.parametrize("workers", [1, 2])
def test_as_many_are_in_time_as_can_be(workers: int) -> None:
    for drawn_one in drawn(8, 7):
        fleet = replace(drawn_one, workers=workers)
        memory, triples = plain(drawn_one)
        allowed = [1 + (5 * i + row[2]) % 9 for i, row in enumerate(triples)]
        levels = levels_of([Due(end=most) for most in allowed])
        found = slo_ceiling(fleet, levels)
        spans = spans_of(levels, *least_times(fleet, None), runs=True)
        floor = attaining_in_rounds(fleet, spans, found.costs)
        assert (
            known(floor).count
            <= most_in_time(memory, triples, allowed, workers=workers)
            <= found.value
        )


def test_local_search_is_feasible_and_not_below_the_optimum() -> None:
    for instance in drawn(6, 8):
        search = Search(instance, Limits(params=BRIEF, threads=1))
        search.offer(one_after_another(instance), "one after another")
        search_reinsertions(search, search.budget, most_passes=2, longest_cycle=60)
        assert search.faults == []
        assert Schedule(instance, known(search.schedule).starts).check().feasible
        assert (search.objective or 0) >= optimum(*plain(instance))

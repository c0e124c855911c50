"""Ceilings and floors of fleets by a deadline, against all schedules of tiny ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from deadline_oracle import most_by_sets
from effort import many
from fleet_oracle import Dated, most_on_workers
from known import known
from strategies import plain, random_instances
from test_deadline_ceilings import Case, drawn_prices, judged

from kvopt import BatchTime, Line, Schedule, certify, generate
from kvopt.bounds.deadlines import deadline_ceiling
from kvopt.heuristics.attaining.rounds import attaining_in_rounds
from kvopt.problem.clocks import Seconds
from kvopt.problem.deadlines import Aim, attained


def fleets(count: int, seed: int) -> Iterator[Case]:
    """Yield fleets of which all schedules can be tried."""
    source = random.Random(seed)
    for _ in range(many(count)):
        case = Case.drawn(source, 4, source.randint(1, 3))
        if not case.in_seconds or sum(o for _, _, o in case.requests) <= 7:
            yield case


@pytest.mark.slow
def test_ceiling_and_floor_hold_the_most_of_all_fleets_between_them() -> None:
    exact = 0
    for case in fleets(60, 6):
        low, high = case.bracket()
        assert low <= case.most <= high, case
        exact += low == high
    assert exact > many(35)


@pytest.mark.slow
def test_no_prices_prove_less_than_fleets_reach() -> None:
    source, helped = random.Random(7), 0
    for drawn in fleets(2500, 9):
        case = drawn.of_a_backlog()
        value, misses = judged(case, drawn_prices(case, source))
        if value < len(case.requests) - misses:
            assert value >= case.most, case
            helped += 1
    assert helped > many(8)


@pytest.mark.slow
def test_five_requests_of_a_fleet_in_rounds() -> None:
    source = random.Random(8)
    for drawn in random_instances(30, 10, most_requests=5, most_memory=9, most_output=5):
        memory, triples = plain(drawn)
        dated = [(*row, 1 + (5 * i + row[2]) % 9) for i, row in enumerate(triples)]
        allowed, workers = [row[3] for row in dated], source.randint(1, 3)

        def alone(some: Sequence[Dated], memory: int = memory) -> int:
            return most_by_sets(memory, [row[:3] for row in some], [row[3] for row in some])

        fleet = replace(drawn, workers=workers)
        found = deadline_ceiling(fleet, allowed)
        floor = attaining_in_rounds(fleet, allowed, Aim.COMPLETION, found.costs)
        assert known(floor).count <= most_on_workers(workers, dated, alone) <= found.value


@pytest.mark.parametrize("workers", [1, 3])
def test_schedules_in_rounds_fit_and_are_counted(workers: int) -> None:
    drawn = generate("conversation", 80, 500, seed=2, parameters={"per_second": 40})
    fleet, allowed = replace(drawn, workers=workers), [150] * 80
    found = deadline_ceiling(fleet, allowed)
    floor = attaining_in_rounds(fleet, allowed, Aim.COMPLETION, found.costs)
    assert floor is not None
    schedule = Schedule(fleet, floor.starts, floor.workers)
    assert schedule.check().feasible
    ends = [k + r.output for k, r in zip(floor.starts, fleet, strict=True)]
    assert attained(ends, [r.arrival for r in fleet], allowed) >= floor.count
    assert found.value - floor.count <= 4


@pytest.mark.usefixtures("processor_clock")
def test_runs_in_seconds_fit_and_are_counted() -> None:
    drawn = generate("conversation", 80, 500, seed=2, parameters={"per_second": 40})
    fleet = replace(drawn, workers=3)
    clock = Seconds(BatchTime([Line(40_000_000, 100_000)]))
    made = certify(fleet, clock=clock, deadline="6s", only_deadline=True, time_limit=2)
    assert made.in_time is not None
    run = known(made.in_time.best)
    assert run.violations() == []
    counted = attained(run.completions, run.arrivals, [6 * 10**9] * 80)
    assert made.in_time.best_attained == counted
    assert made.in_time.ceiling - counted <= 12
    assert made.provenance["attained_by"] == "search for deadlines"

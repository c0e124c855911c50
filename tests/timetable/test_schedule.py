"""The exact check against the definition, and the worked cases of the papers."""

from __future__ import annotations

import random

import pytest
from effort import many
from oracle import (
    Starts,
    Triple,
    active_times,
    feasible,
    load,
    makespan,
    optimum,
    tel,
)
from strategies import (
    instance_of,
    plain,
    random_feasible_starts,
    random_instances,
    random_starts,
)

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.standard_form import identical_groups


def assert_check_agrees(instance: Instance, starts: list[int] | Starts) -> bool:
    """Compare everything a check says with the definition; return the feasibility."""
    memory, triples = plain(instance)
    schedule = Schedule(instance, starts)
    check = schedule.check()
    held = {time: load(triples, starts, time) for time in active_times(triples, starts)}
    peak = max(held.values())
    assert check.feasible == feasible(memory, triples, starts) == (not check.violations)
    assert check.objective == schedule.objective == tel(triples, starts)
    assert check.peak_memory == peak
    assert check.peak_time == (min(t for t in held if held[t] == peak) if peak else 0)
    assert check.makespan == schedule.makespan == makespan(triples, starts)
    assert list(schedule.loads(held)) == sorted(held.items())
    return check.feasible


@pytest.mark.parametrize("early", [0, 1])
def test_check_agrees_with_the_definition(early: int) -> None:
    source = random.Random(early)
    outcomes = [
        assert_check_agrees(instance, random_starts(instance, source, early))
        for instance in random_instances(many(500), seed=early, most_requests=7)
    ]
    assert many(40) < sum(outcomes) < many(460), "both feasible and infeasible schedules are needed"


def test_check_accepts_what_was_built_to_be_feasible() -> None:
    source = random.Random(5)
    for instance in random_instances(many(200), seed=5, most_requests=7):
        assert assert_check_agrees(instance, random_feasible_starts(instance, source))


def test_loads_take_times_in_any_order() -> None:
    schedule = Schedule(instance_of(9, [(0, 2, 2), (0, 0, 3)]), (0, 1))
    assert list(schedule.loads([3, 0, 3, 1, -4])) == [(-4, 0), (0, 0), (1, 3), (3, 2)]


# Each pair differs in one start, and that is what one rule of the problem is about.
PAIRS: list[tuple[str, int, list[Triple], Starts, Starts]] = [
    ("starts at its arrival, not before", 9, [(3, 1, 2)], (3,), (2,)),
    ("memory is used to the last token", 7, [(0, 1, 3), (0, 2, 2)], (0, 0), (0, 1)),
    ("a request holds its last token in the round it completes", 4, [(0, 0, 4), (1, 3, 1)],
     (0, 4), (0, 3)),
    ("a request that completed at t holds nothing at t + 1", 3, [(0, 0, 3), (0, 2, 1)],
     (0, 3), (0, 2)),
    ("the prompt is held from the first round on", 6, [(0, 5, 1), (0, 5, 1)], (0, 1), (0, 0)),
    ("two that complete together both count", 7, [(0, 1, 3), (0, 2, 2)], (0, 2), (0, 1)),
    ("a crossing is seen at the earlier completion", 5, [(0, 0, 5), (0, 2, 2)], (1, 0), (0, 0)),
    ("a prompt of no tokens still grows", 3, [(0, 0, 2), (0, 0, 2)], (0, 1), (0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("memory", "triples", "good", "bad"), [row[1:] for row in PAIRS], ids=[row[0] for row in PAIRS]
)
def test_feasible_and_infeasible_pairs(
    memory: int, triples: list[Triple], good: Starts, bad: Starts
) -> None:
    instance = instance_of(memory, triples)
    assert assert_check_agrees(instance, good)
    assert not assert_check_agrees(instance, bad)


def test_violations_name_the_request_or_the_time() -> None:
    instance = Instance(4, [Request(2, 1, 3, id="early"), Request(0, 1, 2, id="other")])
    assert Schedule(instance, (0, 1)).check().violations == (
        "request 'early': starts at 0, arrives at 2",
        "time 3: 7 tokens held, memory is 4",
    )
    assert not Schedule(instance, (2, 1)).check().feasible
    assert Schedule(instance, (2, 0)).check().violations == ()


def test_violations_are_listed_up_to_a_limit() -> None:
    check = Schedule(instance_of(9, [(1, 0, 1)] * 30), (0,) * 30).check()
    assert len(check.violations) == 20
    assert not check.feasible


@pytest.mark.parametrize("starts", [(), (0,), (0, 0, 0)])
def test_a_schedule_has_one_start_for_each_request(starts: Starts) -> None:
    with pytest.raises(InvalidInput, match=r"^starts: has \d entries for 2 requests$"):
        Schedule(instance_of(9, [(0, 1, 1), (0, 1, 1)]), starts)


@pytest.mark.parametrize("start", [True, False, 1.0, "1", None])
def test_starts_are_integers(start: object) -> None:
    with pytest.raises(InvalidInput, match=r"^request 'r1': starts: must be an integer, got "):
        Schedule(instance_of(9, [(0, 1, 1), (0, 1, 1)]), (0, start))


def test_empty_schedule() -> None:
    check = Schedule(Instance(1, []), ()).check()
    assert (check.feasible, check.objective, check.peak_memory, check.makespan) == (True, 0, 0, 0)
    assert Schedule(Instance(1, []), ()).memory_over_time() == ([0], [0])


def test_identical_groups_are_the_equal_shapes_by_arrival() -> None:
    instance = instance_of(9, [(5, 1, 2), (0, 2, 1), (1, 1, 2), (7, 3, 3), (5, 1, 2), (0, 2, 1)])
    assert sorted(identical_groups(instance)) == [[1, 5], [2, 0, 4]]
    assert identical_groups(Instance(9, [])) == []


def exchanged(instance: Instance, starts: Starts) -> Starts:
    """Give the earlier starts of each group to its earlier arrivals."""
    result = list(starts)
    for group in identical_groups(instance):
        for position, start in zip(group, sorted(starts[i] for i in group), strict=True):
            result[position] = start
    return tuple(result)


def test_groups_in_order_keep_an_optimum() -> None:
    for instance in random_instances(many(200), seed=14):
        memory, triples = plain(instance)
        best, starts = optimum(memory, triples)
        ordered = exchanged(instance, starts)
        assert feasible(memory, triples, ordered)
        assert tel(triples, ordered) == best
        for group in identical_groups(instance):
            assert [ordered[i] for i in group] == sorted(ordered[i] for i in group)

"""Schedules with pauses: their exact check, and what they share with those without."""

from __future__ import annotations

import random

import pause_oracle
import pytest
from strategies import instance_of, plain, random_instances, random_starts

from kvopt.errors import InvalidInput
from kvopt.timetable.schedule import Schedule

PAUSED = instance_of(10, [(0, 0, 10), (6, 5, 1)])


def random_times(
    triples: tuple[tuple[int, int, int], ...], source: random.Random
) -> list[list[int]]:
    """Return active times at random, some of them too early."""
    most = sum(o for _, _, o in triples) + source.randint(0, 3)
    return [sorted(source.sample(range(a, a + most + 2), o)) for a, _, o in triples]


def test_the_worked_case() -> None:
    schedule = Schedule(PAUSED, segments=[[(1, 6), (8, 11)], [(7, 7)]])
    check = schedule.check()
    assert (check.feasible, check.objective, check.peak_memory, check.makespan) == (
        True,
        12,
        10,
        11,
    )
    assert schedule.pauses == 1
    assert "pauses 1" in repr(schedule)


def test_too_much_memory_is_named() -> None:
    schedule = Schedule(PAUSED, segments=[[(1, 5), (7, 11)], [(7, 7)]])
    assert schedule.check().violations == ("time 7: 12 tokens held, memory is 10",)


def test_too_early_is_named() -> None:
    schedule = Schedule(PAUSED, segments=[[(7, 16)], [(6, 6)]])
    assert schedule.check().violations == ("request 'r1': starts at 5, arrives at 6",)


def test_checks_agree_with_the_definition() -> None:
    source = random.Random(2)
    seen = set()
    for instance in random_instances(400, seed=3):
        memory, triples = plain(instance)
        times = random_times(triples, source)
        schedule = Schedule.at_times(instance, times)
        held = pause_oracle.held(triples, times)
        check = schedule.check()
        assert check.feasible == pause_oracle.feasible(memory, triples, times)
        assert check.objective == pause_oracle.latency(triples, times)
        assert check.peak_memory == max(held.values(), default=0)
        assert dict(schedule.loads(held)) == held
        seen.add(check.feasible)
    assert seen == {True, False}


def test_without_pauses_it_is_the_schedule() -> None:
    source = random.Random(4)
    for instance in random_instances(200, seed=5):
        schedule = Schedule(instance, random_starts(instance, source, early=1))
        same = Schedule(instance, segments=schedule.spans)
        assert (same.pauses, same.starts) == (0, schedule.starts)
        assert same.check() == schedule.check()
        assert same.memory_over_time() == schedule.memory_over_time()
        times = [
            range(k + 1, c + 1) for k, c in zip(schedule.starts, schedule.completions, strict=True)
        ]
        assert Schedule.at_times(instance, times) == same


def test_segments_without_a_gap_are_one() -> None:
    one = Schedule(PAUSED, segments=[[(1, 10)], [(11, 11)]])
    assert Schedule(PAUSED, segments=[[[1, 3], [4, 4], [5, 10]], [[11, 11]]]) == one


@pytest.mark.parametrize(
    ("segments", "says"),
    [
        ([[(1, 10)]], "segments: has 1 entries for 2 requests"),
        ([[(1, 9)], [(7, 7)]], "request 'r0': segments: hold 9 times for 10 tokens"),
        ([[], [(7, 7)]], "request 'r0': segments: hold 0 times for 10 tokens"),
        ([[(1, 10)], [(7, 8)]], "request 'r1': segments: hold 2 times for 1 tokens"),
        (
            [[(1, 5), (5, 9)], [(7, 7)]],
            "request 'r0': segments: must ascend, got [5, 9] after time 5",
        ),
        ([[(3, 1)], [(7, 7)]], "request 'r0': segments: must have first <= last, got (3, 1)"),
        (
            [[(1, 2, 3)], [(7, 7)]],
            "request 'r0': segments: must be pairs [first, last], got (1, 2, 3)",
        ),
        ([["19"], [(7, 7)]], "request 'r0': segments: must be pairs [first, last], got '19'"),
        ([[(1, True)], [(7, 7)]], "request 'r0': segments: must hold integers, got True"),
        ([[(1.0, 10)], [(7, 7)]], "request 'r0': segments: must hold integers, got 1.0"),
        ([3, [(7, 7)]], "request 'r0': segments: must be a list of pairs, got 3"),
    ],
)
def test_refused(segments: list[object], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Schedule(PAUSED, segments=segments)  # type: ignore[arg-type]
    assert str(caught.value) == says

"""The exact check against the definition, and the worked cases of the papers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import brute_force
import pytest
from effort import many
from strategies import (
    drawn_in_blocks,
    drawn_with_prefixes,
    instance_of,
    random_feasible_starts,
    random_instances,
    random_starts,
    rows_of,
)

from kvopt import Instance, Request, Schedule, run
from kvopt.errors import InvalidInput
from kvopt.timetable import sweep
from kvopt.timetable.sweep import swept


def assert_check_agrees(instance: Instance, drawn: Sequence[Any]) -> bool:
    """Compare everything a check says of starts, or of active times, with the definition.

    Return whether they are feasible.
    """
    rows, block, unit = rows_of(instance), instance.block_size, instance.block_tokens or 1
    is_run = all(isinstance(own, int) for own in drawn)
    schedule = Schedule(instance, drawn) if is_run else Schedule.at_times(instance, drawn)
    check = schedule.check()
    first = min((own if is_run else own[0] for own in drawn), default=0)
    times = range(first, brute_force.makespan(rows, drawn) + 2)
    held = {time: brute_force.load(rows, drawn, time, unit=unit) for time in times}
    peak = max(held.values())
    fits = brute_force.feasible(instance.memory, rows, drawn, block=block, unit=unit)
    active = Counter(chain.from_iterable(brute_force.active_times(rows, drawn)))
    fits = fits and max(active.values(), default=0) <= (instance.max_active or len(rows))
    ends = brute_force.active_times(rows, drawn)
    pairs = zip(instance, ends, strict=True)
    latency = sum(request.weight * (own[-1] - request.arrival) for request, own in pairs)
    assert check.feasible == fits == (not check.violations)
    assert check.objective == schedule.objective == latency
    assert check.peak_memory == peak
    assert check.peak_time == (min(t for t in held if held[t] == peak) if peak else 0)
    assert check.makespan == schedule.makespan == brute_force.makespan(rows, drawn)
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
def test_a_schedule_has_one_start_for_each_request(starts: brute_force.Starts) -> None:
    with pytest.raises(InvalidInput, match=r"^starts: has \d entries for 2 requests$"):
        Schedule(instance_of(9, [(0, 1, 1), (0, 1, 1)]), starts)


@pytest.mark.parametrize("start", [True, False, 1.0, "1", None])
def test_starts_are_integers(start: object) -> None:
    with pytest.raises(InvalidInput, match=r"^request 'r1': starts: must be an integer, got "):
        Schedule(instance_of(9, [(0, 1, 1), (0, 1, 1)]), (0, start))


def test_an_empty_schedule_is_feasible() -> None:
    check = Schedule(Instance(1, []), ()).check()
    assert (check.feasible, check.objective, check.peak_memory, check.makespan) == (True, 0, 0, 0)
    assert Schedule(Instance(1, []), ()).memory_over_time() == ([0], [0])


# ---- schedules with pauses


PAUSED = instance_of(10, [(0, 0, 10), (6, 5, 1)])


def random_times(instance: Instance, source: random.Random) -> list[list[int]]:
    """Return active times at random, some of them too early."""
    most = instance.total_output + source.randint(0, 3)
    return [
        sorted(source.sample(range(r.arrival, r.arrival + most + 2), r.output)) for r in instance
    ]


def weighted(instance: Instance, source: random.Random) -> list[Request]:
    return [replace(request, weight=source.randint(1, 4)) for request in instance]


def fits(instance: Instance) -> bool:
    """Whether each request fits in whole blocks of the size of its prefix's."""
    size = instance.block_tokens or 1
    return all(-(-request.peak // size) <= instance.memory // size for request in instance)


def test_too_much_memory_is_named() -> None:
    schedule = Schedule(PAUSED, segments=[[(1, 5), (7, 11)], [(7, 7)]])
    assert schedule.check().violations == ("time 7: 12 tokens held, memory is 10",)


def test_too_early_is_named() -> None:
    schedule = Schedule(PAUSED, segments=[[(7, 16)], [(6, 6)]])
    assert schedule.check().violations == ("request 'r1': starts at 5, arrives at 6",)


def test_checks_agree_with_the_definition() -> None:
    """Of runs and with pauses: tokens, blocks, prefixes, and a limit of weighted requests."""
    source = random.Random(2)
    in_tokens = [*random_instances(many(150), seed=3, least_requests=1)]
    sharing = [drawn_with_prefixes(seed) for seed in range(many(300))]
    whole = (replace(each, block_size=each.block_tokens or 1) for each in sharing if fits(each))
    limited = [
        replace(each, requests=weighted(each, source), max_active=source.randint(1, 3))
        for each in (*in_tokens, *sharing)
    ]
    in_blocks = [drawn_in_blocks(source) for _ in range(many(300))]
    for drawn in (in_tokens, in_blocks, sharing, [*whole], limited):
        for times in (random_times, random_starts):
            outcomes = {assert_check_agrees(each, times(each, source)) for each in drawn}
            assert outcomes == {True, False}


def test_without_pauses_it_is_the_schedule() -> None:
    source = random.Random(4)
    for instance in random_instances(100, seed=5):
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
def test_bad_segments_are_refused(segments: list[object], says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Schedule(PAUSED, segments=segments)  # type: ignore[arg-type]
    assert str(caught.value) == says


# ---- tokens held by many pieces of work at once, against one piece after the other


def test_what_does_not_fit_into_64_bits_is_left_to_integers_without_limit() -> None:
    assert swept([0, 0], [2**40, 2**61], [1, 2**52]).held == [0, 2**41 + 1 + 2**52, 2**61 + 2**52]
    assert swept([-(2**61), 0], [2, 2], [1, 1]).held == [0, 2**61 + 1, 2**61 + 6]
    assert swept([0], [2**70], [2**65]).held == [0, 2**70 + 2**65]


def test_checks_in_arrays_and_without_limit_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    for _ in range(40):
        requests = [Request(0, rng.randint(0, 5), rng.randint(1, 5)) for _ in range(30)]
        instance = Instance(10, requests)
        shifted = [rng.randint(-1, 60) for _ in requests]
        lost = run(Instance(12, requests), "alpha-beta:alpha=0.1,beta=0.5")
        wrong = replace(lost, lost=(*lost.lost, *lost.lost[:1]))
        few = [Schedule(instance, shifted).check(), lost.peak_memory, wrong.violations()]
        with monkeypatch.context() as patch:
            patch.setattr(sweep, "fits", lambda _: False)
            again = [replace(lost).peak_memory, replace(wrong).violations()]
            assert [Schedule(instance, shifted).check(), *again] == few


# ---- memory in whole blocks, against a count at every time

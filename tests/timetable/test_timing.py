"""Recorded decisions on a clock of seconds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from kvopt import BatchTime, Instance, Line, PolicyRun, Request, run
from kvopt.problem.batch_time import MILLISECOND
from kvopt.problem.clocks import Seconds
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.timing import timed

CLOCK = Seconds(BatchTime([Line(10 * MILLISECOND, MILLISECOND)]))


def recorded(*rows: tuple[float, int, int, list[tuple[int, int]]], memory: int = 99) -> PolicyRun:
    """Return a run with the arrival in milliseconds and rounds, the prompt, and the segments."""
    requests = [
        Request(arrival, prompt, sum(last - first + 1 for first, last in segments),
                arrival_seconds=ms / 1000)
        for ms, arrival, prompt, segments in rows
    ]  # fmt: skip
    schedule = Schedule(Instance(memory, requests), segments=[row[3] for row in rows])
    return PolicyRun.of(schedule, "server")


def test_the_server_does_not_wait_for_a_request_while_another_is_active() -> None:
    """On a slower server the second one came before round 2; here it comes during round 3."""
    found = timed(recorded((0, 0, 0, [(1, 5)]), (25, 1, 0, [(2, 3)])), CLOCK)
    assert found.violations() == []
    assert found.segments == (((1, 5),), ((4, 5),))
    assert found.completions == ((11 * 3 + 12 * 2) * MILLISECOND,) * 2
    assert found.resumed == ({},)


def test_a_request_that_began_at_once_does_so_in_an_earlier_round() -> None:
    """On a faster server the second one came during round 3; here it is there at round 2."""
    found = timed(recorded((0, 0, 0, [(1, 5)]), (5, 3, 0, [(4, 5)])), CLOCK)
    assert found.segments == (((1, 5),), ((2, 3),))
    later = timed(recorded((0, 0, 0, [(1, 5)]), (5, 2, 0, [(4, 5)])), CLOCK)
    assert later.segments == (((1, 5),), ((4, 5),))  # the server let it wait for a round


def test_the_server_waits_if_nothing_is_active() -> None:
    found = timed(recorded((5, 0, 0, [(1, 1)]), (50, 0, 0, [(2, 2)]), (70, 1, 0, [(4, 4)])), CLOCK)
    assert found.completions == tuple(ms * MILLISECOND for ms in (16, 61, 81))
    assert found.resumed == ({0: 5 * MILLISECOND, 1: 50 * MILLISECOND, 3: 70 * MILLISECOND},)


def test_a_pause_passes_without_time_if_nothing_else_is_active() -> None:
    found = timed(recorded((0, 0, 3, [(1, 1), (4, 4)]), (30, 0, 0, [(2, 3)])), CLOCK)
    # From 0: prompt and token, prompt and both tokens; the other one comes meanwhile.
    assert found.segments == (((1, 1), (4, 4)), ((5, 6),))
    assert found.violations() == []
    assert found.completions == tuple(ms * MILLISECOND for ms in (14 + 15, 30 + 22))


@pytest.mark.parametrize("seed", range(5))
def test_decisions_on_another_clock_are_those_that_the_server_would_make(seed: int) -> None:
    """With memory for all every request begins in the first round after its arrival."""
    draw = Random(seed)
    requests = [
        Request(0, draw.randint(0, 900), draw.randint(1, 60), arrival_seconds=draw.uniform(0, 20))
        for _ in range(80)
    ]
    instance, policy = Instance(90_000, requests), "vllm-fcfs:budget=100000"
    slow = Seconds(BatchTime([Line(31 * MILLISECOND, 90_000)], kv_ns=3))
    on_slow = run(instance, policy, clock=slow)
    arrived = [replace(r, arrival=k) for r, k in zip(instance, on_slow.begins, strict=True)]
    decided = PolicyRun.of(Schedule(Instance(90_000, arrived), segments=on_slow.segments), "server")
    fast = Seconds(BatchTime([Line(7 * MILLISECOND, 40_000)], kv_ns=9))
    for clock in (slow, fast):
        expected = run(instance, policy, clock=clock)
        assert timed(decided, clock).completions == expected.completions

"""Turns: what gained most per second goes on, and nothing is forgotten."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from kvopt import Instance, Request
from kvopt.heuristics import turns
from kvopt.heuristics.list_schedules import one_after_another
from kvopt.heuristics.turns import Turn, take_turns
from kvopt.incumbent.incumbent import Search

_REQUESTS = 300


class Clock:
    """A clock on which a pass takes a second."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "working_time", clock)
    return clock


@pytest.fixture
def search() -> Search:
    """Return a search whose schedule gets better by starting one more request at once."""
    search = Search(Instance(_REQUESTS, [Request(0, 0, 1)] * _REQUESTS))
    search.offer(one_after_another(search.instance), "one after another")
    return search


class Counting:
    """Passes that take a second each, in which so many of the last requests start at once."""

    def __init__(self, clock: Clock, name: str, gain: int, most: int = 1_000) -> None:
        self.clock, self.name, self.gain, self.most, self.count = clock, name, gain, most, 0

    def __call__(self, turn: Turn, _: int) -> Iterator[None]:
        for _ in range(self.most):
            self.count += 1
            self.clock.now += 1
            assert turn.search.schedule is not None
            starts = list(turn.search.schedule.starts)
            for i in sorted(range(_REQUESTS), key=lambda i: -starts[i])[: self.gain]:
                starts[i] = 0
            turn.search.offer_starts(starts, self.name)
            yield


def test_what_gains_most_goes_on_and_nothing_is_forgotten(search: Search, clock: Clock) -> None:
    nothing, little, much = (Counting(clock, name, gain) for gain, name in enumerate("abc"))
    take_turns(search, [nothing, little, much], 40.0)
    assert nothing.count + little.count + much.count == 40
    assert much.count > 30
    assert min(nothing.count, little.count) >= 2


def test_without_a_limit_each_goes_on_to_its_end(search: Search, clock: Clock) -> None:
    first, last = Counting(clock, "a", 1, most=3), Counting(clock, "b", 1, most=2)
    take_turns(search, [first, last], math.inf)
    assert (first.count, last.count) == (3, 2)
    assert search.found_by == "b"


def test_an_interrupt_ends_turns(search: Search, clock: Clock) -> None:
    way = Counting(clock, "a", 1)
    search.interrupt()
    take_turns(search, [way], math.inf)
    assert way.count == 0

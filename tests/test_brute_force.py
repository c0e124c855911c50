"""The oracle of the other tests: worked cases, and all schedules one by one where they are few."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from brute_force import Server, Triple, best_starts, feasible, last_time, most_in_time, optimum, tel
from effort import many
from strategies import plain, random_instances

Problem = tuple[int, Sequence[Triple]]


@pytest.mark.parametrize(
    ("memory", "requests", "value"),
    [
        (7, [(0, 1, o) for o in (1, 2, 3, 4)], 12),
        (9, [(0, 1, o) for o in (3, 4, 5, 7)], 27),
        (4, [(0, 0, o) for o in (2, 2, 3, 3)], 15),
        (10, [(0, 0, 10), (5, 0, 3)], 14),  # the first waits for nothing that is active
    ],
)
def test_worked_cases(memory: int, requests: list[Triple], value: int) -> None:
    assert optimum(memory, requests) == value


def problems() -> Iterator[Problem]:
    drawn = random_instances(
        many(60), 17, least_requests=1, most_requests=3, most_memory=7, most_output=3,
        last_arrival=3,
    )  # fmt: skip
    return map(plain, drawn)


def schedules(problem: Problem, scope: str) -> Iterator[tuple[Sequence[int], ...]]:
    """Yield active times of every schedule that memory holds."""
    memory, requests = problem
    last = last_time(requests)
    every = [
        combinations(range(arrival + 1, last + 1), output)
        if scope == "pauses"
        else [range(k + 1, k + output + 1) for k in range(arrival, last - output + 1)]
        for arrival, _, output in requests
    ]
    return (times for times in product(*map(list, every)) if feasible(memory, requests, times))


@pytest.mark.parametrize("scope", ["runs", "pauses"])
def test_it_finds_the_best_of_all_schedules(scope: str) -> None:
    source = random.Random(5)
    for problem in problems():
        memory, requests = problem
        weights, allowed = ([source.randint(1, top) for _ in requests] for top in (3, 9))
        values, in_time = [], []
        for times in schedules(problem, scope):
            ages = [own[-1] - row[0] for own, row in zip(times, requests, strict=True)]
            values.append(sum(w * age for w, age in zip(weights, ages, strict=True)))
            in_time.append(sum(age <= most for age, most in zip(ages, allowed, strict=True)))
        assert optimum(memory, requests, weights=weights, scope=scope) == min(values), problem
        # what is late may run after all others, which the schedules above have no time for
        assert most_in_time(memory, requests, allowed, scope=scope) >= max(in_time), problem
        even = Server([(1, 0)], 0, 0)
        timed = optimum(memory, requests, weights=weights, scope=scope, server=even)
        assert timed >= min(values), "a server does not wait for nothing"


def test_starts_attain_the_optimum_and_keep_to_their_windows() -> None:
    for memory, requests in problems():
        value, starts = best_starts(memory, requests) or (None, ())
        assert feasible(memory, requests, starts)
        assert value == tel(requests, starts) == optimum(memory, requests)
        late = [range(a + 1, a + 9) for a, _, _ in requests]
        found = best_starts(memory, requests, late)
        assert found is None or all(k in own for k, own in zip(found[1], late, strict=True))
        assert found is None or found[0] >= value + len(requests)


def test_two_workers_and_a_limit_of_active_requests() -> None:
    rows = [(0, 1, 2), (0, 1, 2), (0, 1, 2)]
    assert [optimum(3, rows, workers=m) for m in (1, 2, 3, 4)] == [12, 8, 6, 6]
    assert [optimum(9, rows, most_active=n) for n in (1, 2, 3)] == [12, 8, 6]
    assert [optimum(9, rows, block=b) for b in (1, 3, 9)] == [6, 6, 12]

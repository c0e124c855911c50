"""Start windows keep an optimum; a heuristic's makespan as horizon may not."""

from __future__ import annotations

import itertools
import random

import pytest
from brute_force import Starts, best_starts, last_time, makespan, optimum, tel
from effort import many
from known import known
from strategies import Problem, instance_of, plain, random_feasible_starts, random_instances

from kvopt import run
from kvopt.bounds.start_windows import start_windows
from kvopt.formulations.windows import Windows, horizon
from kvopt.problem.instance import Instance
from kvopt.problem.parts import split

SLACKS = (None, 0, 1, 4)
"""How far the known schedule is above the optimum; None when there is none."""


def windows_hold_the_optimum(instance: Instance, slack: int | None) -> bool:
    best = optimum(*plain(instance))
    windows = start_windows(instance, None if slack is None else best + slack)
    found = best_starts(*plain(instance), windows)
    return found is not None and found[0] == best


def inside(starts: Starts, windows: Windows) -> bool:
    return all(start in window for start, window in zip(starts, windows, strict=True))


def is_late(instance: Instance, starts: Starts) -> bool:
    """Whether a part ends later than it would without an idle round after its last arrival."""
    for part in split(instance):
        _, triples = plain(part.instance)
        if makespan(triples, part.starts_of(starts)) > last_time(triples):
            return True
    return False


@pytest.mark.parametrize("slack", SLACKS)
def test_windows_hold_an_optimum(slack: int | None) -> None:
    for instance in random_instances(many(200), seed=21, last_arrival=6):
        assert windows_hold_the_optimum(instance, slack)


@pytest.mark.slow
def test_windows_hold_every_schedule_up_to_the_known_value() -> None:
    source = random.Random(22)
    for instance in random_instances(many(400), seed=22, most_requests=8):
        _, triples = plain(instance)
        starts = random_feasible_starts(instance, source)
        windows = start_windows(instance, tel(triples, starts))
        assert is_late(instance, starts) or inside(starts, windows)


def test_a_better_schedule_only_narrows_windows() -> None:
    for instance in random_instances(many(100), seed=24):
        best = optimum(*plain(instance))
        nested = [start_windows(instance, best + slack) for slack in range(4)]
        nested.append(start_windows(instance))
        for narrow, wide in itertools.pairwise(nested):
            assert all(set(n) <= set(w) for n, w in zip(narrow, wide, strict=True))


def test_horizon_is_the_last_active_time() -> None:
    instance = instance_of(9, [(0, 1, 3), (2, 4, 5)])
    windows = start_windows(instance)
    assert windows == (range(8), range(2, 6))
    assert horizon(instance, windows) == 10 == last_time(plain(instance)[1])


def test_horizon_of_nothing_is_zero() -> None:
    empty = Instance(3, [])
    assert start_windows(empty) == ()
    assert horizon(empty, ()) == 0
    assert horizon(instance_of(3, [(0, 1, 1)]), (range(0),)) == 0


# Random search over several hundred thousand triples without arrivals met this once.
NO_ARRIVALS: Problem = (12, ((0, 6, 5), (0, 1, 6), (0, 0, 6)))
# No pair needs less memory, as the last test shows.
TWO_REQUESTS: Problem = (4, ((0, 0, 4), (1, 3, 1)))


@pytest.mark.parametrize(
    ("problem", "heuristic_end", "within", "best"),
    [(TWO_REQUESTS, 5, 8, 7), (NO_ARRIVALS, 11, 26, 25)],
    ids=["two requests", "no arrivals"],
)
def test_makespan_of_a_heuristic_cuts_off_the_optimum(
    problem: Problem, heuristic_end: int, within: int, best: int
) -> None:
    memory, triples = problem
    starts = run(instance_of(memory, triples), "mc-sf").starts
    assert makespan(triples, starts) == heuristic_end
    value, optimal = known(best_starts(memory, triples))
    assert (value, makespan(triples, optimal) > heuristic_end) == (best, True)

    cut = best_starts(memory, triples, [range(a, heuristic_end - o + 1) for a, _, o in triples])
    assert cut is not None, "the short horizon still admits schedules, so nothing warns"
    assert cut[0] == within > best

    instance = instance_of(memory, triples)
    for upper in (None, tel(triples, starts), best):
        windows = start_windows(instance, upper)
        assert horizon(instance, windows) > heuristic_end
        assert known(best_starts(memory, triples, windows))[0] == best

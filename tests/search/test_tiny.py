"""Exhaustive search of tiny instances, beside brute force, and the ratios that rest on it."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from brute_force import Triple, optimum
from known import known

from kvopt import (
    Instance,
    InvalidInput,
    Problem,
    Request,
    Scope,
    Stopped,
    TooLarge,
    ratio_to_optimum,
    tiny_optimum,
)
from kvopt import run as simulated
from kvopt.search.exact.tiny_optimum import best_below

Case = tuple[int, tuple[Triple, ...]]
LIMIT = 10**6


def instance_of(case: Case) -> Instance:
    return Instance(case[0], [Request(*triple) for triple in case[1]])


def best_by_labels(case: Case, target: int) -> int | None:
    found = best_below(*case, target, pauses=True, steps=2, turns=1)
    return None if found is None else found[0]


def drawn_case(rng: random.Random, most: int) -> Case:
    memory, requests = rng.randint(1, 8), []
    for _ in range(rng.randint(1, most)):
        prompt = rng.randrange(memory)
        requests.append((rng.randint(0, 4), prompt, rng.randint(1, memory - prompt)))
    return memory, tuple(requests)


@pytest.mark.parametrize("steps", [1, 7])
def test_a_search_in_many_turns_finds_the_same(steps: int) -> None:
    rng = random.Random(6)
    for _ in range(60):
        case = drawn_case(rng, 5)
        for pauses in (False, True):
            found = best_below(*case, LIMIT, pauses=pauses)
            many = best_below(*case, LIMIT, pauses=pauses, steps=steps, turns=10**9)
            assert many == found


def test_labels_take_over_where_starts_are_too_many() -> None:
    rng = random.Random(4)
    for _ in range(20):
        memory, requests = case = drawn_case(rng, 3)
        least = optimum(memory, requests, scope="pauses")
        assert best_by_labels(case, least + 1) == least
        assert best_by_labels(case, least) is None
    for pauses in (False, True):
        with pytest.raises(Stopped):
            best_below(9, ((0, 1, 5), (0, 1, 6)), 99, lambda: True, pauses=pauses, steps=2)


def test_the_optimum_is_that_of_brute_force() -> None:
    rng = random.Random(5)
    for _ in range(50):
        case = drawn_case(rng, 3)
        instance, least = instance_of(case), optimum(*case)
        assert tiny_optimum(instance) == tiny_optimum(instance, below=least + 1) == least
        assert tiny_optimum(instance, below=least) is None
        wide = Problem(instance, scope=Scope.PAUSES)
        assert tiny_optimum(wide) == optimum(*case, scope="pauses")


def test_a_ratio_is_exact_for_few_requests_and_an_interval_for_many() -> None:
    case = (4, ((0, 0, 2), (0, 0, 2), (0, 0, 3), (0, 0, 3)))
    run = simulated(instance_of(case), "mc-sf")
    assert ratio_to_optimum(run).least == Fraction(run.objective, optimum(*case))
    many = simulated(Instance(9, [Request(0, 1, 1 + i % 4) for i in range(13)]), "fcfs")
    found = ratio_to_optimum(many, time_limit=0.0)
    assert 1 <= known(found.least) <= known(found.most)
    for label in ("vllm-fcfs:block=1", "sglang"):  # a run that pauses has the wider optimum
        other = simulated(instance_of(case), label)
        runs = Scope.RUNS.covers(other.scope)
        oracle = optimum(*case) if runs else optimum(*case, scope="pauses")
        assert ratio_to_optimum(other).most == Fraction(other.objective, oracle)


def test_a_run_that_never_ends_has_no_ratio() -> None:
    run = simulated(Instance(4, [Request(0, 3, 1)]), "alpha-protect:alpha=0.5")
    assert ratio_to_optimum(run) == (None, None)


@pytest.mark.parametrize(
    ("instance", "field"),
    [
        (Instance(4, [Request(0, 0, 2)], workers=2), "workers"),
        (Instance(4, [Request(0, 0, 2)], block_size=2), "block_size"),
        (Instance(4, [Request(0, 0, 2, weight=2)]), "weight"),
    ],
)
def test_other_problems_are_refused(instance: Instance, field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        tiny_optimum(instance)


def test_more_requests_are_too_large() -> None:
    with pytest.raises(TooLarge, match="for 12 requests at most, got 13"):
        tiny_optimum(Instance(4, [Request(0, 0, 1)] * 13))

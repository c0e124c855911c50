"""The claims of docs/configurations.md about states, their weights and staircases."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import oracle
import pytest
from literal import configurations as literal
from literal.best_prices import windows_until
from literal.configurations import Prices, State
from literal.problems import ascending, problems
from numpy.typing import NDArray
from oracle import Triple

# Which states can stand together.


@pytest.mark.parametrize("seed", range(6))
def test_states_stand_together_iff_a_schedule_shows_them(seed: int) -> None:
    generator = random.Random(seed)
    seen = {True: 0, False: 0}
    for _ in range(300):
        memory = generator.randint(1, 9)
        size = generator.randint(0, 4)
        states = generator.choices(literal.all_states(memory), k=size)
        prompts = [generator.randint(0, h - 1) for h, _ in states]
        requests = [(0, s, h + r - s) for (h, r), s in zip(states, prompts, strict=True)]
        starts = [memory - (h - s) for (h, _), s in zip(states, prompts, strict=True)]
        assert literal.configuration_at(requests, starts, memory) == tuple(sorted(states))
        shown = oracle.feasible(memory, requests, starts)
        assert shown == literal.feasible(states, memory)
        seen[shown] += 1
    assert min(seen.values()) > 50


def test_ties_count_all_that_complete_together() -> None:
    assert literal.feasible([(2, 1), (2, 1)], 6)
    assert not literal.feasible([(2, 1), (2, 1)], 5)
    assert literal.feasible([(2, 0), (2, 1)], 4)


@pytest.mark.parametrize("seed", range(25))
def test_what_an_instance_can_show(seed: int) -> None:
    """With arrivals: exactly the feasible choices of requests and starts not before arrival."""
    generator = random.Random(seed)
    memory = generator.randint(2, 6)
    requests = [
        (generator.randint(0, 2), s, generator.randint(1, min(2, memory - s)))
        for s in generator.choices(range(min(3, memory)), k=generator.randint(1, 3))
    ]
    time = generator.randint(1, 4)
    windows = windows_until(requests, extra=time + 2)
    shown = {
        active_at(requests, starts, time)
        for starts, _ in literal.schedules(memory, requests, windows)
    }
    choices = itertools.product(*[[None, *range(a, time)] for a, _, _ in requests])
    possible = {choice for choice in choices if can_stand(memory, requests, choice, time)}
    assert shown == possible


def active_at(
    requests: Sequence[Triple], starts: Sequence[int], time: int
) -> tuple[int | None, ...]:
    return tuple(
        k if literal.state_of(r, k, time) else None for r, k in zip(requests, starts, strict=True)
    )


def can_stand(
    memory: int, requests: Sequence[Triple], choice: Sequence[int | None], time: int
) -> bool:
    started = [(r, k) for r, k in zip(requests, choice, strict=True) if k is not None]
    states = [literal.state_of(r, k, time) for r, k in started]
    there = [state for state in states if state is not None]
    return len(there) == len(states) and literal.feasible(there, memory)


# Pricing.


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_the_program_finds_the_largest_weight(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(60):
        memory = generator.randint(1, 8)
        states = literal.all_states(memory)
        weights = {s: generator.randint(0, 9) for s in states if generator.random() < 0.5}
        copies = {s: generator.randint(0, 2) for s in states}
        for limits in (None, copies):
            expected = literal.largest(weights, memory, limits)
            assert literal.largest_by_program(weights, memory, limits) == expected


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_never_passed_and_windows_sharpen_them(seed: int) -> None:
    for memory, requests, _ in problems(seed, 20):
        windows = windows_until(requests)
        for starts, _ in literal.schedules(memory, requests, windows):
            for time in range(1, 8):
                there = literal.configuration_at(requests, starts, time)
                at_any, at_time = literal.copies_at(requests), literal.copies_at(requests, time)
                sharp = literal.copies_in(requests, [[k] for k in starts], time)
                assert all(there.count(s) <= sharp[s] <= at_time[s] <= at_any[s] for s in there)


@pytest.mark.parametrize("seed", range(6))
def test_marked_requests_are_taken_once(seed: int) -> None:
    generator = random.Random(seed)
    gained = 0
    for memory, requests, _ in problems(seed + 60, 40, most=4):
        items = [(i, g) for i, (_, _, o) in enumerate(requests) for g in range(1, o + 1)]
        weights = {item: generator.randint(0, 9) for item in items}
        exact = literal.largest_active(weights, memory, requests)
        order = generator.sample(range(len(requests)), len(requests))
        found = [
            literal.largest_with_marks(weights, memory, requests, order[:count])
            for count in range(len(order) + 1)
        ]
        assert found == sorted(found, reverse=True)
        assert found[-1] == exact
        gained += found[0] > exact
    assert gained > 5


@pytest.mark.slow
def test_weights_by_request_bound_the_optimum() -> None:
    generator = random.Random(5)
    for memory, requests, _ in problems(61, 200, most=4):
        best, _ = oracle.optimum(memory, requests)
        prices = {
            time: {
                (i, g): Fraction(generator.randint(0, 4), 3)
                for i, (a, _, o) in enumerate(requests)
                for g in range(1, o + 1)
                if a + g <= time
            }
            for time in range(1, 6)
        }
        value = Fraction()
        for each in prices.values():
            value -= literal.largest_active(each, memory, requests)
        for i, (a, _, o) in enumerate(requests):
            value += min(
                k
                + o
                - a
                + sum(prices.get(k + g, {}).get((i, g), Fraction()) for g in range(1, o + 1))
                for k in range(a, max(a, 5) + 1)
            )
        assert value <= best


# Extension.


@pytest.mark.parametrize("seed", range(6))
def test_with_unlimited_copies_extension_and_packing_keep_the_right_side(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(12):
        memory = generator.randint(2, 7)
        chosen = generator.sample(literal.all_states(memory), generator.randint(1, 3))
        weights = {state: generator.randint(0, 6) for state in chosen}
        extended, packed = literal.extension(weights, memory), literal.packing(weights, memory)
        assert all(packed[s] >= extended[s] >= weights.get(s, 0) for s in packed)
        most = literal.largest(weights, memory)
        assert literal.largest_by_program(packed, memory) == most
        assert literal.largest_by_program(extended, memory) == most
        assert literal.packing(packed, memory) == packed


def test_with_limited_copies_extension_first_then_the_right_side() -> None:
    memory, requests = 2, [(0, 0, 2), (0, 0, 1)]
    copies = literal.copies_at(requests)
    weights = {(1, 0): 1}
    extended = literal.extension(weights, memory)
    assert literal.largest(weights, memory, copies) == 1
    assert literal.largest(extended, memory, copies) == 2
    # "One active request" at time 1 has the right side 1 before the extension only.
    prices: Prices = {1: extended}
    assert sum(literal.least_costs(requests, prices)) - 1 == 4
    assert literal.configuration_bound(memory, requests, prices, copies={1: copies}) == 3
    assert oracle.optimum(memory, requests) == (3, (0, 0))


# Staircases.


@cache
def counts(memory: int) -> NDArray[np.float64]:
    """Return how often each state is in each feasible configuration."""
    place = {state: i for i, state in enumerate(literal.all_states(memory))}
    found = list(literal.configurations(memory))
    table = np.zeros((len(found), len(place)))
    for row, configuration in enumerate(found):
        for state in configuration:
            table[row, place[state]] += 1
    return table


def most_in_any(memory: int, weights: Sequence[literal.Weights]) -> list[int]:
    """Return the largest weight of a configuration, for many weights at once."""
    states = literal.all_states(memory)
    table = np.array([[float(each.get(state, 0)) for state in states] for each in weights])
    return [round(most) for most in (counts(memory) @ table.T).max(axis=0)]


@pytest.mark.slow
@pytest.mark.parametrize("memory", range(1, 9))
def test_every_staircase_holds(memory: int) -> None:
    every = ascending(memory, min(memory, 6))
    found = most_in_any(
        memory, [dict.fromkeys(literal.staircase(memory, each)[0], 1) for each in every]
    )
    assert all(most <= len(each) for most, each in zip(found, every, strict=True))


@pytest.mark.parametrize("memory", range(1, 9))
def test_every_lifted_staircase_holds(memory: int) -> None:
    every = ascending(memory, min(memory, 4))
    weights = [literal.lifted_staircase(memory, each)[0] for each in every]
    found = most_in_any(memory, weights)
    assert all(most <= len(each) for most, each in zip(found, every, strict=True))
    plain = [literal.staircase(memory, each)[0] for each in every]
    assert all(states <= set(each) for states, each in zip(plain, weights, strict=True))


@pytest.mark.parametrize("seed", range(10))
def test_staircases_hold_in_larger_memories(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(3):
        memory = generator.randint(9, 20)
        top = generator.randint(2, memory)
        size = generator.randint(1, min(8, memory))
        thresholds = sorted(generator.choices(range(1, top + 1), k=size))
        states, most = literal.staircase(memory, thresholds)
        assert literal.largest_by_program(dict.fromkeys(states, 1), memory) <= most
        weights, most = literal.lifted_staircase(memory, thresholds)
        assert literal.largest_by_program(weights, memory) <= most


@pytest.mark.parametrize("memory", range(2, 11))
def test_single_thresholds_are_the_maximal_cliques(memory: int) -> None:
    """Of states no two of which, nor two of one, can stand together."""
    states = [s for s in literal.all_states(memory) if not literal.feasible([s, s], memory)]
    clash = {
        s: {t for t in states if t != s and not literal.feasible([s, t], memory)} for s in states
    }
    cliques = set(maximal_cliques(frozenset(), set(states), set(), clash))
    single = {frozenset(literal.staircase(memory, [h])[0]) for h in range(1, memory + 1)}
    assert cliques == {each for each in single if not any(each < other for other in single)}


def maximal_cliques(
    clique: frozenset[State], more: set[State], done: set[State], clash: dict[State, set[State]]
) -> Iterator[frozenset[State]]:
    """Yield them by Bron and Kerbosch, with the pivot of Tomita and others."""
    if not more and not done:
        yield clique
        return
    pivot = max(sorted(more | done), key=lambda state: len(clash[state] & more))
    for state in sorted(more - clash[pivot]):
        near = clash[state]
        yield from maximal_cliques(clique | {state}, more & near, done & near, clash)
        more, done = more - {state}, done | {state}


def monotone_sets(memory: int) -> list[set[State]]:
    """Return the sets that with (h, r) hold every state of more tokens or more rounds."""
    found = []
    for least in itertools.product(*[range(memory - h + 2) for h in range(1, memory + 1)]):
        if all(low >= high for low, high in itertools.pairwise(least)):
            columns = enumerate(least, start=1)
            found.append({(h, r) for h, low in columns for r in range(low, memory - h + 1)})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("memory", range(4, 9))
def test_staircases_are_the_maximal_monotone_sets(memory: int) -> None:
    families = monotone_sets(memory)
    found = most_in_any(memory, [dict.fromkeys(each, 1) for each in families])
    for most in range(1, 5):
        stairs = [literal.staircase(memory, each)[0] for each in ascending(memory, most)]
        below = [each for each, value in zip(families, found, strict=True) if value <= most]
        maximal = [each for each in below if not any(each < other for other in below)]
        assert all(each in stairs for each in maximal)


def separated(mass: literal.Weights, memory: int, most: int) -> Fraction:
    """Separate a staircase by the dynamic program over h."""
    best: dict[tuple[int, int], Fraction] = {(0, 0): Fraction()}
    for h in range(1, memory + 1):
        for (count, total), value in sorted(best.items()):
            for more in range(1, most - count + 1):
                state = count + more, min(total + more * h, memory + 1)
                best[state] = max(best.get(state, value - more), value - more)
        for (count, total), value in best.items():
            if count:
                best[count, total] = value + sum(
                    Fraction(mass.get((h, r), 0))
                    for r in range(memory - h + 1)
                    if h + (count + 1) * r >= memory + 1 - total
                )
    return max(value for (count, _), value in best.items() if count)


@pytest.mark.parametrize("seed", range(8))
def test_separation_of_staircases(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(4):
        memory = generator.randint(2, 7)
        states = literal.all_states(memory)
        mass = {s: Fraction(generator.randint(0, 4), 7) for s in states}
        most = generator.randint(1, 3)
        violation, thresholds = literal.most_violated_staircase(mass, memory, most)
        assert separated(mass, memory, most) == violation
        inside, right = literal.staircase(memory, thresholds)
        assert sum(mass[s] for s in inside) - right == violation

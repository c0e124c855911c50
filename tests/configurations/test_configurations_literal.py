"""The claims of docs/configurations.md, put to the test on problems that enumeration settles."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import oracle
import pytest
from literal import configurations as literal
from literal.best_prices import best_prices, windows_until
from literal.configurations import Prices, State
from numpy.typing import NDArray
from oracle import Triple


def drawn(generator: random.Random, most: int, memory: int = 7, late: int = 3) -> list[Triple]:
    """Return up to ``most`` requests; about half of the problems have arrivals."""
    late = generator.choice([0, late])
    requests = []
    for _ in range(generator.randint(1, most)):
        output = generator.randint(1, min(4, memory))
        prompt = generator.randint(0, min(3, memory - output))
        requests.append((generator.randint(0, late), prompt, output))
    return requests


def drawn_prices(generator: random.Random, requests: Sequence[Triple]) -> Prices:
    """Price some of the states that the requests can reach, at some times."""
    states = sorted(literal.copies_at(requests))
    most = generator.choice([1, 2, 4])
    return {
        time: {
            state: Fraction(generator.randint(0, 2 * most), 3)
            for state in states
            if generator.random() < 0.7
        }
        for time in range(1, generator.randint(2, 8))
    }


def problems(seed: int, count: int, most: int = 3) -> Iterator[tuple[int, list[Triple], Prices]]:
    """Yield memories, requests, and prices, every second ones about the best."""
    generator = random.Random(seed)
    for i in range(count):
        memory = generator.randint(2, 7)
        requests = drawn(generator, most, memory)
        prices = drawn_prices(generator, requests)
        yield memory, requests, best_prices(memory, requests) if i % 2 else prices


def copies_for(
    requests: Sequence[Triple], prices: Prices, kind: str
) -> dict[int, literal.Copies] | None:
    if kind == "unlimited":
        return None
    return {t: literal.copies_at(requests, t if kind == "at the time" else None) for t in prices}


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


def ascending(memory: int, most: int) -> list[tuple[int, ...]]:
    return [
        thresholds
        for count in range(1, most + 1)
        for thresholds in itertools.combinations_with_replacement(range(1, memory + 1), count)
    ]


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


# Cuts and bounds against schedules.


@pytest.mark.parametrize("seed", range(4))
def test_schedules_satisfy_every_cut_at_every_time(seed: int) -> None:
    generator = random.Random(seed)
    for memory, requests, prices in problems(seed + 100, 30):
        stairs = [literal.lifted_staircase(memory, each) for each in ascending(memory, 3)]
        some = generator.sample(stairs, min(len(stairs), 12))
        for starts, _ in literal.schedules(memory, requests, windows_until(requests)):
            for time in range(1, oracle.makespan(requests, starts) + 1):
                there = literal.configuration_at(requests, starts, time)
                assert literal.feasible(there, memory)
                assert all(literal.weight(there, weights) <= most for weights, most in some)
        for kind in ("unlimited", "at any time", "at the time"):
            right = literal.right_sides(memory, prices, copies_for(requests, prices, kind))
            for starts, _ in literal.schedules(memory, requests, windows_until(requests)):
                assert all(
                    literal.weight(literal.configuration_at(requests, starts, time), weights)
                    <= right[time]
                    for time, weights in prices.items()
                )


@pytest.mark.parametrize("kind", ["unlimited", "at any time", "at the time"])
def test_bounds_are_below_the_optimum(kind: str) -> None:
    close = 0
    for memory, requests, prices in problems(7, 600, most=4):
        copies = copies_for(requests, prices, kind)
        value = literal.configuration_bound(memory, requests, prices, copies=copies)
        best, _ = oracle.optimum(memory, requests)
        assert value <= best
        close += value > best - 1
    assert close > 250


def test_negative_prices_prove_bounds_too_and_never_better_ones() -> None:
    generator = random.Random(3)
    for memory, requests, prices in problems(8, 300):
        mixed = {
            time: {s: v - generator.randint(0, 2) for s, v in weights.items()}
            for time, weights in prices.items()
        }
        plain = {t: {s: max(v, Fraction()) for s, v in w.items()} for t, w in mixed.items()}
        value = literal.configuration_bound(memory, requests, mixed)
        assert value <= literal.configuration_bound(memory, requests, plain)


def test_the_last_start_to_look_at_is_the_last_priced_time() -> None:
    memory, requests = 3, [(0, 2, 1), (0, 2, 1)]
    prices: Prices = {1: {(3, 0): Fraction(1071, 1000)}}
    assert literal.windows_of(requests, prices) == [range(2), range(2)]
    value = literal.configuration_bound(memory, requests, prices)
    assert value == Fraction(2929, 1000)
    short = literal.configuration_bound(memory, requests, prices, windows=[[0], [0]])
    assert short == Fraction(3071, 1000)
    assert oracle.optimum(memory, requests)[0] == 3
    for _, requests, prices in problems(9, 100):
        longer = [range(w.start, w.stop + 5) for w in literal.windows_of(requests, prices)]
        assert literal.least_costs(requests, prices) == literal.least_costs(
            requests, prices, longer
        )


def test_one_price_for_all_cuts_is_at_least_the_sum_of_them() -> None:
    generator = random.Random(4)
    for memory, requests, _ in problems(10, 60):
        states = literal.all_states(memory)
        cuts = [{s: generator.randint(0, 3) for s in states} for _ in range(3)]
        parts = [Fraction(generator.randint(0, 4), 4) for _ in cuts]
        total = {
            s: sum((p * cut[s] for p, cut in zip(parts, cuts, strict=True)), Fraction())
            for s in states
        }
        copies = literal.copies_at(requests)
        apart = [literal.largest_by_program(cut, memory, copies) for cut in cuts]
        assert literal.largest_by_program(total, memory, copies) <= sum(
            p * most for p, most in zip(parts, apart, strict=True)
        )


# Slack.


@pytest.mark.parametrize("seed", range(6))
def test_what_a_schedule_costs_is_the_bound_and_its_slacks(seed: int) -> None:
    for memory, requests, prices in problems(seed + 20, 40):
        copies = copies_for(requests, prices, "at the time")
        bound = literal.configuration_bound(memory, requests, prices, copies=copies)
        right = literal.right_sides(memory, prices, copies)
        least = literal.least_costs(requests, prices)
        for starts, total in literal.schedules(memory, requests, windows_until(requests)):
            reduced = reduced_costs(requests, starts, prices, least)
            slacks = slacks_of(requests, starts, prices, right)
            assert min([*reduced, *slacks.values()]) >= 0
            assert total == bound + sum(reduced) + sum(slacks.values())


def reduced_costs(
    requests: Sequence[Triple], starts: Sequence[int], prices: Prices, least: Sequence[Fraction]
) -> list[Fraction]:
    return [
        literal.reduced_cost(request, start, prices, cheapest)
        for request, start, cheapest in zip(requests, starts, least, strict=True)
    ]


def slacks_of(
    requests: Sequence[Triple],
    starts: Sequence[int],
    prices: Prices,
    right: dict[int, Fraction],
) -> dict[int, Fraction]:
    return {
        time: right[time]
        - literal.weight(literal.configuration_at(requests, starts, time), weights)
        for time, weights in prices.items()
    }


@pytest.mark.parametrize("seed", range(6))
def test_what_is_decided_by_a_time_bounds_every_completion(seed: int) -> None:
    """Starts before ``time`` are decided; the others pay at least their cheapest later start."""
    for memory, requests, prices in problems(seed + 40, 25):
        bound = literal.configuration_bound(memory, requests, prices)
        right = literal.right_sides(memory, prices)
        least = literal.least_costs(requests, prices)
        last = literal.last_priced(prices)
        for starts, total in literal.schedules(memory, requests, windows_until(requests)):
            slacks = slacks_of(requests, starts, prices, right)
            known = bound
            for time in range(1, last + 2):
                past = sum((slack for t, slack in slacks.items() if t <= time), Fraction())
                paid = Fraction()
                for request, start, cheapest in zip(requests, starts, least, strict=True):
                    later = range(time, max(time, last, request[0]) + 1)
                    open_starts = [start] if start < time else [k for k in later if k >= request[0]]
                    paid += min(
                        literal.reduced_cost(request, k, prices, cheapest) for k in open_starts
                    )
                assert known <= bound + paid + past <= total
                known = bound + paid + past


@pytest.mark.parametrize("dominance", [False, True])
def test_a_search_forward_in_time_finds_what_is_better(dominance: bool) -> None:
    for memory, requests, prices in problems(70, 80):
        best, _ = oracle.optimum(memory, requests)
        for upper in (best, best + 1, best + 3):
            found = literal.search_forward(memory, requests, prices, upper, dominance=dominance)
            if upper == best:
                assert found is None
            else:
                assert found is not None
                assert oracle.feasible(memory, requests, found)
                assert oracle.tel(requests, found) == best


# Removing starts.


@pytest.mark.parametrize("kind", ["unlimited", "at the time"])
def test_no_better_schedule_loses_a_start(kind: str) -> None:
    removed = 0
    for memory, requests, prices in problems(30, 200):
        windows = windows_until(requests)
        bound = literal.configuration_bound(
            memory, requests, prices, copies=copies_for(requests, prices, kind)
        )
        every = list(literal.schedules(memory, requests, windows))
        best = min(total for _, total in every)
        for upper in (best, best + 1, best + 2):
            left = literal.surviving(requests, prices, bound, upper, windows)
            removed += sum(map(len, windows)) - sum(map(len, left))
            for starts, total in every:
                inside = all(k in window for k, window in zip(starts, left, strict=True))
                assert inside or total >= upper
    assert removed > 500


def test_the_rounded_bound_removes_too_much() -> None:
    memory, requests = 3, [(0, 2, 1), (0, 2, 1)]
    prices: Prices = {1: {(3, 0): Fraction(3, 2)}}
    bound = literal.configuration_bound(memory, requests, prices)
    assert (bound, oracle.optimum(memory, requests)) == (Fraction(5, 2), (3, (0, 1)))
    windows = [range(3), range(3)]
    assert literal.surviving(requests, prices, bound, 4, windows) == [[0, 1], [0, 1]]
    # Rounded up it is 3, and no start at round 0 is left: 4 would seem to be the best.
    assert literal.surviving(requests, prices, 3, 4, windows) == [[1], [1]]


def test_removing_again_and_again_proves_the_lesser_of_both() -> None:
    """Each step has prices of its own and speaks of what the steps before it have left."""
    generator = random.Random(12)
    sharper = 0
    for memory, requests, _ in problems(31, 300):
        best, _ = oracle.optimum(memory, requests)
        upper = best + generator.randint(0, 2)
        windows: list[list[int]] = [list(window) for window in windows_until(requests, extra=9)]
        for _ in range(3):
            prices = drawn_prices(generator, requests)
            copies = {t: literal.copies_in(requests, windows, t) for t in prices}
            if not all(windows):
                break
            value = literal.configuration_bound(
                memory, requests, prices, copies=copies, windows=windows
            )
            assert min(Fraction(upper), value) <= best
            sharper += value > literal.configuration_bound(memory, requests, prices)
            windows = literal.surviving(requests, prices, value, upper, windows, inside=True)
        assert all(windows) or upper == best
    assert sharper > 80


def test_a_tree_of_windows_proves_the_least_of_its_leaves() -> None:
    generator = random.Random(13)
    better = 0
    for memory, requests, prices in problems(32, 300):
        windows = [list(window) for window in windows_until(requests, extra=9)]
        leaves = [windows]
        for _ in range(3):
            leaf = leaves.pop(generator.randrange(len(leaves)))
            leaves += halves(leaf, generator)
        values = []
        for leaf in leaves:
            own = prices if generator.random() < 0.5 else drawn_prices(generator, requests)
            copies = {t: literal.copies_in(requests, leaf, t) for t in own}
            values.append(
                literal.configuration_bound(memory, requests, own, copies=copies, windows=leaf)
            )
        assert min(values) <= oracle.optimum(memory, requests)[0]
        better += min(values) > literal.configuration_bound(memory, requests, prices)
    assert better > 25


def halves(windows: list[list[int]], generator: random.Random) -> list[list[list[int]]]:
    """Split the window of one request in two."""
    wide = [i for i, window in enumerate(windows) if len(window) > 1]
    if not wide:
        return [windows]
    i = generator.choice(wide)
    cut = generator.randrange(1, min(len(windows[i]), 4))
    parts = windows[i][:cut], windows[i][cut:]
    return [[*windows[:i], part, *windows[i + 1 :]] for part in parts]


# Volumes from weights.


def fluid(volumes: Sequence[tuple[int, Fraction]], rate: Fraction) -> list[Fraction]:
    """Return the sorted completions of the fluid by smallest remaining volume."""
    left = {i: volume for i, (_, volume) in enumerate(volumes)}
    now, done = Fraction(), []
    while left:
        coming = [arrival for arrival, _ in volumes if arrival > now]
        there = [i for i in left if volumes[i][0] <= now]
        if not there:
            now = Fraction(min(coming))
            continue
        first = min(there, key=lambda i: left[i])
        step = min([left[first] / rate, *[arrival - now for arrival in coming]]) if rate else 0
        now += step
        left[first] -= step * rate
        if left[first] == 0:
            del left[first]
            done.append(now)
    return done


def test_volumes_from_any_weights_bound_the_completions_by_rank() -> None:
    for memory, requests, prices in problems(50, 300, most=4):
        weights = prices[1]
        volumes = [
            (
                a,
                sum(
                    (Fraction(weights.get((s + g, o - g), 0)) for g in range(1, o + 1)), Fraction()
                ),
            )
            for a, s, o in requests
        ]
        copies = literal.copies_at(requests)
        done = fluid(volumes, literal.largest(weights, memory, copies))
        earliest = sorted(a + o for a, _, o in requests)
        ranks = [max(math.ceil(x), e) for x, e in zip(done, earliest, strict=True)]
        best, _ = oracle.optimum(memory, requests)
        assert sum(ranks) - sum(a for a, _, _ in requests) <= best

"""The claims of docs/configurations.md about bounds, against all schedules of small problems."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import oracle
import pytest
from literal import configurations as literal
from literal.best_prices import windows_until
from literal.configurations import Prices
from literal.problems import ascending, copies_for, drawn_prices, problems
from oracle import Triple

# Cuts and bounds against schedules.


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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

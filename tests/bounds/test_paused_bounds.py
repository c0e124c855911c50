"""Bounds for schedules with pauses: below the optimum, and equal to their definition."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import oracle
import pause_oracle
import pytest
from effort import many
from oracle import Triple
from strategies import Problem, instance_of, plain, random_instances

from kvopt import Instance, InvalidInput, Request, bound, generate
from kvopt.bounds import paused_scan
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import Ascent, first_prices, offer_lagrangian_bound
from kvopt.bounds.paused_scan import PausedScanner
from kvopt.bounds.prices import denominator_for, price_bound, price_value, rounded_prices
from kvopt.bounds.scan import Interrupted
from kvopt.bounds.volume import volume_bound
from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import Prices

WORKED: list[tuple[Problem, int, int]] = [
    ((10, ((0, 0, 10), (6, 5, 1))), 14, 12),
    ((3, ((0, 0, 3), (1, 2, 1))), 6, 5),
]
"""Problem, optimum without pauses, optimum with them."""

RISING = instance_of(3, [(0, 0, 3), (0, 1, 2), (1, 2, 1)])
RISING_PRICES = Prices((0, 7, 4, 1), 9)


def by_definition(problem: Problem, prices: Prices) -> int:
    """Return the bound times the denominator, from every choice of active times."""
    memory, requests = problem
    p = dict(enumerate(prices.numerators, 1))

    def least(request: Triple) -> int:
        arrival, prompt, output = request
        end = max(arrival, len(p)) + output
        return min(
            prices.denominator * (times[-1] - arrival)
            + sum(p.get(time, 0) * (prompt + j) for j, time in enumerate(times, 1))
            for times in combinations(range(arrival + 1, end + 1), output)
        )

    return sum(map(least, requests)) - memory * sum(p.values())


def random_prices(source: random.Random, most: int = 8) -> Prices:
    unit = source.choice((1, 3, 7, 9))
    level = source.choice((unit, 3 * unit))
    count = source.randint(0, most)
    return Prices(tuple(source.choice((0, source.randint(0, level))) for _ in range(count)), unit)


@pytest.mark.parametrize(("problem", "runs", "pauses"), WORKED)
def test_worked_cases(problem: Problem, runs: int, pauses: int) -> None:
    assert oracle.optimum(*problem)[0] == runs
    assert pause_oracle.optimum(*problem) == pauses
    instance = instance_of(*problem)
    assert bound(instance, "lagrangian", scope="pauses").value == pauses
    assert bound(instance).value == runs
    assert bound(instance, "volume", scope="pauses").value == volume_bound(instance) < pauses


def test_prices_that_rise_need_pauses() -> None:
    """Without pauses these prices prove more than there is."""
    assert pause_oracle.optimum(*plain(RISING)) == 9 < oracle.optimum(*plain(RISING))[0]
    assert price_bound(RISING, RISING_PRICES) == 10
    assert price_bound(RISING, RISING_PRICES, pauses=True) <= 9
    assert price_value(RISING, RISING_PRICES, pauses=True) == by_definition(
        plain(RISING), RISING_PRICES
    )


@pytest.mark.slow
def test_bounds_hold() -> None:
    """Compare what random prices and volumes prove with the optimum and with the definition."""
    source = random.Random(3)
    paid = 0
    for instance in random_instances(many(300), 3, most_memory=8, most_output=4, last_arrival=3):
        problem = plain(instance)
        best, runs = pause_oracle.optimum(*problem), oracle.optimum(*problem)[0]
        assert volume_bound(instance) <= best <= runs
        paid += best < runs
        prices = random_prices(source)
        value = by_definition(problem, prices)
        assert price_value(instance, prices, pauses=True) == value
        scanner = PausedScanner(Kinds.of(instance), threads=source.choice((1, 2)))
        assert price_value(instance, prices, scanner, pauses=True) == value
        assert value <= price_value(instance, prices)
        assert -(-value // prices.denominator) <= best
    assert paid > many(30)


def test_falling_prices_prove_as_much_with_pauses() -> None:
    """From the first arrival on they never rise, so no pause is cheaper."""
    source = random.Random(5)
    for instance in random_instances(100, seed=6, last_arrival=4):
        numbers = sorted((source.randint(0, 9) for _ in range(12)), reverse=True)
        first = min((r.arrival for r in instance), default=0)
        prices = Prices((*[0] * first, *numbers), 5)
        assert price_value(instance, prices, pauses=True) == price_value(instance, prices)


def test_evaluations_agree_on_larger_instances() -> None:
    source = random.Random(7)
    instance = generate("conversation", 60, 4000, seed=1)
    instance = Instance(
        4000, [Request(source.randint(0, 300), r.prompt, r.output) for r in instance]
    )
    prices = Prices(tuple(source.randint(0, 2**16) for _ in range(500)), 2**25)
    for threads in (1, 2):
        scanner = PausedScanner(Kinds.of(instance), threads)
        assert price_value(instance, prices, scanner, pauses=True) == price_value(
            instance, prices, pauses=True
        )


def test_too_large_for_64_bits_is_still_exact() -> None:
    instance = instance_of(50, [(0, 3, 5), (2, 1, 9)])
    prices = Prices((2**69, 5, 2**70), 2**71)
    value = price_value(instance, prices, PausedScanner(Kinds.of(instance)), pauses=True)
    assert value == by_definition(plain(instance), prices)


def test_tokens_held_are_a_direction_of_ascent() -> None:
    """The bound is concave: at other prices it is below the line that the tokens give."""
    source = random.Random(9)
    for instance in random_instances(150, seed=10, most_output=6):
        scanner = PausedScanner(Kinds.of(instance))
        prices = np.array([source.uniform(0, 0.5) for _ in range(10)])
        others = np.maximum(prices + [source.uniform(-0.2, 0.2) for _ in prices], 0.0)
        value, _, excess = scanner.lagrangian(prices, instance.memory)
        assert (
            scanner.lagrangian(others, instance.memory)[0]
            <= value + excess @ (others - prices) + 1e-9
        )


def test_the_ascent_passes_the_volume_bound() -> None:
    instance = generate("arrival-2", n=12, seed=1)
    scanner = PausedScanner(Kinds.of(instance))
    ascent = Ascent(scanner.at(instance.total_memory), first_prices(instance))
    for _ in range(200):
        ascent.step()
    prices = rounded_prices(ascent.prices, denominator_for(instance, ascent.prices))
    proved = price_bound(instance, prices, pauses=True)
    assert ascent.value - 1e-3 <= proved
    assert volume_bound(instance) < proved


@pytest.mark.parametrize("method", ["volume", "lagrangian", "auto"])
def test_what_is_reported_names_its_scope(method: str) -> None:
    found = bound(instance_of(*WORKED[0][0]), method, scope="pauses")
    assert str(found.scope) == found.to_json()["scope"] == "pauses"
    assert "pauses it with its tokens kept" in " ".join(str(found).split())


@pytest.mark.parametrize("method", ["lp", "configuration", "some"])
def test_methods_that_do_not_cover_pauses_are_refused(method: str) -> None:
    with pytest.raises(
        InvalidInput, match="method with pauses: must be one of volume, lagrangian, auto, got"
    ):
        bound(instance_of(3, [(0, 0, 1)]), method, scope="pauses")


def test_a_scan_stops_when_asked() -> None:
    scanner = PausedScanner(Kinds.of(RISING), should_stop=lambda: True)
    with pytest.raises(Interrupted):
        scanner.lagrangian(np.array([0.0, 1.0]), 3)


def test_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paused_scan, "_LARGEST_TABLE", 1)
    with pytest.raises(TooLarge, match="pauses make 12 places, the limit is 1"):
        price_value(RISING, RISING_PRICES, PausedScanner(Kinds.of(RISING)), pauses=True)
    search = Search(RISING)
    with search.surviving("lagrangian"):
        offer_lagrangian_bound(search, pauses=True)
    assert search.checked is not None, "the first prices are evaluated without compiled code"

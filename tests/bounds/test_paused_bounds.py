"""Bounds for schedules with pauses: below the optimum, and equal to their definition."""

from __future__ import annotations

import random
from functools import partial

import brute_force
import numpy as np
import pytest
from strategies import Problem, instance_of, random_instances

from kvopt import bound, generate
from kvopt.bounds import scan
from kvopt.bounds.gradient_ascent import Ascent
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import STEPS, ConcaveInPrices, first_prices
from kvopt.bounds.prices import denominator_for, price_bound, price_value, rounded_prices
from kvopt.bounds.scan import Scanner
from kvopt.bounds.volume import volume_bound
from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import token_prices
from kvopt.kernels.budget import Budget
from kvopt.problem.problem import as_problem
from kvopt.problem.scopes import Scope
from kvopt.search.stages import ascend

pytestmark = pytest.mark.usefixtures("few_steps")

WORKED: list[tuple[Problem, int, int]] = [
    ((10, ((0, 0, 10), (6, 5, 1))), 14, 12),
    ((3, ((0, 0, 3), (1, 2, 1))), 6, 5),
]
"""Problem, optimum without pauses, optimum with them."""

RISING = instance_of(3, [(0, 0, 3), (0, 1, 2), (1, 2, 1)])
RISING_PRICES = token_prices((0, 7, 4, 1), 9)


@pytest.mark.parametrize(("problem", "runs", "pauses"), WORKED)
def test_worked_cases_have_the_optimum_with_and_without_pauses(
    problem: Problem, runs: int, pauses: int
) -> None:
    assert brute_force.optimum(*problem) == runs
    assert brute_force.optimum(*problem, scope="pauses") == pauses
    instance = instance_of(*problem)
    assert bound(instance, "lagrangian", scope="pauses").value == pauses
    assert bound(instance).value == runs
    assert bound(instance, "volume", scope="pauses").value == volume_bound(instance) < pauses


def test_tokens_held_are_a_direction_of_ascent() -> None:
    """The bound is concave: at other prices it is below the line that the tokens give."""
    source = random.Random(9)
    for instance in random_instances(60, seed=10, most_output=6):
        scanner = Scanner(Kinds.of(instance), pauses=True)
        prices = np.array([source.uniform(0, 0.5) for _ in range(10)])
        others = np.maximum(prices + [source.uniform(-0.2, 0.2) for _ in prices], 0.0)
        value, _, excess = scanner.lagrangian(prices, instance.memory)
        assert (
            scanner.lagrangian(others, instance.memory)[0]
            <= value + excess @ (others - prices) + 1e-9
        )


def test_the_ascent_passes_the_volume_bound() -> None:
    instance = generate("arrival-2", n=12, seed=1)
    scanner = Scanner(Kinds.of(instance), pauses=True)
    concave = ConcaveInPrices(scanner.at(instance.total_memory), 1.0)
    ascent = Ascent(concave, (first_prices(instance),), STEPS)
    for _ in range(200):
        ascent.step()
    prices = rounded_prices(ascent.point[0], denominator_for(Kinds.of(instance), ascent.point[0]))
    proved = price_bound(instance, prices, pauses=True)
    assert ascent.value - 1e-3 <= proved
    assert volume_bound(instance) < proved


@pytest.mark.parametrize("method", ["volume", "lagrangian", "auto"])
def test_what_is_reported_names_its_scope(method: str) -> None:
    found = bound(instance_of(*WORKED[0][0]), method, scope="pauses")
    assert str(found.scope) == found.to_json()["scope"] == "pauses"
    assert "pauses it with its tokens kept" in " ".join(str(found).split())


def test_a_scan_stops_when_asked() -> None:
    scanner = Scanner(Kinds.of(RISING), budget=Budget(0.0), pauses=True)
    with pytest.raises(Stopped):
        scanner.lagrangian(np.array([0.0, 1.0]), 3)


def test_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = partial(Scanner, largest_table=1)
    with pytest.raises(TooLarge, match="pauses make 12 places, the limit is 1"):
        price_value(RISING, RISING_PRICES, scanner(Kinds.of(RISING), pauses=True), pauses=True)
    monkeypatch.setattr(scan, "Scanner", scanner)
    search = Search(as_problem(RISING, scope=Scope.PAUSES))
    ascend(search, search.budget)
    assert search.checked is not None, "the first prices are evaluated without compiled code"

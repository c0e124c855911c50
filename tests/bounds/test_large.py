"""The configuration bound of many requests: few knots, few completions, no start ruled out."""

from __future__ import annotations

import random
from functools import partial

import brute_force
import pytest
from configuration_proofs import proof_of, proved
from effort import many
from known import known
from strategies import instance_of, plain, random_instances
from test_configurations import drawn_knots, drawn_prices

from kvopt import Instance, Request, bound, generate
from kvopt.bounds.configurations import size
from kvopt.bounds.configurations.evaluation import evaluate, total_of
from kvopt.bounds.configurations.states import States
from kvopt.errors import TooLarge
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import ConfigurationProof
from kvopt.kernels.budget import Budget
from kvopt.search import plan
from kvopt.search.stages import states_priced


def with_arrivals(source: random.Random) -> Instance:
    memory = source.randint(4, 12)
    requests = []
    for _ in range(source.randint(1, 6)):
        output = source.randint(1, memory)
        requests.append((source.randint(0, 9), source.randint(0, memory - output), output))
    return instance_of(memory, requests)


def searched(instance: Instance, **options: object) -> Search:
    search = Search(instance, Limits(**options))  # type: ignore[arg-type]
    offer_list_schedules(search)
    return search


def found(method: str, instance: Instance, seconds: float) -> int:
    return known(bound(instance, method, threads=1, time_limit=seconds).value)


def test_the_total_is_that_of_the_evaluation_with_tables() -> None:
    source = random.Random(7)
    for _ in range(many(300)):
        instance = with_arrivals(source)
        states, knots = States.of(instance), drawn_knots(source, source.randint(2, 20))
        starts = states.all_starts(knots.last)
        copies = knots.copies_by_arrival(states)
        assert (copies == knots.copies(states, starts)).all()
        prices, denominator = drawn_prices(source, states, knots, 50), source.choice((1, 7, 64))
        found = evaluate(states, knots, starts, prices, denominator)
        assert total_of(states, knots, prices, denominator) == found.total


@pytest.mark.interpreted
def test_bounds_are_never_above_the_optimum_and_the_verifier_finds_the_same() -> None:
    for instance in random_instances(many(60), 21, least_requests=1):
        search = searched(instance)
        list(states_priced(search, search.budget, few_knots=True))
        checked = known(search.checked)
        assert isinstance(checked.proof, ConfigurationProof)
        (stage,) = checked.proof.stages
        assert checked.value <= brute_force.optimum(*plain(instance))
        content = {
            "denominator": stage.denominator,
            "peaks": list(map(list, stage.peaks)),
            "times": list(stage.times),
            "numerators": list(map(list, stage.numerators)),
        }
        assert proved(plain(instance), proof_of([content])) == checked.value


@pytest.mark.usefixtures("processor_clock")
def test_what_is_too_large_to_search_is_bounded_at_few_knots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Staircases and prices of tokens say less where few requests fit together."""
    instance = generate("uniform", n=85, seed=1)
    monkeypatch.setattr(size, "check_starts", partial(size.check_starts, max_prices=10))
    plain = max(found("lagrangian", instance, 0.5), found("volume", instance, 0.5))
    assert found("auto", instance, 3.0) > 1.05 * plain
    assert found("configuration", instance, 1.0) > 1.05 * plain


@pytest.mark.usefixtures("processor_clock")
def test_many_requests_are_priced_at_few_knots_even_where_all_starts_fit() -> None:
    search = searched(generate("uniform", n=85, seed=1), time_limit=3, threads=1)
    plan.run(plan.PRICES, search, search.budget.part(most=1.5))
    checked = known(search.checked)
    assert isinstance(checked.proof, ConfigurationProof)
    assert len(checked.proof.stages[0].times) < 100
    assert checked.proof.target is None


def test_what_is_too_large_for_that_too_is_refused() -> None:
    rounds = Search(Instance(100, [Request(0, 1, 90)] * 2))
    offer_list_schedules(rounds)
    with pytest.raises(TooLarge, match="2 requests and 30,000,001 rounds are too many"):
        size.check_large(rounds.instance, 30_000_001)
    crowded = Instance(5_000, [Request(0, 1, o) for o in range(1, 400)])
    with pytest.raises(TooLarge, match="sets of requests in 79,800 states"):
        size.check_large(crowded, 500)


def test_it_ends_when_the_time_is_over_and_keeps_what_was_proved() -> None:
    instance = generate("uniform", n=60, seed=1)
    is_enough = False
    search = searched(instance, stop=lambda _: is_enough, threads=1)
    rising = states_priced(search, search.budget, few_knots=True)
    next(rising)
    is_enough = True
    assert next(rising, None) is None
    assert search.checked is not None
    assert not list(states_priced(searched(instance, threads=1), Budget(0.0), few_knots=True))

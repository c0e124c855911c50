"""Bounds of fleets never pass the optimum, on either clock, and the verifier agrees."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from brute_force import Server, optimum
from certificates import proved
from effort import many
from known import known
from strategies import batch_time, plain, random_instances

from kvopt import Instance, Request, bound, generate, run
from kvopt.bounds.seconds_evaluation import shares_bound
from kvopt.bounds.staircases import staircase_bound
from kvopt.bounds.volume import volume_bound
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import SharesProof
from kvopt.problem.clocks import Seconds
from kvopt.search.bounding import bounds_by_workers

pytestmark = pytest.mark.usefixtures("few_steps")

METHODS = ("volume", "lp", "lagrangian", "slots", "configuration", "auto")


def fleets(count: int, seed: int, **limits: int) -> list[Instance]:
    source = random.Random(seed)
    drawn = random_instances(count, seed, least_requests=2, most_memory=8, **limits)
    return [Instance(each.memory, each.requests, workers=source.randint(2, 3)) for each in drawn]


def both_sides(instance: Instance) -> Counter[str]:
    """Check every method, and a schedule, against the optimum; return which of them are tight."""
    best = optimum(instance.memory, plain(instance)[1], workers=instance.workers)
    made = known(run(instance, "svf").objective)
    assert best <= made
    tight = Counter(svf=made == best)
    for method in METHODS:
        found = bound(instance, method, threads=1)
        if method in ("lp", "slots") and found.value is None:
            continue  # prices of a horizon may say nothing beyond it, and slots be worth nothing
        assert found.value is not None
        assert found.value == proved(instance, known(found.checked).proof) <= best
        tight[method] += found.value == best
    for method in ("volume", "lagrangian"):
        assert known(bound(instance, method, scope="pauses", threads=1).value) <= best
    return tight


@pytest.mark.slow
def test_every_method_stays_below_the_optimum_and_is_verified() -> None:
    drawn = fleets(many(8), 2)
    tight = sum(map(both_sides, drawn), Counter[str]())
    assert tight["configuration"] > len(drawn) * 0.8
    assert tight["configuration"] >= tight["lagrangian"] >= tight["volume"]


def test_own_caches_say_more_than_one_that_is_as_large() -> None:
    """Each worker has room for one of three, one cache as large as both has it for three."""
    three = Instance(5, [Request(0, 2, 1)] * 3, workers=2)
    assert bound(three, "configuration").value == 4
    assert staircase_bound(three, [(3,)]) == 4
    assert bound(three.pooled(), "configuration").value == volume_bound(three) == 3


@pytest.mark.slow
def test_more_workers_than_requests_are_of_no_use() -> None:
    two = [Request(0, 1, 2), Request(1, 2, 3)]
    for workers in (2, 5, 100):
        for method in METHODS:
            assert bound(Instance(5, two, workers=workers), method).value == 5


def test_bounds_of_parts_between_idle_gaps_add_up() -> None:
    late = [Request(r.arrival + 1000, r.prompt, r.output) for r in [Request(0, 2, 1)] * 3]
    instance = Instance(5, [Request(0, 2, 1)] * 3 + late, workers=2)
    assert bound(instance, "configuration").value == 8


def test_a_fleet_has_a_schedule_to_start_from() -> None:
    for instance in fleets(50, 3, most_requests=9):
        search = Search(instance)
        offer_list_schedules(search)
        assert known(search.schedule).check().feasible


def test_the_bound_serves_one_request_as_fast_as_all_workers() -> None:
    """One request at a rate above 1 is no schedule, and leaving that out would be no bound."""
    server = Server([(2, 0)], 0, 0)
    triples = [(0, 3, 2), (0, 3, 1), (0, 0, 2)]
    instance = Instance(5, [Request(*triple) for triple in triples], workers=2)
    proof = SharesProof((0,), (64, 32, 24))
    assert shares_bound(instance, batch_time(server), proof) <= 10
    assert optimum(5, triples, server=server, workers=2) == 10


def test_bounds_of_many_numbers_of_workers_are_those_of_each() -> None:
    instance = Instance(5, [Request(0, 2, 1)] * 3 + [Request(9, 1, 3)] * 3)
    found = bounds_by_workers(instance, (3, 1, 2))
    assert list(found) == [1, 2, 3]
    for workers, one in found.items():
        fleet = Instance(5, instance.requests, workers=workers)
        assert one.value == bound(fleet).value == proved(fleet, one.proof)


@pytest.mark.slow
def test_bounds_never_rise_with_the_number_of_workers() -> None:
    for scope in ("runs", "pauses"):
        found = bounds_by_workers(generate("arrival-1", 5, seed=1), range(1, 4), scope=scope)
        values = [one.value for one in found.values()]
        assert values == sorted(values, reverse=True)
    model = batch_time(Server([(2, 1)], 0, 1))
    timed = bounds_by_workers(generate("arrival-1", 20, seed=1), range(1, 6), Seconds(model))
    values = [one.value for one in timed.values()]
    assert values == sorted(values, reverse=True)
    assert values[0] > 2 * values[-1]


def test_without_time_or_requests_there_is_a_bound() -> None:
    instance = generate("arrival-1", 20, seed=1)
    found = bounds_by_workers(instance, (1, 2), time_limit=0)
    assert found[1].value >= volume_bound(instance)
    assert bounds_by_workers(Instance(5, []), (1, 2))[2].value == 0
    stopped = bounds_by_workers(instance, (2,), stop=lambda _: True)
    assert stopped[2].value >= volume_bound(Instance(instance.memory, instance.requests, workers=2))

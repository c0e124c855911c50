"""The exact engine: against brute force, against CP-SAT, at limits and at the edges."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from itertools import islice, product
from pathlib import Path

import brute_force
import numpy as np
import pytest
from effort import many
from known import known
from strategies import plain, random_instances
from test_engines import assert_sound

from kvopt import Instance, Request, SolveParams, SolveResult, Status, generate, solve, verify
from kvopt.bounds.configurations import dual_ascent
from kvopt.bounds.configurations.dual_ascent import DualAscent
from kvopt.bounds.configurations.evaluation import evaluate
from kvopt.bounds.configurations.expand import TooWide
from kvopt.bounds.configurations.forward_search import ForwardSearch, predecessors_of
from kvopt.bounds.configurations.states import Knots
from kvopt.certificates import Certificate, write_certificate
from kvopt.heuristics import reinsertion
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.heuristics.reinsertion import search_reinsertions
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import ConfigurationProof
from kvopt.incumbent.result import BoundSource, StopReason
from kvopt.kernels.budget import Budget
from kvopt.search.exact import exact_engine as exact
from kvopt.search.exact import forward as searches
from kvopt.search.exact.forward import Forward
from kvopt.search.stages import states_priced

UNCHECKABLE = SolveParams(exact_checkable_labels=0)
"""No search is one that `kvopt verify` can repeat."""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what comes after a first search end soon."""
    monkeypatch.setattr(searches, "WIDEST_WIDTH", 1000)
    monkeypatch.setattr(dual_ascent, "STAGES", dual_ascent.STAGES[:1])
    brief_search = partial(search_reinsertions, longest_cycle=1000)
    monkeypatch.setattr(reinsertion, "search_reinsertions", brief_search)


@pytest.fixture
def completed(brief: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:  # noqa: ARG001 - a fixture
    """Return a function that lets all searches use cost-to-go bounds of so many sets."""
    run = exact.run

    def use(sets: int) -> None:
        monkeypatch.setattr(exact, "run", partial(run, few_requests=0, max_sets=sets))

    return use


def assert_both_sides(result: SolveResult) -> None:
    assert known(result.schedule).check().feasible
    assert known(result.lower_bound) <= known(result.objective)
    assert not result.faults


@pytest.mark.parametrize("presolve", [True, False])
def test_optima_are_those_of_brute_force(presolve: bool) -> None:
    drawn = random_instances(many(80), seed=int(presolve), most_memory=12, most_output=6)
    for number, instance in enumerate(drawn):
        optimum = brute_force.optimum(*plain(instance))
        found = solve(
            instance,
            "exact",
            presolve=presolve,
            threads=2 if number % 10 == 0 else 1,
            quick_start=number % 2 == 0,
            checkable=number % 3 == 0,
        )
        assert_sound(found, optimum)
        assert found.bound_source is BoundSource.CHECKED


@pytest.mark.slow
@pytest.mark.parametrize("sets", [1, 4, 10_000])
def test_optima_with_completion_bounds_are_those_of_brute_force(
    sets: int, completed: Callable[[int], None]
) -> None:
    """Which a large table makes exact, and a small one nearly worthless."""
    completed(sets)
    for number, instance in enumerate(random_instances(many(30), 70 + sets, last_arrival=4)):
        optimum = brute_force.optimum(*plain(instance))
        presolve, quick = number % 2 == 0, number % 3 == 0
        found = solve(instance, "exact", params=UNCHECKABLE, presolve=presolve, quick_start=quick)
        assert_sound(found, optimum)


@pytest.mark.slow
@pytest.mark.parametrize("sets", [4, 10_000])
def test_searches_with_completion_bounds_are_proofs_that_verify_repeats(
    tmp_path: Path, sets: int, completed: Callable[[int], None]
) -> None:
    completed(sets)
    repeated, path = 0, tmp_path / "c.json"
    for seed in (1, 3):
        instance = generate("arrival-1", 8, seed=seed)
        found = solve(
            instance, "exact", params=SolveParams(exact_checkable_labels=18_000), checkable=True
        )
        assert_sound(found, known(solve(instance).objective))
        proof = None if found.checked is None else found.checked.proof
        if not (isinstance(proof, ConfigurationProof) and proof.cuts and proof.target):
            continue
        write_certificate(found.certificate(), path)
        verdict = verify(path)
        assert verdict.valid, verdict.lines
        repeated += any(f"none below {proof.target:,}" in line for line in verdict.lines)
        text = path.read_text(encoding="utf-8")
        above = text.replace(f'"target": {proof.target}', f'"target": {proof.target + 1}')
        assert above != text
        path.write_text(above, encoding="utf-8")
        if proof.target == found.objective:
            assert not verify(path).valid
    assert repeated


@pytest.mark.slow
@pytest.mark.usefixtures("brief", "processor_clock")
def test_completion_bounds_are_offered_with_a_proof() -> None:
    instance = generate("arrival-1", 12, seed=0)
    bounds = []
    for checkable in (False, True):
        search = Search(instance, Limits(params=UNCHECKABLE), checkable=checkable)
        offer_list_schedules(search)
        rising = next(states_priced(search, search.budget))
        evaluation = rising.evaluation
        forward = Forward(search, rising, max_sets=5_000)
        forward.complete(Budget(10.0))
        bounds.append(known(search.lower_bound) - evaluation.bound)
        forward.complete(Budget(0.0))  # no time, no harm
        assert known(search.checked).value == search.lower_bound
    assert bounds[0] == bounds[1] > 0


@pytest.mark.thorough
@pytest.mark.usefixtures("brief", "processor_clock")
def test_labels_of_a_proof_are_limited() -> None:
    instance = generate("arrival-1", 12, seed=0)
    best = known(solve(instance, "exact", time_limit=60).schedule)
    optimum = best.objective

    def excluded(labels: int, target: int) -> tuple[int, int]:
        params = SolveParams(exact_checkable_labels=labels)
        search = Search(instance, Limits(params=params), checkable=True)
        search.offer_starts(best.starts, "optimum")
        rising = next(states_priced(search, search.budget))
        forward = Forward(search, rising, max_sets=100)
        forward.complete(Budget(10.0))
        kept = forward.exclude(target, 10**6, look_ahead=True)
        return kept * len(instance), known(search.lower_bound)

    for target in (optimum - 1, optimum):
        labels, bound = excluded(10**9, target)
        assert bound == target
        # Sets of the tables count too.
        assert excluded(labels + labels // 2, target) == (labels, target)
        assert excluded(labels, target)[1] < target


@pytest.mark.slow
@pytest.mark.usefixtures("processor_clock")
def test_higher_least_costs_prove_more(tmp_path: Path) -> None:
    """What the cheapest line of sets starts too seldom gets dearer, and the checker agrees."""
    instance = generate("arrival-1", 12, seed=1)
    bounds = []
    for sharpens in (False, True):
        search = Search(instance, checkable=True)
        offer_list_schedules(search)
        *_, rising = islice(states_priced(search, search.budget), 3)
        forward = Forward(search, rising, max_sets=20_000)
        forward.complete(Budget(5.0), sharpens=sharpens)
        bounds.append(known(search.lower_bound))
        write_certificate(search.result("exact").certificate(), tmp_path / "c.json")
        assert verify(tmp_path / "c.json").valid
    assert bounds[0] < bounds[1] <= known(solve(instance, "exact").objective)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["arrival-1", "arrival-2"])
@pytest.mark.parametrize("n", [7, pytest.param(8, marks=pytest.mark.thorough)])
def test_optima_are_those_of_cp_sat(family: str, n: int) -> None:
    for seed in range(many(1)):
        instance = generate(family, n, seed=seed)
        expected = solve(instance, "cpsat", threads=2, time_limit=20)
        if expected.status is not Status.OPTIMAL:
            continue
        for presolve in (True, False):
            found = solve(instance, "exact", threads=2, presolve=presolve, time_limit=60)
            assert_sound(found, known(expected.objective))


# Limits.


def hard_instance() -> Instance:
    return generate("arrival-1", 40, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("presolve", "n"), [(True, 40), (False, 16)])
@pytest.mark.usefixtures("processor_clock")
def test_a_limit_keeps_both_sides(presolve: bool, n: int) -> None:
    instance = generate("arrival-1", n, seed=1)
    for limit in (0.0, 0.05, 0.5):
        found = solve(instance, "exact", presolve=presolve, time_limit=limit)
        assert_both_sides(found)
        assert found.seconds < limit + 2.0
        if found.status is not Status.OPTIMAL:
            assert found.stop_reason is StopReason.TIME_LIMIT


@pytest.mark.parametrize("after", [0.02, 0.4])
def test_an_interrupt_keeps_both_sides(after: float) -> None:
    search = Search(hard_instance(), Limits(time_limit=60))
    offer_list_schedules(search)
    timer = threading.Timer(after, search.granted.interrupt)
    timer.start()
    exact.run(search)
    timer.join()
    result = search.result("exact")
    assert result.stop_reason is StopReason.INTERRUPTED
    assert result.seconds < after + 3.0
    assert result.objective is not None
    if result.lower_bound is not None:
        assert_both_sides(result)


@pytest.mark.slow
def test_a_search_beyond_its_label_limit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is widened until it ends, whether or not the bound can rise any more."""
    for name in ("FIRST_WIDTH", "WIDTH"):
        monkeypatch.setattr(exact, name, 1)
    for instance in random_instances(
        many(20), 9, least_requests=3, most_requests=6, most_memory=12
    ):
        optimum = brute_force.optimum(*plain(instance))
        assert_sound(solve(instance, "exact", threads=1), optimum)


# Edges.


@pytest.mark.parametrize(
    ("requests", "memory"),
    [
        ([Request(0, 0, 1)], 1),
        ([Request(0, 5, 3)], 8),
        ([Request(7, 2, 4)], 9),
        ([Request(0, 1, 1)] * 9, 2),
        ([Request(0, 1, 2)] * 8, 10),
        ([Request(3, 2, 2), Request(0, 2, 2)] * 3, 8),
        ([Request(0, 9, 1), *[Request(0, 0, 2)] * 5], 10),
        ([Request(0, 2, 3), Request(5000, 2, 3), Request(5000, 1, 2)], 5),
        ([Request(3000, 2, 2)] * 3, 4),
        ([Request(0, 0, 4), *[Request(1, 5, 2)] * 3], 12),
    ],
)
def test_edge_cases_have_the_optimum_of_cpsat(requests: list[Request], memory: int) -> None:
    instance = Instance(memory, requests)
    expected = solve(instance, "cpsat", time_limit=120)
    for presolve, quick in product((True, False), repeat=2):
        found = solve(instance, "exact", presolve=presolve, quick_start=quick, time_limit=120)
        assert_sound(found, known(expected.objective))


@pytest.mark.parametrize("engine", ["exact", "auto"])
def test_nothing_to_do(engine: str) -> None:
    assert_sound(solve(Instance(5, []), engine), 0)
    assert_sound(solve(Instance(5, []), engine, quick_start=False), 0)


LARGE = [
    Instance(6, [Request(0, 1, 3), Request(10**9, 1, 3), Request(10**9, 2, 4)]),
    Instance(4_000_000, [Request(0, 3_000_000, 3)] * 3),
    Instance(30_000, [Request(0, 0, 200), *[Request(0, 14_000 + i, 3 + i) for i in range(5)]]),
    Instance(9000, [Request(0, 90 * s, 400 + s) for s in range(1, 30)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("instance", LARGE, ids=["arrivals", "tokens", "memory", "states"])
@pytest.mark.usefixtures("processor_clock")
def test_what_is_too_large_for_configurations_still_has_an_answer(instance: Instance) -> None:
    assert_both_sides(solve(instance, "exact", time_limit=0.7))


@pytest.mark.parametrize("instance", LARGE[:3], ids=["arrivals", "tokens", "memory"])
def test_auto_proves_what_is_too_large_for_configurations_but_small(instance: Instance) -> None:
    assert solve(instance, "auto", time_limit=60).status is Status.OPTIMAL


@pytest.mark.slow
@pytest.mark.parametrize("n", [63, 64])
@pytest.mark.usefixtures("processor_clock")
def test_more_requests_than_bits_are_bounded_only(n: int) -> None:
    source = random.Random(n)
    requests = [Request(source.randint(0, 9), source.randint(0, 2), 2) for _ in range(n)]
    found = solve(Instance(12, requests), "exact", time_limit=0.5)
    assert_both_sides(found)
    assert isinstance(known(found.checked).proof, ConfigurationProof)


# Certificates.


@pytest.mark.slow
def test_bounds_between_the_first_one_and_the_optimum_are_true_and_verified(tmp_path: Path) -> None:
    """Searches for schedules below a target under the best one known exclude what they say."""
    between = met = drawn = claimed = 0
    for number, instance in enumerate(
        random_instances(
            many(50), 23, least_requests=4, most_requests=5, most_memory=14, most_output=7
        )
    ):
        optimum = brute_force.optimum(*plain(instance))
        search = Search(instance, checkable=True)
        offer_list_schedules(search)
        rising = next(states_priced(search, search.budget), None)
        if rising is None:  # the list schedule meets its bound
            continue
        evaluation = rising.evaluation
        drawn += 1
        for target in range(evaluation.bound, optimum + 2):
            if search.budget.over():  # both sides have met
                break
            expected = max(evaluation.bound, min(target, optimum))
            Forward(search, rising).exclude(target, 10_000, look_ahead=False)
            assert search.lower_bound == expected
            trusting = Search(instance)
            offer_list_schedules(trusting)
            Forward(trusting, rising).exclude(target, 10_000, look_ahead=True)
            assert trusting.lower_bound == min(target, optimum)
            claimed += target < optimum
            if number % 4 == 0:
                assert_verified(search, tmp_path / f"{number}-{target}.json")
                between += search.lower_bound < optimum
        met += search.lower_bound == optimum
    assert between > many(3)
    assert claimed > many(10)
    assert met == drawn > many(10)


def assert_verified(search: Search, path: Path) -> None:
    write_certificate(Certificate(search.instance, search.schedule, search.checked), path)
    verdict = verify(path)
    assert verdict.valid, verdict.lines


@pytest.mark.slow
def test_bounds_rise_until_all_is_excluded_or_labels_or_time_run_out() -> None:
    search = Search(generate("arrival-1", 12, seed=1))
    offer_list_schedules(search)
    rising = list(islice(states_priced(search, search.budget), 4))[-1]
    evaluation = rising.evaluation
    forward = Forward(search, rising, Budget(600.0))
    assert not forward.raises(200_000, margin=0.0)
    assert evaluation.bound < known(search.lower_bound) < known(search.schedule).objective
    assert not forward.raises(5)
    assert evaluation.bound <= known(search.lower_bound)
    assert forward.raises(200_000)
    assert search.lower_bound == solve(search.instance, "exact", time_limit=60).objective


def test_more_equals_than_the_label_limit_end_a_beam_search() -> None:
    """Without prices all sets of requests are equally promising."""
    instance = Instance(60, [Request(0, i % 7, 2 + i // 7) for i in range(40)])
    search = Search(instance)
    offer_list_schedules(search)
    assert search.schedule is not None
    rising = DualAscent(instance, 30)
    free = np.zeros((30, len(rising.states.holds)), dtype=np.int64)
    evaluation = evaluate(rising.states, Knots.every(1, 30), rising.starts, free, 1)
    forward = ForwardSearch(
        rising.states, predecessors_of(instance), evaluation, search.schedule.objective
    )
    with pytest.raises(TooWide):
        forward.search_with_beam(10)
    before = search.schedule
    rising.evaluation = evaluation
    Forward(search, rising).search_with_beam(10, 0)
    assert search.schedule is before


def test_steps_to_prices_that_are_not_finite_are_taken_back() -> None:
    instance = generate("two-point", 6, seed=0, memory=12, parameters={"l": 5, "u": 10})
    assert solve(instance, "exact", threads=1).objective == brute_force.optimum(*plain(instance))


@pytest.mark.slow
@pytest.mark.usefixtures("brief", "processor_clock")
def test_an_optimum_that_cannot_be_checked_is_not_lost() -> None:
    """It is claimed at the end, after all that might have given a proof to check."""
    instance = generate("arrival-1", 7, seed=0)
    expected = solve(instance, "exact", time_limit=60).objective
    found = solve(
        instance, "exact", time_limit=60, checkable=True, quick_start=False, params=UNCHECKABLE
    )
    assert found.status is Status.OPTIMAL
    assert found.objective == found.lower_bound == expected
    assert found.bound_source is BoundSource.SOLVER

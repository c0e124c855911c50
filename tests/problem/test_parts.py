"""Idle gaps cut an instance into parts: the same answers at the same cost."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from brute_force import feasible, last_time, makespan, optimum, tel
from certificates import verified
from effort import many
from hypothesis import given
from hypothesis import strategies as st
from known import known
from strategies import instances, plain, random_feasible_starts, random_instances

from kvopt import bound, certify, generate, run, solve
from kvopt.heuristics.list_schedules import one_after_another
from kvopt.incumbent.proofs import SplitProof
from kvopt.problem.instance import Instance
from kvopt.problem.parts import split
from kvopt.problem.requests import Request
from kvopt.simulate.policies.by_name import policies
from kvopt.timetable.schedule import Schedule

pytestmark = pytest.mark.usefixtures("processor_clock", "few_steps")

FAR = 10**12
SMALL = generate("arrival-2", n=6, seed=1)


def with_gaps(parts: list[Instance], gap: int, first: int = 0) -> Instance:
    """Return instances one after another, each so long after all that is left to do."""
    requests: list[Request] = []
    begin = first
    for part in parts:
        moved = part.shifted(begin)
        requests += [replace(r, id=f"r{len(requests) + i}") for i, r in enumerate(moved)]
        begin = moved.last_arrival + moved.total_output + gap
    return Instance(max(part.memory for part in parts), requests)


def alike(parts: list[Instance]) -> list[Instance]:
    """Return parts for the same memory."""
    memory = max(part.memory for part in parts)
    return [Instance(memory, part.requests) for part in parts]


@pytest.mark.slow
@given(st.lists(instances(most_requests=3, last_arrival=3), min_size=1, max_size=3))
def test_the_optimum_is_the_sum_of_the_optima_of_parts(drawn: list[Instance]) -> None:
    whole = with_gaps(alike(drawn), 0)
    assert sum(len(part.members) for part in split(whole)) == len(whole)
    best = optimum(*plain(whole))
    assert best == sum(optimum(*plain(part.instance)) for part in split(whole) if len(whole))


def test_parts_are_as_long_as_they_must_be() -> None:
    """Cut wherever all that is left could be done, and nowhere else."""
    for instance in random_instances(many(150), seed=5, last_arrival=25):
        order = sorted(instance, key=lambda request: request.arrival)
        cuts = [part.begin for part in split(instance)][1:]
        left = 0
        for before, request in pairwise(order):
            left += before.output
            is_cut = request.arrival >= before.arrival + left
            assert is_cut == (request.arrival in cuts and request.arrival > before.arrival)
            left *= not is_cut


def test_schedules_without_late_idling_are_feasible_and_no_worse() -> None:
    source = random.Random(8)
    for instance in random_instances(many(150), seed=9, last_arrival=9):
        part = split(instance)[0]
        starts = random_feasible_starts(part.instance, source)
        late = [k + source.randrange(3) * (k > part.instance.last_arrival) for k in starts]
        memory, triples = plain(part.instance)
        for before in (starts, late):
            after = part.without_late_idling(before)
            assert tel(triples, after) <= tel(triples, before)
            assert makespan(triples, after) <= last_time(triples)
            assert feasible(memory, triples, after) or not feasible(memory, triples, before)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lp", "lagrangian", "slots", "configuration", "auto"])
def test_bounds_do_not_depend_on_gaps(method: str) -> None:
    parts = alike([SMALL, generate("arrival-1", n=5, seed=2)])
    near, far = with_gaps(parts, 0), with_gaps(parts, FAR, FAR)
    values = [bound(instance, method).value for instance in (near, far)]
    assert values[0] == values[1]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "exact", "highs", "cpsat"])
def test_optima_do_not_depend_on_gaps(engine: str) -> None:
    parts = alike([SMALL, generate("arrival-1", n=5, seed=2)])
    near, far = (
        solve(with_gaps(parts, *gaps), engine, time_limit=60) for gaps in ((0, 0), (FAR, FAR))
    )
    assert near.status == far.status == "optimal"
    assert near.objective == far.objective


@pytest.mark.slow
def test_after_a_long_gap_both_sides_are_the_optimum() -> None:
    for instance in random_instances(many(15), seed=4, most_requests=5, last_arrival=40):
        best = optimum(*plain(instance))
        found = solve(instance.shifted(FAR), "cpsat")
        assert (found.objective, found.lower_bound) == (best, best)
        for method in ("volume", "lp", "auto"):
            assert known(bound(instance.shifted(FAR), method, time_limit=5).value) <= best


@pytest.mark.slow
def test_every_policy_skips_gaps() -> None:
    near, far = with_gaps([SMALL, SMALL], 0), with_gaps([SMALL, SMALL], FAR, FAR)
    keys = {
        "alpha-beta": ":alpha=0.3,beta=0.2",
        "alpha-protect": ":alpha=0.4",
        "k-lpm": ":k=2",
        "sorted-lp": ":hindsight=1",
        "svf-1bit": ":threshold=2,short=1,long=3",
        "vllm-fcfs": ":block=1",
        "vllm-priority": ":block=1",
    }
    for name in policies():
        policy = name + keys.get(name, "")
        assert run(near, policy).objective == run(far, policy).objective, name


@pytest.mark.slow
def test_a_loop_before_a_long_gap_ends() -> None:
    loop = [Request(0, 1, 3), Request(0, 1, 3), Request(0, 1, 3)]
    found = run(Instance(9, [*loop, Request(FAR, 1, 1)]), "alpha-protect:alpha=0.1")
    assert found.outcome == "livelock"
    assert "without a completion" in known(found.note)


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "gap"), [(0, 0), (FAR, FAR)])
def test_certificates_of_parts_verify(begin: int, gap: int) -> None:
    large = generate("arrival-1", n=6, seed=1)
    parts = alike([large, SMALL, generate("uniform", n=3, memory=50, seed=3)])
    made = certify(with_gaps(parts, gap, begin), ["mc-sf"], time_limit=60)
    assert isinstance(known(made.lower).proof, SplitProof)
    assert f"lower {made.lower_bound:,}" in verified(made)


@pytest.mark.slow
def test_many_parts_take_a_moment() -> None:
    requests = [Request(FAR + i * 10**7, 3, 1 + i % 5) for i in range(2_000)]
    instance = Instance(10, requests)
    made = certify(instance, ["fcfs"], time_limit=60)
    assert made.objective == made.lower_bound == instance.total_output
    verified(made)


def test_a_given_schedule_that_reaches_into_the_next_part_does_no_harm() -> None:
    """Its first part alone would leave no room for better starts of the second."""
    parts = alike([generate("arrival-1", n=7, seed=3), SMALL])  # the second is solved first
    instance = with_gaps(parts, 100, 0)
    late = instance.last_arrival
    first = [late + start for start in one_after_another(parts[0]).starts]
    end = max(first) + 100
    second = [end + start for start in one_after_another(parts[1]).starts]
    given = Schedule(instance, (*first, *second))
    assert given.check().feasible
    found = solve(instance, start=given, quick_start=False)
    assert found.faults == ()
    assert found.objective == sum(solve(part).objective or 0 for part in parts)
    assert certify(instance, schedule=given).objective == found.objective

"""The order of requests of one shape loses no optimum, whatever their weights and arrivals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from math import inf

import networkx
import pytest
from brute_force import feasible, optimum
from effort import many
from strategies import rows_of

from kvopt import Instance, Request, Schedule, build_model, schedule_from
from kvopt.timetable.standard_form import heavier_but_later, in_standard_form, start_order

SHAPES = [(0, 1), (1, 1), (0, 2), (2, 1), (1, 2), (0, 3)]


def drawn(seed: int, most: int = 4) -> Instance:
    """Return requests of one or two shapes with weights; some share, some are limited."""
    rng = random.Random(seed)
    shapes = [(*rng.choice(SHAPES), rng.choice([(), ("a",), ("a", "b")])) for _ in range(2)]
    is_shared = seed % 3 == 0
    requests = [
        Request(
            rng.choice([0, 0, 1, 3]), prompt + len(path) * is_shared, output,
            weight=rng.randint(1, 3), prefix=path if is_shared else (),
        )
        for prompt, output, path in rng.choices(shapes, k=rng.randint(2, most - (seed % 5 == 0)))
    ]  # fmt: skip
    memory = max(request.peak for request in requests) + rng.randint(0, 3)
    instance = Instance(memory, requests, workers=2 if seed % 5 == 0 else 1, block_tokens=1)
    return replace(instance, max_active=2) if seed % 7 == 0 else instance


def schedules(instance: Instance) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield starts and workers of all feasible schedules, by the oracle's own check."""
    rows, size = rows_of(instance), instance.block_tokens or 1
    end = instance.last_arrival + instance.total_output
    most = instance.max_active or len(rows)
    for starts in product(*(range(a, end - output + 1) for a, _, output, _ in rows)):
        for workers in product(range(instance.workers), repeat=len(rows)):
            for worker in {*workers}:
                here = [i for i in range(len(rows)) if workers[i] == worker]
                lives = [range(starts[i] + 1, starts[i] + rows[i][2] + 1) for i in here]
                own = [rows[i] for i in here]
                if any(sum(t in live for live in lives) > most for t in range(end + 1)):
                    break
                if not feasible(instance.memory, own, [starts[i] for i in here], unit=size):
                    break
            else:
                yield starts, workers


def latency(instance: Instance, starts: tuple[int, ...]) -> int:
    return sum(r.weight * (k + r.output - r.arrival) for r, k in zip(instance, starts, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_solvers_keep_an_optimum(seed: int) -> None:
    instance = drawn(seed)
    best = optimum(
        instance.memory,
        rows_of(instance),
        workers=instance.workers,
        weights=[request.weight for request in instance],
        most_active=instance.max_active or inf,
    )
    for solver in ("cpsat", "highs"):
        built = build_model(instance, solver, order_identical=True)
        assert built.solve() == "optimal"
        assert schedule_from(built).objective == best, solver


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_standard_forms_are_as_good_and_in_order(seed: int) -> None:
    """Of every feasible schedule; so all rows hold in the standard form of an optimum."""
    instance, rng = drawn(seed, 3), random.Random(seed)
    everything = [*schedules(instance)]
    for starts, workers in rng.sample(everything, min(len(everything), many(60))):
        found = in_standard_form(Schedule(instance, starts, workers))
        assert found.check().feasible
        assert found.objective <= latency(instance, starts)
        assert sorted(found.starts) == sorted(starts)
        for i, j in start_order(instance):
            assert found.starts[i] <= found.starts[j]
        for i, j in heavier_but_later(instance):
            later = instance.requests[i].arrival <= found.starts[j]
            assert not later or found.starts[i] <= found.starts[j]


def test_the_order_is_the_transitive_reduction() -> None:
    """Without networkx, whose import takes longer than most of these proofs."""
    for seed in range(many(200)):
        instance, order = drawn(seed, 12), networkx.DiGraph()
        order.add_nodes_from(range(len(instance)))
        paths = instance.forest.paths  # a block of one request is like its private tokens
        for i, j in permutations(range(len(instance)), 2):
            first, second = instance.requests[i], instance.requests[j]
            is_alike = first.shape == second.shape and paths[i] == paths[j]
            one, other = (first.arrival, -first.weight), (second.arrival, -second.weight)
            if is_alike and one[0] <= other[0] and one[1] <= other[1] and (one, i) < (other, j):
                order.add_edge(i, j)
        assert sorted(start_order(instance)) == sorted(networkx.transitive_reduction(order).edges)


def test_a_shorter_request_need_not_start_first() -> None:
    """Why the order ends at requests of one shape: three short ones, and a long one before two."""
    requests = [Request(0, 2, 1), Request(0, 2, 1), Request(3, 2, 1), Request(0, 2, 3)]
    instance = Instance(7, requests)
    totals: dict[bool, int] = {}
    for starts, _ in schedules(instance):
        is_first = max(starts[:2]) <= starts[3]
        totals[is_first] = min(latency(instance, starts), totals.get(is_first, 99))
    assert totals == {False: 7, True: 8}


def test_a_fleet_keeps_its_workers_if_its_schedule_has_segments() -> None:
    """As a server's run without a pause has them."""
    pair = Instance(3, [Request(0, 1, 2), Request(0, 1, 2)], workers=2)
    served = Schedule(pair, workers=[1, 0], segments=[[(1, 2)], [(1, 2)]])
    assert in_standard_form(served).workers == (0, 1)

"""Mean starts: the LP's own solution dealt out, and averaged minimisers that come close."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from effort import examples, many
from hypothesis import given
from known import known
from scipy.optimize import linprog
from scipy.stats import spearmanr
from strategies import instances, random_instances

from kvopt import Instance, Request, Schedule, run
from kvopt.bounds import fluid
from kvopt.bounds.columns import averaged_minimisers, lp_vertex
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.mean_starts import (
    dealt,
    lagrangian_mean_starts,
    lp_mean_starts,
    lp_nonzeros,
    lp_nonzeros_at_least,
)
from kvopt.errors import TooLarge
from kvopt.formulations.arrays import time_indexed_arrays
from kvopt.formulations.windows import windows_until
from kvopt.incumbent.incumbent import Search
from kvopt.problem.families import generate


def listed(instance: Instance) -> tuple[int, ...]:
    schedule = run(instance, "svf").schedule
    return tuple(known(schedule).starts)


def latency(instance: Instance, means: list[float]) -> float:
    return sum(y + r.output - r.arrival for y, r in zip(means, instance, strict=True))


def lp_value(instance: Instance) -> float:
    """Return the value of the LP that ends with the list schedule, from another reader of it."""
    end = Schedule(instance, listed(instance)).makespan
    windows = windows_until(instance, [end] * len(instance))
    model = time_indexed_arrays(instance, windows, order_identical=False)
    matrix = model.matrix.toarray()
    once = len(instance)
    solved = linprog(
        model.cost, matrix[once:], model.row_upper[once:], matrix[:once], model.row_upper[:once]
    )
    return float(solved.fun)


@pytest.mark.slow
def test_lp_means_add_up_to_the_value_of_the_lp() -> None:
    for instance in random_instances(
        many(60), 1, least_requests=1, most_requests=8, most_memory=14
    ):
        means = lp_mean_starts(instance, listed(instance))
        assert latency(instance, means) == pytest.approx(lp_value(instance), abs=1e-5)


@pytest.mark.thorough
def test_a_vertex_of_the_lp_is_found_at_the_size_of_table_4() -> None:
    """155,964 columns; an interior-point method on another form of the LP gave the value."""
    instance = generate("uniform", n=100, memory=100, seed=0)
    starts = listed(instance)
    assert latency(instance, lp_mean_starts(instance, starts)) == pytest.approx(34172.1126)
    end, kinds = Schedule(instance, starts).makespan, list(Kinds.of(instance).rows())
    vertex = lp_vertex(Search(instance), starts, end)
    assert vertex is not None
    assert (vertex.mass > 0).sum() <= len(kinds) + end  # what no vertex has more of, its rows
    assert np.bincount(vertex.places, vertex.mass) == pytest.approx(Kinds.of(instance).counts)
    assert (vertex.starts >= 0).all()


@pytest.mark.slow
@examples(25)
@given(instances())
def test_means_lie_between_arrival_and_the_end_and_equal_requests_are_in_order(
    instance: Instance,
) -> None:
    starts = listed(instance)
    end = max((k + r.output for k, r in zip(starts, instance, strict=True)), default=0)
    for means in (lp_mean_starts(instance, starts), lagrangian_mean_starts(instance, starts)):
        own: dict[tuple[int, int, int], list[float]] = {}
        for mean, request in zip(means, instance, strict=True):
            assert request.arrival - 1e-6 <= mean <= end
            own.setdefault(request.kind, []).append(mean)
        for each in own.values():
            assert all(a <= b + 1e-9 for a, b in pairwise(each))


def test_who_can_start_at_once_does() -> None:
    instance = Instance(100, [Request(at, 3, 4) for at in (2, 0, 7)])
    assert lp_mean_starts(instance, listed(instance)) == [2, 0, 7]
    assert lagrangian_mean_starts(instance, listed(instance)) == [2, 0, 7]
    assert lp_mean_starts(Instance(1, []), ()) == lagrangian_mean_starts(Instance(1, []), ()) == []


def test_mass_is_dealt_out_earliest_first() -> None:
    starts, mass = np.array([5, 0, 2]), np.array([1.0, 0.5, 0.5])
    assert dealt(starts, mass, 1).tolist() == [3.0]
    assert dealt(starts, mass, 2).tolist() == [1.0, 5.0]
    assert dealt(starts, 2 * mass, 4).tolist() == [0.0, 2.0, 5.0, 5.0]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "n", "memory"), [("uniform", 25, 100), ("mixed", 60, 100)])
def test_minimisers_come_close_to_the_lp(family: str, n: int, memory: int) -> None:
    for seed in range(2):
        instance = generate(family, n=n, memory=memory, seed=seed)
        lp = lp_mean_starts(instance, listed(instance))
        means = lagrangian_mean_starts(instance, listed(instance))
        assert latency(instance, means) == pytest.approx(latency(instance, lp), rel=0.05)
        assert spearmanr(lp, means).statistic > 0.95


def test_minimisers_nearly_keep_the_memory() -> None:
    instance = generate("uniform", n=60, memory=100, seed=1)
    averaged = averaged_minimisers(instance)
    held = np.zeros(2000)
    for starts, weight in zip(averaged.starts, averaged.weights, strict=True):
        held += weight * averaged.kinds.loads(starts, len(held))
    assert np.maximum(held - 100, 0).sum() < 0.1 * held.sum()
    assert averaged.weights.sum() == pytest.approx(1)


def test_kinds_share_columns() -> None:
    instance = Instance(30, [Request(0, 9, 5)] * 40 + [Request(0, 2, 7)] * 10)
    starts = listed(instance)
    end = max(k + r.output for k, r in zip(starts, instance, strict=True))
    assert lp_nonzeros(instance, starts) == (end - 4) * 6 + (end - 6) * 8
    means = lp_mean_starts(instance, starts)
    assert latency(instance, means) == pytest.approx(lp_value(instance), abs=1e-3)


def test_horizons_beyond_memory_are_refused() -> None:
    long = Instance(10**9, [Request(0, 0, 10**9)] * 2)
    with pytest.raises(TooLarge, match="rounds"):
        lagrangian_mean_starts(long, (0, 10**9))


# ---- shortcuts give the same, to the last bit -----------------------------------------


def test_prices_of_a_backlog_are_those_of_its_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [*random_instances(60, 2, most_requests=12), generate("conversation", n=300, seed=1)]
    for instance in drawn:
        backlog = Instance(instance.memory, [Request(0, *r.shape) for r in instance])
        quick, end = fluid.fluid_prices(backlog), fluid.fluid_end(backlog)
        with monkeypatch.context() as patch:
            patch.setattr(fluid, "_LARGEST", -1)
            assert fluid.fluid_prices(backlog).tobytes() == quick.tobytes()
        ends = fluid._stretches(backlog, backlog.memory).ends
        assert end == max((-(-end // backlog.memory) for end in ends), default=0)


def test_no_schedule_has_a_smaller_lp() -> None:
    for instance in random_instances(80, 3, most_requests=12, last_arrival=1):
        assert lp_nonzeros_at_least(instance) <= lp_nonzeros(instance, listed(instance))


@pytest.mark.slow
def test_without_a_schedule_the_mean_starts_are_the_same() -> None:
    for instance in random_instances(many(60), 4, most_requests=12, last_arrival=0):
        if any(listed(instance)):
            expected = lagrangian_mean_starts(instance, listed(instance))
            assert lagrangian_mean_starts(instance) == expected

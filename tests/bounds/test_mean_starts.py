"""Mean starts: the LP's own solution dealt out, and averaged minimisers that come close."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from price_oracle import relaxed_optimum
from scipy.stats import spearmanr
from strategies import instances, plain, random_instances

from kvopt import Instance, Request
from kvopt.bounds import fluid
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lp import averaged_minimisers, lp_vertices
from kvopt.bounds.mean_starts import dealt, lagrangian_mean_starts, lp_mean_starts, lp_nonzeros
from kvopt.errors import TooLarge
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget
from kvopt.problem.families import generate


def latency(instance: Instance, means: list[float]) -> float:
    return sum(y + r.output - r.arrival for y, r in zip(means, instance, strict=True))


@pytest.mark.thorough
def test_a_vertex_of_the_lp_is_found_at_the_size_of_table_4() -> None:
    """155,964 columns; an interior-point method on another form of the LP gave the value."""
    instance = generate("uniform", n=100, memory=100, seed=0)
    assert latency(instance, lp_mean_starts(instance)) == pytest.approx(34172.1126)
    *_, vertex = lp_vertices(instance, Budget(), Limits())
    rows = len(Kinds.of(instance)) + len(vertex.prices)
    assert (vertex.mass > 0).sum() <= rows  # what no vertex has more of
    assert np.bincount(vertex.places, vertex.mass) == pytest.approx(Kinds.of(instance).counts)
    assert (vertex.starts >= 0).all()


@pytest.mark.slow
@examples(25)
@given(instances())
def test_means_lie_between_arrival_and_the_end_and_equal_requests_are_in_order(
    instance: Instance,
) -> None:
    end = instance.last_arrival + instance.total_output
    for means in (lp_mean_starts(instance), lagrangian_mean_starts(instance)):
        own: dict[tuple[int, int, int], list[float]] = {}
        for mean, request in zip(means, instance, strict=True):
            assert request.arrival - 1e-6 <= mean <= end
            own.setdefault(request.kind, []).append(mean)
        for each in own.values():
            assert all(a <= b + 1e-9 for a, b in pairwise(each))


def test_who_can_start_at_once_does() -> None:
    instance = Instance(100, [Request(at, 3, 4) for at in (2, 0, 7)])
    assert lp_mean_starts(instance) == lagrangian_mean_starts(instance) == [2, 0, 7]
    assert lp_mean_starts(Instance(1, [])) == lagrangian_mean_starts(Instance(1, [])) == []


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
        lp = lp_mean_starts(instance)
        means = lagrangian_mean_starts(instance)
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
    """Each kind has a column for each start, a row for itself and rows of memory up to the end."""
    instance = Instance(30, [Request(0, 9, 5)] * 40 + [Request(0, 2, 7)] * 10)
    end = fluid.fluid_end(instance)
    rows = sum(1 + min(output, end - start) for output in (5, 7) for start in range(end + 1))
    assert lp_nonzeros(instance) == rows
    means = lp_mean_starts(instance)
    assert latency(instance, means) == pytest.approx(relaxed_optimum(*plain(instance)), abs=1e-3)


def test_horizons_beyond_memory_are_refused() -> None:
    long = Instance(10**9, [Request(0, 0, 10**9)] * 2)
    with pytest.raises(TooLarge, match="rounds"):
        lagrangian_mean_starts(long)


# ---- shortcuts give the same ----------------------------------------------------------


def test_a_backlog_ends_with_its_last_interval() -> None:
    for instance in random_instances(60, 2, most_requests=12):
        backlog = Instance(instance.memory, [Request(0, *r.shape) for r in instance])
        end = fluid.fluid_end(backlog)
        volumes = np.array([request.volume for request in backlog], dtype=object)
        ends = fluid.one_at_a_time(0 * volumes, volumes, volumes).ends
        assert end == max((-(-end // backlog.memory) for end in ends), default=0)

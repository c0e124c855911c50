"""Local search: placing, seeds, limits, and optima of small instances."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from math import inf

import brute_force
import numpy as np
import pytest
from effort import many
from known import known
from strategies import drawn_with_prefixes, plain, rows_of

from kvopt import Instance, Request, Schedule, StopReason, generate, solve
from kvopt.heuristics import improve
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.heuristics.reinsertion import (
    fill,
    hold,
    nowhere,
    reinsert,
    search_reinsertions,
    without_loads,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget, wall_time

pytestmark = pytest.mark.usefixtures("processor_clock")


def drawn(rng: random.Random) -> Instance:
    memory = rng.randint(2, 20)
    requests = [Request(0, 0, 1)]
    for _ in range(rng.randint(1, 14)):
        prompt = rng.randint(0, memory - 1)
        output = rng.randint(1, memory - prompt)
        requests.append(Request(rng.choice([0, rng.randint(0, 12)]), prompt, output))
    return Instance(memory, requests)


def test_requests_start_where_they_first_fit() -> None:
    """Each starts at the first round at which all placed so far are feasible by definition."""
    rng, later = random.Random(2), 0
    for seed in range(many(200)):
        shares = drawn_with_prefixes(seed, 6, is_common=seed % 4 == 0)
        instance = shares if seed % 2 else drawn(rng)
        rows, order = rows_of(instance), rng.sample(range(len(instance)), len(instance))
        starts, placed, first = dict[int, int](), list[brute_force.Row](), instance.first_arrival
        for i in order:
            placed.append(rows[i])
            starts[i] = rows[i][0]
            while not brute_force.feasible(
                instance.memory, placed, list(starts.values()), unit=instance.block_tokens or 1
            ):
                starts[i] += 1
        placement = nowhere(instance, 1000)
        assert fill(placement, np.array(order), np.array([1])) == len(instance)
        found = [start + first for start in placement.starts.tolist()]
        assert found == [starts[i] for i in range(len(rows))], seed
        later += sum(starts[i] > row[0] for i, row in enumerate(rows))
    assert later


def test_steps_keep_loads_and_what_undoes_them() -> None:
    """After many steps loads are those of the starts, within memory, and so is the copy."""
    rng = random.Random(7)
    for seed in range(40):
        instance = drawn(rng) if seed % 2 else workers_that_share(seed)
        placement, line = nowhere(instance, 1000), np.arange(len(instance))
        fill(placement, line, np.array([1]))
        kept = without_loads(placement)
        reinsert(placement, kept, line, line[:0], np.array([seed]), (5.0, 0.5), 300)
        again = nowhere(instance, 1000)
        again.starts[:], again.workers[:] = kept.starts, kept.workers
        for i in range(len(instance)):
            hold(again, i, 1)
        assert np.array_equal(again.loads, placement.loads)
        assert np.array_equal(again.users, placement.users)
        assert np.array_equal(kept.starts, placement.starts)
        starts = placement.starts + min(request.arrival for request in instance)
        assert Schedule(instance, starts.tolist(), placement.workers.tolist()).check().feasible


def workers_that_share(seed: int) -> Instance:
    """Return an instance of one worker or two, with prefixes."""
    return replace(drawn_with_prefixes(seed, 9), workers=1 + seed % 4 // 2)


@pytest.mark.slow
def test_most_small_optima_are_found() -> None:
    rng, found = random.Random(3), 0
    for _ in range(20):
        instance = Instance(8, [
            Request(rng.randint(0, 4), rng.randint(0, 3), rng.randint(1, 5)) for _ in range(5)
        ])  # fmt: skip
        search = started(instance)
        search_reinsertions(search, Budget(5.0), most_passes=50)
        found += search.progress.objective == brute_force.optimum(*plain(instance))
    assert found >= 18


def started(instance: Instance, time_limit: float = math.inf) -> Search:
    search = Search(instance, Limits(time_limit=time_limit))
    offer_list_schedules(search)
    return search


@pytest.mark.slow
def test_the_same_seed_gives_the_same_schedule() -> None:
    instance = generate("arrival-2", 30, seed=5)
    found = []
    for _ in range(2):
        search = started(instance)
        search_reinsertions(search, Budget(60.0), most_passes=50)
        found.append(known(search.schedule).starts)
    assert found[0] == found[1]


@pytest.mark.slow
def test_local_search_improves_on_the_policies() -> None:
    instance = generate("arrival-1", 40, seed=1)
    search = started(instance)
    before = known(search.schedule).objective
    search_reinsertions(search, Budget(60.0), most_passes=100)
    assert known(search.schedule).objective < before
    assert search.faults == []


@pytest.mark.slow
def test_a_limit_is_kept() -> None:
    # The second is kept within some tenths where nobody else needs the cores.
    began = wall_time()
    search = started(generate("conversation", 1000, 16492, seed=1), time_limit=0.5)
    improve(search, search.budget)
    assert wall_time() - began < 10.0
    assert search.result("auto").stop_reason is StopReason.TIME_LIMIT


def test_too_long_horizons_are_left_alone() -> None:
    search = started(Instance(10**9, [Request(0, 0, 10**8)] * 3))
    search_reinsertions(search, Budget(1.0))
    assert any("local search" in note for note in search.notes)


@pytest.mark.slow
def test_auto_improves_long_traces() -> None:
    instance = generate("conversation", 300, 3000, seed=1)
    plain_start = known(started(instance).progress.objective)
    result = solve(instance, time_limit=60, stop=lambda now: (now.objective or inf) < plain_start)
    assert known(result.objective) < plain_start
    assert result.found_by in ("local search", "beams over the whole trace")

"""Windows of time: what is found in one is a change of the whole, feasible and never worse."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from threading import Barrier

import numpy as np
import pytest
from effort import many
from oracle import optimum
from strategies import plain

from kvopt import Instance, Request, Schedule, generate
from kvopt.bounds.fluid import fluid_prices
from kvopt.heuristics.beams import BeamPlan, Trace
from kvopt.heuristics.list_schedules import offer_list_schedules, one_after_another
from kvopt.heuristics.reduced_costs import worth_of
from kvopt.heuristics.scenes import crowd_of
from kvopt.heuristics.turns import Turn, Way
from kvopt.heuristics.windows.bursts import rerun, rerun_bursts
from kvopt.heuristics.windows.orders import (
    anneal_windows,
    annealed,
    held_by,
    move_earlier,
)
from kvopt.heuristics.windows.standing import (
    Change,
    Standing,
    is_one_burst,
    requests_of,
    run_pass,
    standing_of,
    windows_of,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.problem.arrays import Integers

WAYS: list[Way] = [rerun_bursts, anneal_windows]


def begun(instance: Instance, poor: bool = False) -> Search:
    """Return a search with a schedule, where asked for the poor one of a request at a time."""
    search = Search(instance, Limits(threads=2))
    if poor:
        search.offer(one_after_another(instance), "one after another")
    else:
        offer_list_schedules(search)
    return search


def go_on(search: Search, way: Way, seed: int = 0) -> None:
    """Make three passes."""
    turn = Turn(search)
    turn.go_through(way(turn, seed), most=3)


def starts_of(search: Search) -> Integers:
    assert search.schedule is not None
    return np.array(search.schedule.starts, dtype=np.int64)


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        ([0] * 10, True),
        ([0] * 8 + [50] * 2, False),  # seven of ten wait in the larger burst
        ([0] * 9 + [50], True),  # the first one starts at once
        ([9 * i for i in range(10)], False),  # none waits
        ([3 * i for i in range(10)], True),  # each waits for those before it
    ],
)
def test_most_requests_in_one_burst(arrivals: list[int], expected: bool) -> None:
    search = begun(Instance(8, [Request(a, 2, 5) for a in arrivals]))
    assert is_one_burst(search) == expected
    assert not is_one_burst(Search(search.instance))


def drawn(rng: random.Random, most: int = 30, last: int = 40) -> Instance:
    memory = rng.randint(4, 20)
    requests = []
    for _ in range(rng.randint(2, most)):
        prompt = rng.randint(0, memory - 1)
        output = rng.randint(1, min(6, memory - prompt))
        requests.append(Request(rng.randint(0, last), prompt, output))
    return Instance(memory, requests)


def bursts(n: int = 120) -> Instance:
    """Return requests that arrive in bursts, between which all of them complete."""
    chat = generate("conversation", n=n, memory=1_000, seed=2)
    return replace(
        chat,
        requests=tuple(
            replace(r, arrival=20_000 * (k // 40), output=1 + r.output // 8)
            for k, r in enumerate(chat)
        ),
    )


def changed(instance: Instance, standing: Standing, change: Change) -> Schedule:
    starts = standing.starts.copy()
    starts[change.members] = change.starts
    return Schedule(instance, starts.tolist())


def check_change(search: Search, standing: Standing, change: Change) -> None:
    """Check that it is feasible, better, and moves nothing outside of its times."""
    schedule = changed(search.instance, standing, change)
    assert schedule.check().feasible
    assert schedule.objective < Schedule(search.instance, standing.starts.tolist()).objective
    outputs = requests_of(search).outputs[change.members]
    moved = standing.starts[change.members] != change.starts
    for starts in (standing.starts[change.members], change.starts):
        assert (starts[moved] >= change.begin).all()
        assert (starts[moved] + outputs[moved] <= change.end).all()


@pytest.mark.parametrize("poor", [False, True])
def test_what_a_beam_finds_is_a_change_for_the_better(poor: bool) -> None:
    found = 0
    for seed in range(many(20)):
        instance = drawn(random.Random(seed))
        search = begun(instance, poor)
        requests = requests_of(search)
        standing = standing_of(requests, starts_of(search))
        crowd, keys = crowd_of(instance)
        trace = Trace(crowd, worth_of(instance, fluid_prices(instance)), keys)
        windows = windows_of(requests, standing, 4, 4, np.random.default_rng(seed))
        for window in windows:
            plan = BeamPlan(draws=3, stretch=2, ahead=4, seed=seed, weight=1.0)
            change = rerun(trace, window, plan, 4, lambda: False, standing)
            if change is not None:
                found += 1
                check_change(search, standing, change)
    assert found >= many(20) // 6


@pytest.mark.parametrize("poor", [False, True])
def test_what_annealing_finds_is_a_change_for_the_better(poor: bool) -> None:
    found = 0
    for seed in range(many(60)):
        search = begun(drawn(random.Random(seed)), poor)
        requests = requests_of(search)
        standing = standing_of(requests, starts_of(search))
        held = held_by(requests, standing)
        for window in windows_of(requests, standing, 4, 4, np.random.default_rng(seed)):
            change = annealed(search, requests, held, window, 50, seed, lambda: False, standing)
            if change is not None:
                found += 1
                check_change(search, standing, change)
    assert found >= many(60) // 6


def test_windows_begin_and_end_with_starts_and_do_not_meet() -> None:
    for seed in range(50):
        search = begun(drawn(random.Random(seed)))
        requests, rng = requests_of(search), np.random.default_rng(seed)
        standing = standing_of(requests, starts_of(search))
        windows = windows_of(requests, standing, 3, 2, rng)
        assert all(one.stop <= other.begin for one, other in pairwise(windows))
        for begin, stop, size, waiting in windows:
            inside = (standing.starts >= begin) & (standing.starts < stop)
            assert inside.sum() == size
            late = standing.starts - requests.arrivals
            assert late[inside].sum() == waiting > 0


def test_moving_earlier_is_feasible_and_never_later() -> None:
    gained = 0
    for seed in range(50):
        search = begun(drawn(random.Random(seed)), poor=True)
        requests = requests_of(search)
        standing = standing_of(requests, starts_of(search))
        starts, held = standing.starts.copy(), held_by(requests, standing)
        move_earlier(search.instance.memory, requests, starts, standing.order, held)
        assert (starts <= standing.starts).all()
        assert Schedule(search.instance, starts.tolist()).check().feasible
        gained += int((standing.starts - starts).sum())
    assert gained > 0


@pytest.mark.parametrize("way", WAYS)
def test_tiny_optima_are_found_and_never_passed(way: Way) -> None:
    rng, found = random.Random(5), 0
    for seed in range(many(25)):
        instance = Instance(8, [
            Request(rng.randint(0, 6), rng.randint(0, 3), rng.randint(1, 5)) for _ in range(5)
        ])  # fmt: skip
        search = begun(instance, poor=True)
        go_on(search, way, seed)
        assert search.faults == []
        assert search.objective is not None
        least = optimum(*plain(instance))[0]
        assert search.objective >= least
        found += search.objective == least
    assert found >= many(25) * 3 // 4


@pytest.mark.slow
def test_bursts_get_better_one_by_one() -> None:
    instance = bursts()
    search = begun(instance)
    values = [search.objective or 0]
    go_on(search, rerun_bursts)
    values.append(search.objective or 0)
    go_on(search, anneal_windows)
    values.append(search.objective or 0)
    assert search.faults == []
    assert values == sorted(values, reverse=True)
    assert values[0] != values[1]


@pytest.mark.parametrize("way", WAYS)
def test_a_fleet_has_no_windows(way: Way) -> None:
    search = begun(replace(bursts(40), workers=2))
    assert list(way(Turn(search), 0)) == []


def test_a_change_that_met_another_is_not_made() -> None:
    """Two requests fit beside one another, but not three."""
    search = begun(Instance(4, [Request(0, 0, 2)] * 3), poor=True)
    requests, both = requests_of(search), Barrier(2)

    def moved(i: int, _: Standing) -> Change:
        both.wait()
        return Change(np.array([i]), np.array([0]), 0, 6)

    with ThreadPoolExecutor(2) as pool:
        jobs = [partial(moved, 1), partial(moved, 2)]
        found = run_pass(search, pool, requests, jobs, "a test")
    assert found.starts.tolist() in ([0, 0, 4], [0, 2, 0])
    assert search.faults == []


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_ends_it(way: Way) -> None:
    search = begun(bursts())
    before = search.objective
    search.interrupt()
    go_on(search, way)
    assert search.objective == before

"""Passing over and rollouts: two ways to write one scheduler, an identity, limits, seeds."""

from __future__ import annotations

import time
from math import inf

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import instances, slot_prices

from kvopt import Instance, Request, Schedule, bound, generate, run
from kvopt.bounds.prices import price_value
from kvopt.bounds.slots import slot_value
from kvopt.heuristics import improve
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.heuristics.passing import Habit, advance, cost_of_waiting
from kvopt.heuristics.reduced_costs import Worth, worth_of
from kvopt.heuristics.rollouts import Plan, crowd_of, rolled, search_rollouts
from kvopt.heuristics.scenes import (
    FIRST,
    first_scene,
    is_over,
    nothing_made,
    skip_idle_rounds,
)
from kvopt.kernels.arrays import Integers
from kvopt.search.incumbent import Search
from kvopt.search.proofs import Prices, SlotPrices

NUMERATORS = st.lists(st.integers(0, 9), min_size=1, max_size=30)
FILLS = st.sampled_from((-1.0, 0.0, 0.75))
ALLOWED = st.sampled_from((0.0, 1.5, inf))
LONG = 10**6
CHAT = generate("conversation", n=300, memory=3_000, seed=1)


def passed_over(
    instance: Instance, prices: Prices | SlotPrices, habit: Habit, rounds: int = 7
) -> tuple[Integers, float]:
    """Run to the end in pieces of so many rounds; return starts and cost above the bound."""
    crowd, _ = crowd_of(instance)
    worth = worth_of(instance, prices)
    scene, made = first_scene(len(instance)), nothing_made(len(instance))
    cost = 0.0
    while not is_over(crowd, scene):
        until = scene.counts[-1] + rounds
        cost += advance(crowd, scene, worth, habit, until, made)
    until = max(scene.counts[-1], len(worth.paid)) + sum(r.output for r in instance)
    return made.starts, cost + advance(crowd, scene, worth, habit, until, made)


@pytest.mark.slow
@given(instances(most_requests=9), st.integers(1, 5), st.integers(0, 4))
def test_compiled_scheduler_is_the_policy(instance: Instance, window: int, patience: int) -> None:
    assume(len(instance) > 0)
    habit = Habit(window, patience, FIRST)
    starts, _ = passed_over(instance, Prices((), 1), habit, rounds=LONG)
    policy = run(instance, f"patient:window={window},patience={patience}")
    assert starts.tolist() == list(policy.starts)


@pytest.mark.slow
@given(instances(most_requests=9), NUMERATORS, FILLS, ALLOWED)
def test_cost_is_latency_less_the_bound_of_the_prices(
    instance: Instance, numerators: list[int], fill: float, allowed: float
) -> None:
    assume(len(instance) > 0)
    prices = Prices(tuple(numerators), 7)
    starts, cost = passed_over(instance, prices, Habit(4, 2, FIRST, fill, allowed))
    schedule = Schedule(instance, starts.tolist())
    assert schedule.check().feasible
    value = price_value(instance, prices) / prices.denominator
    assert cost == pytest.approx(schedule.objective - value, abs=1e-6)


@pytest.mark.slow
@given(instances(most_requests=9), slot_prices(), FILLS, ALLOWED)
def test_cost_counts_prices_of_slots_too(
    instance: Instance, prices: SlotPrices, fill: float, allowed: float
) -> None:
    assume(len(instance) > 0)
    starts, cost = passed_over(instance, prices, Habit(4, 2, FIRST, fill, allowed))
    value = slot_value(instance, prices) / prices.prices.denominator
    assert cost == pytest.approx(Schedule(instance, starts.tolist()).objective - value, abs=1e-6)


def gaining(
    instance: Instance, prices: Prices, window: int, fill: float, allowed: float
) -> list[int]:
    """Start again and again the one of the first in line that gains most, by the definition.

    One whose cheapest start is still to come may cost as much more as is allowed.
    """
    crowd, _ = crowd_of(instance)
    mean = sum(r.output for r in instance) // len(instance)

    def price(t: int) -> float:
        return prices.numerators[t - 1] / 8 if t <= len(prices.numerators) else 0.0

    def cost(r: Request, k: int) -> float:
        return k + sum(price(k + j) * (r.prompt + j) for j in range(1, r.output + 1))

    def fits(i: int, k: int) -> bool:
        known = {**starts, i: k}
        part = Instance(instance.memory, [instance.requests[x] for x in known])
        return Schedule(part, list(known.values())).check().peak_memory <= instance.memory

    def is_kept_back(r: Request, k: int) -> bool:
        costs = [cost(r, s) for s in range(r.arrival, r.arrival + len(prices.numerators) + 1)]
        return k < r.arrival + costs.index(min(costs)) and cost(r, k) - min(costs) > allowed

    starts: dict[int, int] = {}
    now = min(r.arrival for r in instance)
    while len(starts) < len(instance):
        line = [i for i in crowd.line.tolist() if instance.requests[i].arrival <= now]
        while True:
            gains = {}
            for i in [x for x in line if x not in starts][:window]:
                r, filled = instance.requests[i], sum(map(price, range(now + 1, now + mean + 1)))
                if fits(i, now) and not is_kept_back(r, now):
                    gains[i] = fill * filled * r.prompt + cost(r, now + mean) - cost(r, now)
            if not gains:
                break
            starts[max(gains, key=lambda i: gains[i])] = now
        events = [starts[i] + instance.requests[i].output for i in starts]
        events += [r.arrival for r in instance]
        now = min([t for t in events if t > now], default=LONG)
    return [starts[i] for i in range(len(instance))]


@pytest.mark.slow
@given(
    instances(most_requests=7), NUMERATORS, st.integers(1, 5), st.sampled_from((0.0, 0.5, 2.0)),
    ALLOWED,
)  # fmt: skip
def test_what_gains_most_is_started(
    instance: Instance, numerators: list[int], window: int, fill: float, allowed: float
) -> None:
    assume(len(instance) > 0)
    prices, habit = Prices(tuple(numerators), 8), Habit(window, LONG, FIRST, fill, allowed)
    starts, _ = passed_over(instance, prices, habit, rounds=LONG)
    assert starts.tolist() == gaining(instance, prices, window, fill, allowed)


@pytest.mark.parametrize("fill", [-1.0, 1.0])
def test_one_that_is_kept_back_holds_nobody_up(fill: float) -> None:
    """The first in line costs 12 at once and 3 three rounds later; the other one comes and goes."""
    instance = Instance(10, [Request(0, 3, 3), Request(0, 7, 2)])
    prices = Prices((0, 0, 2), 1)
    starts, _ = passed_over(instance, prices, Habit(9, 0, FIRST, fill, allowed=1.0), rounds=1)
    assert starts.tolist() == [3, 0]
    starts, _ = passed_over(instance, prices, Habit(9, 0, FIRST, fill), rounds=1)
    assert starts[0] == 0


@pytest.mark.slow
@given(instances(most_requests=9), st.integers(1, 5))
def test_without_patience_the_first_in_line_is_next_in_any_case(
    instance: Instance, window: int
) -> None:
    assume(len(instance) > 0)
    prices = Prices((8, 4, 2, 1), 8)
    starts, _ = passed_over(instance, prices, Habit(window, 0, FIRST, 1.0))
    assert starts.tolist() == passed_over(instance, prices, Habit(1, 0, FIRST))[0].tolist()


def test_who_waits_has_lost_what_its_reduced_cost_is_by_now() -> None:
    instance = Instance(10, [Request(0, 9, 1), Request(0, 0, 1)])
    crowd, _ = crowd_of(instance)
    worth = worth_of(instance, Prices((), 1))
    scene, made = first_scene(2), nothing_made(2)
    advance(crowd, scene, worth, Habit(1, 0, FIRST), 1, made)
    assert made.starts.tolist() == [0, 0]
    assert cost_of_waiting(crowd, scene, worth) == 1.0  # the large one: a start at 0 was cheapest


def test_idle_rounds_are_skipped() -> None:
    crowd, _ = crowd_of(Instance(4, [Request(1_000_000, 1, 2)]))
    scene = first_scene(1)
    skip_idle_rounds(crowd, scene)
    assert scene.counts[-1] == 1_000_000


def begun(instance: Instance, time_limit: float | None = None, below: float = 0) -> Search:
    """Return a search with list schedules that ends below a latency."""
    search = Search(
        instance, time_limit=time_limit, stop=lambda now: (now.objective or inf) < below
    )
    offer_list_schedules(search)
    return search


@pytest.mark.slow
def test_rollouts_beat_lists_where_many_wait() -> None:
    lists = begun(CHAT).schedule
    assert lists is not None
    search = begun(CHAT, below=0.98 * lists.objective)
    search_rollouts(search, 60.0)
    assert search.found_by == "rollouts"
    assert search.schedule is not None
    assert search.schedule.objective < 0.98 * lists.objective
    proof = bound(CHAT, "lagrangian", time_limit=1)
    assert proof.value is not None
    assert proof.value <= search.schedule.objective


@pytest.mark.parametrize("arrivals", [False, True])
def test_one_seed_makes_one_roll(arrivals: bool) -> None:
    requests = [
        Request(i if arrivals else 0, r.prompt, r.output) for i, r in enumerate(CHAT.requests)
    ]
    instance = Instance(CHAT.memory, requests)
    crowd, keys = crowd_of(instance)
    worth: Worth = worth_of(instance, None)
    one, same, other = (
        rolled(crowd, worth, keys, Plan(40, 60, 4, seed), lambda: False).starts.tolist()
        for seed in (1, 1, 2)
    )
    assert one == same != other
    assert Schedule(instance, one).check().feasible


@pytest.mark.slow
def test_a_roll_that_has_to_stop_ends_with_a_whole_schedule() -> None:
    crowd, keys = crowd_of(CHAT)
    made = rolled(crowd, worth_of(CHAT, None), keys, Plan(40, 60, 4, 1), lambda: True)
    assert Schedule(CHAT, made.starts.tolist()).check().feasible


def test_limit_and_interrupt_end_rollouts() -> None:
    search = begun(CHAT, time_limit=0)
    search_rollouts(search, 10.0)
    assert search.found_by != "rollouts"
    search = begun(CHAT)
    search.interrupt()
    began = time.monotonic()
    search_rollouts(search, 1000.0)
    assert time.monotonic() - began < 500


@pytest.mark.slow
def test_improve_takes_what_finds_more() -> None:
    policies = min(run(CHAT, p).objective or 0 for p in ("svf", "patient"))
    search = begun(CHAT, below=policies)
    improve(search, 60.0)
    assert search.schedule is not None
    assert search.schedule.check().feasible
    assert search.schedule.objective < policies

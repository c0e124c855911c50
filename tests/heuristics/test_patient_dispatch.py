"""Passing over: two ways to write one scheduler, an identity, what is started and kept back."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import instances

from kvopt import Instance, Request, Schedule, run
from kvopt.bounds.prices import price_value
from kvopt.heuristics.nodes import COME, FIRST_FIT, FRONT, NOW, STOP, job_arrays
from kvopt.heuristics.patient_dispatch import (
    DispatchTrace,
    Rule,
    advance,
    cost_of_waiting,
    workspace_for,
)
from kvopt.heuristics.reduced_costs import start_prices
from kvopt.incumbent.proofs import PriceProof, token_prices
from kvopt.problem.arrays import Integers

pytestmark = pytest.mark.interpreted

NUMERATORS = st.lists(st.integers(0, 9), min_size=1, max_size=30)
FILLS = st.sampled_from((-1.0, 0.0, 0.75))
ALLOWED = st.sampled_from((0.0, 1.5, inf))
LONG = 10**6


def passed_over(
    instance: Instance, prices: PriceProof, rule: Rule, rounds: int = 7
) -> tuple[Integers, float]:
    """Run to the end in pieces of so many rounds; return starts and cost above the bound."""
    requests, keys = job_arrays(instance)
    worth = start_prices(instance, np.array(prices.numerators, dtype=float) / prices.denominator)
    trace, room = DispatchTrace(requests, worth, keys), workspace_for(requests)
    counts, cost = room.copy.counts, 0.0
    while counts[FRONT] < counts[STOP] or counts[COME] < len(instance):
        cost += advance(trace, room.copy, rule, counts[NOW] + rounds, room)
    until = max(counts[NOW], len(worth.paid)) + sum(r.output for r in instance)
    return room.decisions.starts, cost + advance(trace, room.copy, rule, until, room)


@pytest.mark.slow
@given(instances(most_requests=9), st.integers(1, 5), st.integers(0, 4))
def test_compiled_scheduler_is_the_policy(instance: Instance, window: int, patience: int) -> None:
    assume(len(instance) > 0)
    rule = Rule(window, patience, FIRST_FIT)
    starts, _ = passed_over(instance, token_prices((), 1), rule, rounds=LONG)
    policy = run(instance, f"patient:window={window},patience={patience}")
    assert starts.tolist() == list(policy.starts)


@pytest.mark.slow
@given(instances(most_requests=9), NUMERATORS, FILLS, ALLOWED)
def test_cost_is_latency_less_the_bound_of_the_prices(
    instance: Instance, numerators: list[int], fill: float, allowed: float
) -> None:
    assume(len(instance) > 0)
    prices = token_prices(tuple(numerators), 7)
    starts, cost = passed_over(instance, prices, Rule(4, 2, FIRST_FIT, fill, allowed))
    schedule = Schedule(instance, starts.tolist())
    assert schedule.check().feasible
    value = price_value(instance, prices) / prices.denominator
    assert cost == pytest.approx(schedule.objective - value, abs=1e-6)


def gaining(
    instance: Instance, prices: PriceProof, window: int, fill: float, allowed: float
) -> list[int]:
    """Start again and again the one of the first in line that gains most, by the definition.

    One whose cheapest start is still to come may cost as much more as is allowed.
    """
    requests, _ = job_arrays(instance)
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
        line = [i for i in requests.line.tolist() if instance.requests[i].arrival <= now]
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
    prices, rule = token_prices(tuple(numerators), 8), Rule(window, LONG, FIRST_FIT, fill, allowed)
    starts, _ = passed_over(instance, prices, rule, rounds=LONG)
    assert starts.tolist() == gaining(instance, prices, window, fill, allowed)


@pytest.mark.parametrize("fill", [-1.0, 1.0])
def test_one_that_is_kept_back_holds_nobody_up(fill: float) -> None:
    """The first in line costs 12 at once and 3 three rounds later; the other one comes and goes."""
    instance = Instance(10, [Request(0, 3, 3), Request(0, 7, 2)])
    prices = token_prices((0, 0, 2), 1)
    starts, _ = passed_over(instance, prices, Rule(9, 0, FIRST_FIT, fill, allowed=1.0), rounds=1)
    assert starts.tolist() == [3, 0]
    starts, _ = passed_over(instance, prices, Rule(9, 0, FIRST_FIT, fill), rounds=1)
    assert starts[0] == 0


@pytest.mark.slow
@given(instances(most_requests=9), st.integers(1, 5))
def test_without_patience_the_first_in_line_is_next_in_any_case(
    instance: Instance, window: int
) -> None:
    assume(len(instance) > 0)
    prices = token_prices((8, 4, 2, 1), 8)
    starts, _ = passed_over(instance, prices, Rule(window, 0, FIRST_FIT, 1.0))
    assert starts.tolist() == passed_over(instance, prices, Rule(1, 0, FIRST_FIT))[0].tolist()


def test_who_waits_has_lost_what_its_reduced_cost_is_by_now() -> None:
    instance = Instance(10, [Request(0, 9, 1), Request(0, 0, 1)])
    requests, keys = job_arrays(instance)
    trace, room = (
        DispatchTrace(requests, start_prices(instance, np.zeros(0)), keys),
        workspace_for(requests),
    )
    advance(trace, room.copy, Rule(1, 0, FIRST_FIT), 1, room)
    assert room.decisions.starts.tolist() == [0, 0]
    assert cost_of_waiting(trace, room.copy) == 1.0  # the large one: a start at 0 was cheapest

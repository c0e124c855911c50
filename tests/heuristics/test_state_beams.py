"""Beams guided by prices of states: feasible, no better than the optimum, the same by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import instances, plain

from kvopt import Instance, Progress, Request, Schedule, generate
from kvopt.bounds.configurations.evaluation import rounded
from kvopt.bounds.configurations.stages import state_prices
from kvopt.bounds.configurations.states import Knots, States
from kvopt.heuristics import improve
from kvopt.heuristics.list_schedules import offer_list_schedules, one_after_another
from kvopt.heuristics.resumable import Turn
from kvopt.heuristics.state_beams.guides import fill_rows, guide_of, line_at
from kvopt.heuristics.state_beams.rooms import Plan
from kvopt.heuristics.state_beams.searching import Going, beams_of_states
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.proofs import ConfigurationProof
from kvopt.problem.arrays import Floats

pytestmark = pytest.mark.usefixtures("processor_clock")

PLAN = Plan(
    width=5, children=3, horizon=4, listed=20, dearest=0.2, urgency=1.2, noise=0.01, depth=2
)


def priced(instance: Instance, last: int, token: float, seed: int) -> tuple[States, Knots, Floats]:
    """Return knots with prices that fall over time, a little blurred."""
    states, knots = States.of(instance), Knots.every(max(1, last // 4), last)
    falling = token * (1.0 - knots.times / (last + 1.0))[:, None] * states.holds
    blur = np.random.default_rng(seed).uniform(0.8, 1.2, falling.shape)
    return states, knots, falling * blur


def went(instance: Instance, seed: int, last: int = 30, token: float = 0.5) -> list[int]:
    guide = guide_of(instance, *priced(instance, last, token, seed))
    nothing = np.full(len(instance), -1, dtype=np.int64)
    found = Going(guide, PLAN, nothing, 0, seed).finish(lambda: False)
    assert found is not None
    return [int(start) for start in found]


@pytest.mark.slow
@given(instances(most_requests=6), st.integers(0, 99), st.floats(0.0, 3.0))
def test_feasible_and_never_below_the_optimum(instance: Instance, seed: int, token: float) -> None:
    assume(len(instance) > 1)
    schedule = Schedule(instance, went(instance, seed, token=token))
    assert schedule.check().feasible
    assert schedule.objective >= optimum(*plain(instance))


@pytest.mark.slow
@given(instances(most_requests=9), st.integers(0, 99), st.integers(0, 40))
def test_what_started_before_a_round_stays(instance: Instance, seed: int, now: int) -> None:
    assume(len(instance) > 1)
    whole = np.array(went(instance, seed))
    guide = guide_of(instance, *priced(instance, 30, 0.5, seed + 1))
    kept = np.where(whole < now, whole, -1)
    found = Going(guide, PLAN, kept, now, seed).finish(lambda: False)
    assert found is not None
    assert Schedule(instance, found.tolist()).check().feasible
    assert all(found[kept >= 0] == whole[kept >= 0])
    assert all(found[kept < 0] >= now)


@pytest.mark.slow
@pytest.mark.interpreted
@given(instances(most_requests=6), st.integers(0, 99))
def test_costs_of_starts_are_sums_of_prices(instance: Instance, seed: int) -> None:
    """Where the grid has every round, nothing is interpolated but prices between knots."""
    assume(len(instance) > 0)
    states, knots, prices = priced(instance, 30, 0.5, seed)
    guide = guide_of(instance, states, knots, prices)
    assert guide.step == 1
    rows = np.zeros((200, len(states.holds)))
    fill_rows(guide, rows, np.zeros(1, dtype=np.int64), 199)
    columns = np.array([np.interp(range(1, 31), knots.times, column) for column in prices.T]).T
    assert np.allclose(rows[1:31], columns)
    assert not rows[31:].any()
    for i, request in enumerate(instance):
        for start in (0, 3, 29, 40):
            ages = range(1, request.output + 1)
            paid = sum(rows[start + g, states.firsts[i] + request.output - g] for g in ages)
            cost = line_at(guide, guide.costs[guide.shapes[i]], start)[0]
            assert cost == pytest.approx(start + request.output + paid)


def offer_prices(search: Search) -> None:
    """Offer prices that prove a poor bound."""
    states, knots, prices = priced(search.instance, 700, 0.01, 0)
    stage = state_prices(states, knots, rounded(prices, 1000), 1000)
    search.offer_checked(0, "configuration", ConfigurationProof((stage,)))


def improved(search: Search, seed: int = 0, most: int | None = None) -> Schedule | None:
    """Let beams go on by such prices."""
    offer_prices(search)
    turn = Turn(search)
    turn.go_through(beams_of_states(turn, seed), most)
    return search.schedule


def begun(instance: Instance, **options: Any) -> Search:
    search = Search(instance, Limits(**options))
    offer_list_schedules(search)
    return search


BACKLOG = generate("uniform", n=40, seed=1)


def test_one_seed_gives_one_schedule() -> None:
    made = [improved(begun(BACKLOG, threads=2), seed, 2) for seed in (1, 1, 2)]
    starts = [schedule.starts for schedule in made if schedule is not None]
    assert starts[0] == starts[1] != starts[2]


def test_it_goes_on_from_the_schedule_that_is_known() -> None:
    search = begun(BACKLOG, threads=1)
    assert search.schedule is not None
    before = search.schedule.objective
    made = improved(search, most=3)
    assert made is not None
    assert made.objective < before


def test_it_ends_when_nothing_is_left_to_find() -> None:
    made = improved(begun(Instance(10, [Request(0, 3, 4), Request(2, 3, 4)]), threads=1))
    assert made is not None
    assert made.objective == 10


def test_it_stops_on_demand() -> None:
    search = begun(BACKLOG, threads=1, time_limit=0)
    before = search.schedule
    assert improved(search) is before


@pytest.mark.parametrize("at_once", [True, False])
def test_they_come_as_soon_as_states_are_priced(at_once: bool) -> None:
    """Also where the bound is found beside the search, after orders began to be annealed."""
    finders: list[str | None] = []

    def note(_: Progress) -> None:
        finders.append(search.found_by)
        if search.found_by == "local search" and search.checked is None:
            offer_prices(search)

    search = Search(BACKLOG, Limits(threads=1, time_limit=20.0, observer=note))
    search.offer(one_after_another(BACKLOG), "one after another")
    if at_once:
        offer_prices(search)
    improve(search, 0.7)
    ways = list(dict.fromkeys(finders))[1:]
    expected = ["state beams"] if at_once else ["local search", "state beams"]
    assert ways[: len(expected)] == expected


def test_without_prices_of_states_and_for_several_workers_it_does_nothing() -> None:
    search = begun(BACKLOG, threads=1)
    before, turn = search.schedule, Turn(search)
    assert not list(beams_of_states(turn, 0))
    several = begun(Instance(10, [Request(0, 3, 4)] * 3, workers=2), threads=1)
    assert not list(beams_of_states(Turn(several), 0))
    assert search.schedule is before


def test_long_pauses_between_arrivals_are_skipped() -> None:
    requests = [Request(1_000_000 * k, 3, 4) for k in range(5)]
    instance = Instance(10, requests)
    assert went(instance, 0) == [request.arrival for request in requests]


def test_a_beam_that_is_left_goes_on_where_it_was() -> None:
    guide = guide_of(BACKLOG, *priced(BACKLOG, 700, 0.01, 0))
    nothing = np.full(len(BACKLOG), -1, dtype=np.int64)
    at_once = Going(guide, PLAN, nothing, 0, 3).finish(lambda: False)
    beam, answers = Going(guide, PLAN, nothing, 0, 3), []
    while not beam.is_over:
        answers.append(beam.finish(iter([False, True]).__next__))
    assert len(answers) > 2
    assert at_once is not None
    assert all(answer is None for answer in answers[:-1])
    assert answers[-1] is not None
    assert np.array_equal(answers[-1], at_once)

"""Beams over a whole trace: feasible, never below the optimum, and whole when cut short."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from brute_force import optimum
from effort import many
from known import known
from strategies import plain

from kvopt import Instance, Request, Schedule, generate
from kvopt.bounds.fluid import fluid_prices
from kvopt.heuristics import improve
from kvopt.heuristics.layers import (
    SEEN,
    ActiveInterval,
    BeamPace,
    BeamPlan,
    Course,
    beam_of,
    choose,
    go_again,
)
from kvopt.heuristics.list_schedules import offer_list_schedules, one_after_another
from kvopt.heuristics.nodes import FIRST_FIT, STATE, STOP, job_arrays, most_active, start_on
from kvopt.heuristics.patient_dispatch import DispatchTrace, Rule, advance, workspace_for
from kvopt.heuristics.reduced_costs import StartPrices, start_prices
from kvopt.heuristics.trace_beams import (
    beam_from,
    drawn_trace,
    filled_share,
    loops_on,
    make_tries,
    search_traces,
    started_by_beam,
)
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.params import SolveParams
from kvopt.kernels.budget import Budget

_NARROW = SolveParams(improve_widest_beam=16)


def chat(arrivals: bool, workers: int = 1, count: int = 120) -> Instance:
    found = generate("conversation", n=count, memory=3_000, seed=1)
    requests = [Request(i * arrivals, r.prompt, r.output) for i, r in enumerate(found)]
    return Instance(found.memory // workers, requests, workers=workers)


def begun(instance: Instance, **options: int) -> Search:
    search = Search(instance, Limits(params=_NARROW, **options))  # type: ignore[arg-type]
    offer_list_schedules(search)
    return search


def worth_nothing(count: int) -> StartPrices:
    """Return prices of 0 at all times."""
    return StartPrices(np.zeros(1), np.zeros(1), np.zeros(count), np.zeros(count, dtype=np.int64))


def test_tiny_optima_are_found_and_never_passed() -> None:
    rng, found = random.Random(5), 0
    for seed in range(many(50)):
        instance = Instance(8, [
            Request(rng.randint(0, 6), rng.randint(0, 3), rng.randint(1, 5)) for _ in range(5)
        ])  # fmt: skip
        search = Search(instance, Limits(params=_NARROW))
        search.offer(one_after_another(instance), "one after another")
        search_traces(search, search.budget, seed)
        assert search.faults == []
        assert search.objective is not None
        least = optimum(*plain(instance))
        assert search.objective >= least
        found += search.objective == least
    assert found >= many(50) // 2


def test_all_start_where_a_rule_lets_all_wait_with_nothing_active() -> None:
    search = begun(Instance(9, [Request(0, 2, 3) for _ in range(8)]))
    requests, keys = job_arrays(search.instance)
    trace = drawn_trace(search, requests, keys, np.random.default_rng(1))
    prices = trace.prices
    later = prices._replace(cheapest=prices.cheapest + 50, costs=prices.costs - 50)
    trace, plan = trace._replace(prices=later), BeamPlan(1, 1, 7, 1, 1)
    beam, room = beam_from(requests, plan), workspace_for(requests)
    beam.here.rules[0, 4] = 0.0  # no start may cost more than the cheapest
    go_again(beam, loops_on(trace, plan), [], plan.interval, room)
    starts = room.decisions.starts.tolist()
    assert Schedule(search.instance, starts).violations() == []
    assert min(starts) >= 50


def state_after(order: list[int], until: int) -> int:
    """Return the hash of the state once requests have started in an order, until a round."""
    shapes = [(2, 3), (1, 4), (1, 3)]
    requests, keys = job_arrays(Instance(20, [Request(0, *shape) for shape in shapes]))
    room = workspace_for(requests)
    for i in order:
        start_on(requests, room.copy, 0, i)
    room.copy.counts[STOP] = room.copy.counts[0]  # none waits
    requests = requests._replace(coming=requests.coming[:0], line=requests.line[:0])
    trace = DispatchTrace(requests, worth_nothing(len(shapes)), keys)
    for each in (until, until + 1):
        advance(trace, room.copy, Rule(1, 0, FIRST_FIT), each, room)
    return int(room.copy.counts[STATE])


def test_a_state_is_what_is_active_and_not_how_it_came_about() -> None:
    assert state_after([0, 1], until=2) == state_after([1, 0], until=2)
    assert state_after([0, 1], until=2) != state_after([0, 2], until=2)
    assert state_after([0, 1], until=3) == state_after([1], until=3)  # 0 has left
    assert state_after([0, 1], until=9) == state_after([], until=9) == 0


def test_tries_of_one_state_are_kept_once() -> None:
    kept = beam_of(None, None, BeamPlan(4, 2, 1, 1, 1), (0.0,)).expansions
    kept.states[:8] = [1, 2, 3, 4, 4, 3, 3, 3]
    assert kept.chosen[: choose(kept, np.arange(8)[::-1], 8, 16, 4)].tolist() == [7, 4, 1, 0]
    assert kept.chosen[: choose(kept, np.arange(8)[::-1], 8, 3, 4)].tolist() == [7, 4, 1]
    assert kept.chosen[: choose(kept, np.arange(8)[::-1], 4, 1, 4)].tolist() == [7, 3]
    assert kept.chosen[: choose(kept, np.arange(8)[::-1], 8, 16, 2)].tolist() == [7, 4]
    kept.paid[5] = 1.0
    assert kept.chosen[: choose(kept, np.arange(8)[::-1], 8, 16, 4)].tolist() == [7, 5, 4, 1]


def test_prices_last_longer_where_less_is_filled() -> None:
    search = begun(chat(arrivals=True))
    requests, keys = job_arrays(search.instance)
    drawn = [drawn_trace(search, requests, keys, np.random.default_rng(seed)) for seed in range(9)]
    assert len({len(each.prices.paid) for each in drawn}) > 5
    assert min(len(each.prices.paid) for each in drawn) > len(fluid_prices(search.instance))


def test_half_of_the_next_request_is_left_free() -> None:
    requests, _ = job_arrays(Instance(10, [Request(0, 3, 1), Request(0, 7, 1)]))  # volumes 4 and 8
    assert filled_share(requests) == pytest.approx(1 - (4 * 4 + 8 * 8) / 12 / 10 / 2)


def test_waiting_weighs_more_by_what_is_lost() -> None:
    search = begun(chat(arrivals=True, count=250))
    requests, keys = job_arrays(search.instance)
    trace, seen, many = drawn_trace(search, requests, keys, np.random.default_rng(1)), [], 20
    for weight in (0.0, 1.0, 3.0):
        plan = BeamPlan(1, many, 40, 60, 1, weight)
        beam = beam_from(requests, plan)
        make_tries(
            trace,
            plan,
            *beam,
            ActiveInterval(40, many, False, SEEN),
            workspace_for(requests),
            0,
            many,
        )
        seen.append(beam.expansions.seen.copy())
    lost = seen[1] - seen[0]
    assert lost.min() >= 0
    assert lost.max() > 0
    assert seen[2] - seen[0] == pytest.approx(3 * lost)


def test_no_more_than_fit_are_active() -> None:
    requests, _ = job_arrays(Instance(10, [Request(0, prompt, 2) for prompt in (3, 0, 5, 1)]))
    assert most_active(requests) == 4  # 1 + 2 + 4 fit, 6 more do not


@pytest.mark.interpreted
@pytest.mark.parametrize("workers", [1, 2])
def test_small_beams_make_schedules_at_any_prices(workers: int) -> None:
    rng = random.Random(workers)
    for _ in range(many(5)):
        instance = Instance(8, [
            Request(rng.randint(0, 9), rng.randint(0, 3), rng.randint(1, 5)) for _ in range(6)
        ], workers=workers)  # fmt: skip
        requests, keys = job_arrays(instance)
        prices = np.array([rng.choice((0.0, 0.1, 1.0)) for _ in range(rng.randint(0, 30))])
        trace = DispatchTrace(requests, start_prices(instance, prices), keys)
        plan = BeamPlan(4, 5, rng.randint(1, 4), rng.randint(1, 6), rng.randint(0, 99), 2.0)
        with ThreadPoolExecutor(2) as pool:
            one, two = (
                started_by_beam(pool, each, trace, plan, Budget(), BeamPace()) for each in (1, 2)
            )
        schedule = Schedule(instance, one.starts.tolist(), one.workers.tolist())
        assert schedule.check().feasible
        assert workers > 1 or schedule.objective >= optimum(*plain(instance))
        assert one.starts.tolist() == two.starts.tolist()


@pytest.mark.parametrize(("workers", "arrivals"), [(1, True), (3, False)])
def test_beams_beat_lists_and_repeat_themselves(workers: int, arrivals: bool) -> None:
    found = []
    for threads in (1, 3):  # which share the rows of a beam
        search = begun(chat(arrivals, workers), threads=threads)
        before = search.objective
        search_traces(search, search.budget)
        assert search.found_by == "beams over the whole trace"
        assert known(search.objective) < known(before)
        found.append((known(search.schedule).starts, known(search.schedule).workers))
    assert found[0] == found[1]


@pytest.mark.parametrize("workers", [1, 3])
def test_one_that_has_to_stop_ends_with_a_whole_schedule(workers: int) -> None:
    instance = chat(arrivals=True, workers=workers)
    requests, keys = job_arrays(instance)
    trace = DispatchTrace(requests, worth_nothing(len(instance)), keys)
    with ThreadPoolExecutor(2) as pool:
        plan = BeamPlan(9, 3, 40, 60, 1)
        made = started_by_beam(pool, 2, trace, plan, Budget(0.0), BeamPace())
    assert Schedule(instance, made.starts.tolist(), made.workers.tolist()).check().feasible


class Narrower(BeamPace):
    """A pace that allows fewer and fewer expansions, down to one."""

    def learn(self, plan: BeamPlan, course: Course) -> None:
        """Keep the course."""
        self.course = course

    def tries(self, plan: BeamPlan, begin: int, planned: float, spent: float, left: float) -> int:
        """Return half as many after each forty rounds."""
        return max(1, plan.width * plan.draws >> begin // 40)


def test_a_beam_that_becomes_narrower_repeats_its_run() -> None:
    search = begun(chat(arrivals=True))
    instance = search.instance
    requests, keys = job_arrays(instance)
    trace = drawn_trace(search, requests, keys, np.random.default_rng(1))
    plan = BeamPlan(9, 9, 20, 20, 2)
    with ThreadPoolExecutor(1) as pool:
        pace = Narrower()
        made = started_by_beam(pool, 1, trace, plan, Budget(), pace)
        whole = started_by_beam(pool, 1, trace, plan, Budget(), BeamPace())
    assert Schedule(instance, made.starts.tolist()).check().feasible
    assert max(len(chosen) for chosen in pace.course.chosen) == 4
    assert {len(chosen) for chosen in pace.course.chosen[-3:]} == {1}
    assert pace.course.draws[-1] == 1
    assert made.starts.sum() > whole.starts.sum()


def test_a_beam_that_is_late_has_fewer_tries() -> None:
    plan, pace = BeamPlan(10, 10, 5, 5, 1, effort=2.0), BeamPace()
    assert pace.tries(plan, 0, 0.0, 0.0, 0.1) == 100  # nothing is known yet
    # Ten seconds at a hundred tries a layer, of which the second of two layers takes 7.5.
    course = Course([], [100, 100], [5, 20], [0.025, 0.075])
    pace.learn(plan, course)
    assert pace.go_on(plan, 10.0, 100.0)
    assert pace.effort == 2 * 200.0
    assert pace.width(plan, 99) == 20
    assert pace.width(plan, 7) == 7
    assert pace.tries(plan, 0, 0.0, 0.0, 20.0) == 100
    assert pace.tries(plan, 0, 0.0, 0.0, 5.0) == pytest.approx(100 * 0.5 * 0.95, abs=1)
    # As quick as foreseen, then twice as slow, and only half of its tries.
    assert pace.tries(plan, 5, 0.25, 2.5, 8.0) == 100
    slower = (0.5 + 0.1) / (0.25 + 0.1)
    assert pace.tries(plan, 5, 0.25, 5.0, 5.0) == pytest.approx(475 / 7.5 / slower, abs=1)
    assert pace.tries(plan, 5, 0.125, 1.25, 8.0) == 100
    assert pace.tries(plan, 5, 0.25, 2.5, math.inf) == 100
    # The next one has the rest of the time, or is left out.
    assert pace.go_on(plan, 10.0, 20.0)
    assert pace.effort == pytest.approx(1.2 * 2 * 200.0)
    assert not pace.go_on(plan, 10.0, 2.0)


def test_one_request_is_left_alone() -> None:
    search = begun(generate("uniform", n=1, memory=100, seed=1))
    before = search.objective
    search_traces(search, search.budget)
    assert search.objective == before


def test_an_interrupt_ends_beams() -> None:
    search = begun(chat(arrivals=True))
    before = search.objective
    search.granted.interrupt()
    search_traces(search, search.budget)
    improve(search, search.budget)
    assert search.objective == before


@pytest.mark.slow
@pytest.mark.parametrize("arrivals", [False, True])
def test_improve_begins_with_beams_and_keeps_its_limit(arrivals: bool) -> None:
    search = begun(chat(arrivals))
    before = search.objective
    improve(search, Budget(1.0))
    assert search.granted.spent < 20
    assert search.faults == []
    assert known(search.objective) < known(before)

"""The search forward in time, and the ruling out before it, against all schedules there are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice

import brute_force
import numpy as np
import pytest
from effort import many
from known import known
from literal import configurations as literal
from strategies import instance_of, plain, random_instances
from test_configurations import drawn_knots, drawn_prices, drawn_starts, windows_of

from kvopt import Instance, Request, generate, solve
from kvopt.bounds.configurations import dominance, expand
from kvopt.bounds.configurations.dual_ascent import STAGES, DualAscent
from kvopt.bounds.configurations.evaluation import FORBIDDEN, Evaluation, evaluate
from kvopt.bounds.configurations.expand import TooWide
from kvopt.bounds.configurations.forward_search import ForwardSearch, predecessors_of
from kvopt.bounds.configurations.lookahead_tables import Lookahead
from kvopt.bounds.configurations.states import Knots, States
from kvopt.errors import Stopped, TooLarge
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget
from kvopt.kernels.loop_calls import map_ranges
from kvopt.search.stages import states_priced

LIMIT = 100_000


def without_prices(instance: Instance, last: int) -> Evaluation:
    states, knots = States.of(instance), Knots.every(1, last)
    prices = np.zeros((len(knots), len(states.holds)), dtype=np.int64)
    return evaluate(states, knots, states.all_starts(last), prices, 1)


def lookahead_of(forward: ForwardSearch, target: int, rounds: int) -> Lookahead:
    evaluation = forward.evaluation
    budget = (target - 1) * evaluation.denominator - evaluation.total
    return Lookahead(forward.states, evaluation, budget, rounds)


def tel_of(requests: Sequence[tuple[int, int, int]], starts: Sequence[int] | None) -> int | None:
    return None if starts is None else brute_force.tel(requests, starts)


def assert_exhaustive(forward: ForwardSearch, instance: Instance, optimum: int) -> None:
    """Check what a search returns for a known least latency."""
    memory, requests = plain(instance)
    for more, rounds in ((0, 4), (1, 20), (5, 1)):
        forward.target = optimum + more
        looking = replace(forward, lookahead=lookahead_of(forward, optimum + 5, rounds))
        searches = (forward, looking)
        best = [each.search_exhaustively(LIMIT) for each in searches]
        assert [tel_of(requests, starts) for starts in best] == [optimum if more else None] * 2
        for starts in [*best, *(each.search_with_beam(5) for each in searches)]:
            if starts is not None:
                assert brute_force.feasible(memory, requests, starts)
                assert optimum <= brute_force.tel(requests, starts) < forward.target


class TestSweep:
    """It finds a best schedule below the target, or none exactly when there is none."""

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["early", "late", "long", "after prices", "threads"])
    def test_any_prices_leave_the_optimum(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where rounds are free after the last price, or threads share the work."""
        source = random.Random(kind)
        forward: Callable[..., ForwardSearch] = ForwardSearch
        if kind == "long":  # as if rounds were too many for 16 bits
            forward = partial(ForwardSearch, last_short=0)
        if kind == "threads":
            for loops in (dominance, expand):
                monkeypatch.setattr(loops, "map_ranges", partial(map_ranges, fewest=1))
        late = {"early": 0, "after prices": 30}.get(kind, 7)
        drawn = random_instances(
            many(6 if kind == "threads" else 20), len(kind), least_requests=1, last_arrival=late
        )
        for number, instance in enumerate(drawn):
            last = 1 if kind == "after prices" else source.randint(1, 14)
            states, knots = States.of(instance), drawn_knots(source, last)
            prices = drawn_prices(source, states, knots, source.choice((0, 1, 3, 9)))
            found = evaluate(states, knots, states.all_starts(last), prices, source.choice((1, 4)))
            predecessors = predecessors_of(instance) if number % 2 else np.full(len(instance), -1)
            optimum = brute_force.optimum(*plain(instance))
            threads = 3 if kind == "threads" else 1
            assert_exhaustive(
                forward(states, predecessors, found, 0, threads=threads), instance, optimum
            )

    @pytest.mark.slow
    def test_starts_that_are_ruled_out_are_not_used(self) -> None:
        source = random.Random(0)
        impossible = 0
        for instance in random_instances(many(120), 60, least_requests=1, most_requests=4):
            memory, requests = plain(instance)
            states, last = States.of(instance), source.randint(1, 12)
            knots, starts = drawn_knots(source, last), drawn_starts(source, states, last)
            prices = drawn_prices(source, states, knots, 4)
            found = evaluate(states, knots, starts, prices, 3)
            windows = windows_of(requests, starts, more=sum(o for _, _, o in requests))
            best = brute_force.best_starts(memory, requests, windows)
            impossible += best is None
            forward = ForwardSearch(states, np.full(len(instance), -1), found, 0)
            if best is not None:
                assert_exhaustive(forward, instance, best[0])
            else:
                forward.target = 60
                assert forward.search_exhaustively(LIMIT) is None
        assert impossible > 0

    def test_alike_requests_leave_the_optimum(self) -> None:
        for shape, memory in (((1, 2), 6), ((0, 3), 7), ((2, 1), 3)):
            for arrivals in ((0,) * 7, (0, 0, 1, 1, 3, 3), (4, 0, 2, 0, 4)):
                instance = instance_of(memory, [(a, *shape) for a in arrivals])
                optimum = brute_force.optimum(*plain(instance))
                prices = without_prices(instance, 9)
                forward = ForwardSearch(States.of(instance), predecessors_of(instance), prices, 0)
                assert_exhaustive(forward, instance, optimum)

    def test_predecessors_arrive_no_later_and_come_before(self) -> None:
        instance = instance_of(
            9, [(3, 1, 2), (0, 1, 2), (3, 1, 2), (0, 2, 1), (3, 1, 2), (0, 1, 2)]
        )
        assert predecessors_of(instance).tolist() == [-1, -1, 1, -1, 2, 1]

    def test_labels_beyond_the_limit_are_not_left_out(self) -> None:
        instance = generate("arrival-1", 12, 40, seed=3)
        forward = ForwardSearch(
            States.of(instance), predecessors_of(instance), without_prices(instance, 60), 1000
        )
        with pytest.raises(TooWide):
            forward.search_exhaustively(300)
        found = forward.search_with_beam(30)
        assert brute_force.feasible(*plain(instance), known(found))

    def test_a_label_with_more_children_than_there_is_room_for_keeps_them_all(self) -> None:
        instance = instance_of(10_000, [(0, 0, 2 + i) for i in range(14)])
        forward = ForwardSearch(
            States.of(instance), predecessors_of(instance), without_prices(instance, 9), 10_000
        )
        with pytest.raises(TooWide, match="at round 1"):
            forward.search_exhaustively(20_000)
        assert forward.kept == [2**14]

    @pytest.mark.slow
    @pytest.mark.parametrize("calls", [0, 1, 7, 30])
    def test_it_stops_when_asked(self, calls: int) -> None:
        instance = generate("arrival-1", 12, 40, seed=3)
        left = iter(range(calls))
        forward = ForwardSearch(
            States.of(instance), predecessors_of(instance), without_prices(instance, 60), 1000
        )
        with pytest.raises(Stopped):
            forward.search_exhaustively(10**6, Budget(until=lambda: next(left, None) is None))
        with pytest.raises(Stopped):
            forward.search_with_beam(100, Budget(0.0))

    @pytest.mark.slow
    def test_better_prices_leave_less_to_do(self) -> None:
        instance, first, last, optimum = climbed()
        kept = []
        for evaluation in (first, last):
            forward = ForwardSearch(
                States.of(instance), predecessors_of(instance), evaluation, optimum
            )
            forward.search_exhaustively(10**6)
            kept.append(sum(forward.kept))
        assert 1.2 * kept[1] < kept[0]

    @pytest.mark.slow
    def test_a_look_ahead_leaves_less_to_do(self) -> None:
        instance, _, evaluation, optimum = climbed()
        for target in (optimum, optimum + 1):
            forward = ForwardSearch(
                States.of(instance), predecessors_of(instance), evaluation, target
            )
            looking = replace(forward, lookahead=lookahead_of(forward, target, 20))
            found = [
                tel_of(plain(instance)[1], s.search_exhaustively(10**6)) for s in (forward, looking)
            ]
            assert found == [optimum if optimum < target else None] * 2
            assert 2 * sum(looking.kept) < sum(forward.kept)


def test_large_tables_do_not_fit() -> None:
    instance = Instance(100_000, [Request(0, 1, 50)] * 50)
    states, evaluation = States.of(instance), without_prices(instance, 4)
    assert Lookahead.fits(states, evaluation, 1)
    assert not Lookahead.fits(states, evaluation, 20)


@cache
def climbed() -> tuple[Instance, Evaluation, Evaluation, int]:
    """Return an instance, its first prices and later ones, and its optimum."""
    instance = generate("arrival-1", 12, seed=1)
    optimum = known(solve(instance, "exact").objective)
    rising = islice(states_priced(searched(instance), Budget()), 5)
    first, *_, last = (ascent.evaluation for ascent in rising)
    assert last.bound < optimum
    return instance, first, last, optimum


# Ruling out.


def searched(instance: Instance) -> Search:
    """Return a search with a schedule."""
    search = Search(instance)
    offer_list_schedules(search)
    return search


def objective(search: Search) -> int:
    return known(search.schedule).objective


def all_below(instance: Instance, target: int) -> Iterator[tuple[int, ...]]:
    """Yield every schedule below a target."""
    memory, requests = plain(instance)
    least = sum(o for _, _, o in requests)
    windows = [range(a, a + target - least) for a, _, _ in requests]
    for starts, latency in literal.schedules(memory, requests, windows):
        if latency < target:
            yield starts


class TestDualAscent:
    @pytest.mark.slow
    def test_no_start_of_a_schedule_below_the_target_is_ruled_out(self) -> None:
        source = random.Random(1)
        removed = schedules = 0
        for instance in random_instances(30, 81, least_requests=1, most_requests=3, last_arrival=3):
            optimum = brute_force.optimum(*plain(instance))
            target = optimum + source.choice((0, 1, 3))
            below = list(all_below(instance, target))
            last = objective_end(instance) if source.random() < 0.6 else source.randint(1, 12)
            rising = DualAscent(instance, last)
            for stage in STAGES[:: source.choice((1, 3))]:
                evaluation = rising.ascend(stage, optimum)
                assert min(target, evaluation.bound) <= optimum
                if evaluation.bound >= target:
                    assert not below
                    break
                before = rising.starts.copy()
                rising.fix_starts(evaluation, target)
                assert not (rising.starts & ~before).any()
                assert (rising.starts == before).all() or rising.proof(target).target == target
                removed += int(before.sum() - rising.starts.sum())
                for starts in below:
                    assert all(rising.starts[i, min(k, last)] for i, k in enumerate(starts))
                    schedules += 1
        assert removed > 80
        assert schedules > 120

    @pytest.mark.slow
    def test_bounds_rise_to_the_optimum_and_not_further(self) -> None:
        met = tried = 0
        for number, instance in enumerate(random_instances(many(22), 82, least_requests=1)):
            optimum, best = known(brute_force.best_starts(*plain(instance)))
            search = searched(instance)
            if number % 2:
                search.offer_starts(best, "test")
            seen = 0
            for rising in states_priced(search, search.budget, fixes=number % 3 > 0):
                evaluation = rising.evaluation
                assert search.lower_bound is not None
                assert search.lower_bound <= optimum
                assert search.lower_bound >= seen
                seen = search.lower_bound
                value, proof = rising.proved(evaluation, optimum + 1)
                assert value <= optimum + (proof.target is not None)
            assert search.lower_bound is not None
            assert search.lower_bound <= optimum
            met, tried = met + (search.lower_bound == optimum), tried + 1
        assert met > 0.75 * tried

    @pytest.mark.slow
    @pytest.mark.usefixtures("processor_clock")
    def test_a_bound_of_many_requests_keeps_its_limit(self) -> None:
        search = Search(generate("arrival-1", 40, seed=2), Limits(time_limit=20))
        offer_list_schedules(search)
        for _ in states_priced(search, search.budget.part(most=0.5)):
            pass
        assert search.granted.spent < 8
        assert search.lower_bound is None or search.lower_bound <= objective(search)

    @pytest.mark.parametrize(
        "instance",
        [
            Instance(5, [Request(0, 1, 3), Request(10**12, 1, 3)]),
            Instance(5, [Request(0, 1, 1), Request(10**6, 1, 1), Request(0, 1, 1)]),
            Instance(9000, [Request(0, 1, 900), Request(0, 2, 900), Request(0, 3, 900)] * 10),
            Instance(4000, [Request(0, 1, 80), *[Request(0, 900 + s, 60) for s in range(16)]]),
            Instance(4_000_000, [Request(0, 3_000_000, 3)] * 3),
        ],
        ids=["arrivals", "rounds", "memory", "what verify takes", "tokens"],
    )
    def test_what_is_too_large_is_refused_before_memory_is_taken(self, instance: Instance) -> None:
        search = searched(instance)
        with pytest.raises(TooLarge):
            next(iter(states_priced(search, search.budget)))


def objective_end(instance: Instance) -> int:
    return known(searched(instance).schedule).makespan


def test_closed_starts_cost_more_than_any_budget() -> None:
    instance = generate("arrival-2", 20, seed=1)
    search = searched(instance)
    rising = next(states_priced(search, search.budget))
    rising.fix_starts(rising.evaluation, objective(search))
    left = evaluate(
        rising.states,
        Knots.every(1, 5),
        rising.starts[:, :6] | (np.arange(6) == 5),
        np.zeros((5, len(rising.states.holds)), dtype=np.int64),
        1,
    )
    assert (left.reduced_costs[left.reduced_costs != FORBIDDEN] < 10**6).all()

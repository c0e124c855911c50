"""Cost-to-go bounds, against all ways to go on and against all schedules there are."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from inspect import unwrap
from itertools import chain, combinations_with_replacement

import brute_force
import numpy as np
import pytest
from effort import many
from known import known
from strategies import instance_of, plain, random_instances
from test_configurations import drawn_knots, drawn_prices, drawn_starts
from test_forward_search import LIMIT, climbed, lookahead_of, searched, tel_of

from kvopt import Instance, generate, solve
from kvopt.bounds.configurations import carried_sets, cost_to_go
from kvopt.bounds.configurations.cost_to_go import CostToGo
from kvopt.bounds.configurations.evaluation import Evaluation, evaluate
from kvopt.bounds.configurations.expand import TooWide
from kvopt.bounds.configurations.forward_search import ForwardSearch, predecessors_of
from kvopt.bounds.configurations.states import States
from kvopt.errors import Stopped
from kvopt.kernels.budget import Budget
from kvopt.search.stages import states_priced

Members = tuple[tuple[int, int], ...]
"""Peaks and completions of active requests, ascending."""


class Literal:
    """The least that the rest costs, by the definition and with nothing left out.

    With ``told_apart`` a request that is active does not start again: what is known of schedules,
    but not to tables.
    """

    def __init__(
        self, instance: Instance, evaluation: Evaluation, budget: int, *, told_apart: bool
    ) -> None:
        self.memory, self.requests = plain(instance)
        self.evaluation, self.budget = evaluation, budget
        states = States.of(instance)
        firsts, self.most = states.firsts, states.together
        peaks = [prompt + output for _, prompt, output in self.requests]
        self.firsts = dict(zip(peaks, firsts, strict=True))
        # Each request by itself, or any that has the same peak.
        self.kinds = list(range(len(peaks))) if told_apart else peaks
        self.peaks = dict(zip(self.kinds, peaks, strict=True))
        self.last = len(evaluation.largest) - 1
        self.rest = cache(self._rest)

    def _cost(self, i: int, start: int) -> int:
        return int(self.evaluation.reduced_costs[i, min(start, self.last)])

    def _may_start(self, i: int, start: int) -> bool:
        return start >= self.requests[i][0] and self._cost(i, start) <= self.budget

    def _rest(self, now: int, carried: Members) -> int:
        """Return it for what goes on from a time to the next."""
        if now == self.last:
            return 0
        idle = sorted(
            {
                (self.kinds[i], now + output)
                for i, (_, _, output) in enumerate(self.requests)
                if self._may_start(i, now)
            }
        )
        found = []
        for count in range(len(self.requests) - len(carried) + 1):
            for new in combinations_with_replacement(idle, count):
                active = tuple(sorted([*carried, *new]))
                if self.stands(active, now + 1):
                    paid = sum(self._least(member, now) for member in new)
                    slack = self.slack(active, now + 1)
                    found.append(paid + slack + self.rest(now + 1, self.after(active, now + 1)))
        return min(found)

    def _least(self, member: tuple[int, int], now: int) -> int:
        """Return the least that a start now which makes a member costs above later ones."""
        kind, end = member
        costs = [
            self._cost(i, now) - min(self._cost(i, k) for k in range(now, self.last + 1))
            for i, (_, _, output) in enumerate(self.requests)
            if self.kinds[i] == kind and now + output == end and self._may_start(i, now)
        ]
        return min(costs)

    def after(self, active: Members, now: int) -> Members:
        """Return what goes on after a time."""
        return tuple((kind, end) for kind, end in active if end > now)

    def stands(self, active: Members, now: int) -> bool:
        """Whether there are so many requests, and all of them fit at each completion."""
        if len(active) > self.most:
            return False
        for kind, copies in Counter(kind for kind, _ in active).items():
            if copies > self.kinds.count(kind):
                return False
        for (kind, end), copies in Counter(active).items():
            able = 0
            for i, (_, _, output) in enumerate(self.requests):
                is_early = self.kinds[i] == kind and end - output < self.last
                able += is_early and self._may_start(i, end - output)
            if copies > able:
                return False
        for time in {now, *(end for _, end in active)}:
            if sum(self.peaks[k] - end + time for k, end in active if end >= time) > self.memory:
                return False
        return True

    def slack(self, active: Members, now: int) -> int:
        """Return what active requests are worth less than the largest sum."""
        prices = self.evaluation.prices[now]
        values = (prices[self.firsts[self.peaks[kind]] + end - now] for kind, end in active)
        return int(self.evaluation.largest[now] - sum(values))


def drawn(source: random.Random, instance: Instance, *, positive: bool) -> Evaluation:
    """Draw prices at up to ten times, some starts ruled out."""
    states, last = States.of(instance), source.randint(1, 10)
    knots = drawn_knots(source, last)
    prices = drawn_prices(source, states, knots, source.choice((1, 3, 6))) + positive
    starts = states.all_starts(last)
    if source.random() < 0.3:
        starts = drawn_starts(source, states, last)
    return evaluate(states, knots, starts, prices, source.choice((1, 4)))


_SHAPES = ((5, 1), (0, 6), (4, 2), (3, 3), (1, 1), (6, 6))
"""Prompts and outputs: four shapes have a peak of 6, of which two fit, and one fills the memory."""


def alike(count: int, seed: int, most: int) -> Iterator[Instance]:
    """Yield instances in which most requests have the same peak, some in all.

    Whole solves seldom reach the ends of arrays.  Random prices of these do, so `make test-bounds`,
    which checks every index, sees what is read or written beyond them.
    """
    source = random.Random(seed)
    for _ in range(count):
        shapes = _SHAPES[: source.choice((2, 2, 2, 4, 6))]
        starts = [source.randint(0, 6) for _ in range(source.randint(2, most))]
        yield instance_of(12, [(start, *source.choice(shapes)) for start in starts])


def budget_of(evaluation: Evaluation, target: int) -> int:
    return (target - 1) * evaluation.denominator - evaluation.total


@pytest.mark.slow
@pytest.mark.parametrize("positive", [True, False])
def test_it_is_the_least_cost_of_the_rest(positive: bool) -> None:
    """At most, where some states are worth nothing: a member may vanish once it is worthless."""
    source = random.Random(3)
    exact = cut = merged = 0
    others = random_instances(many(60), 41, least_requests=1, most_requests=4)
    for instance in chain(others, alike(many(120), positive, 4)):
        evaluation = drawn(source, instance, positive=positive)
        budget = source.choice((0, 5, 30, 10**6))
        literal = Literal(instance, evaluation, budget, told_apart=False)
        apart = Literal(instance, evaluation, budget, told_apart=True)
        whole = CostToGo(States.of(instance), evaluation, budget)
        whole.fill(10**4, 10**7, Budget())
        least = min(literal.rest(0, ()), budget + 1)
        assert not positive or whole.rise == least
        assert max(least, whole.rise) <= min(apart.rest(0, ()), budget + 1)
        merged += least < apart.rest(0, ())
        exact += whole.rise == least
        rough = CostToGo(States.of(instance), evaluation, budget)
        rough.fill(source.choice((1, 2, 5, 20)), source.choice((1, 3, 12)), Budget())
        assert rough.rise <= whole.rise
        cut += rough.rise < whole.rise
    assert exact > 0
    assert cut > 0
    assert merged > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_searches_find_the_same(seed: int) -> None:
    """By themselves, with a look-ahead, and with cost-to-go bounds of few or of many sets."""
    source, kept, helped_kept, reached = random.Random(seed), 0, 0, 0
    others = random_instances(many(30), 47 + seed, least_requests=1, last_arrival=6)
    for instance in chain(others, alike(many(80), seed, 6)):
        memory, requests = plain(instance)
        evaluation = drawn(source, instance, positive=seed == 1)
        optimum = brute_force.optimum(memory, requests)
        for more in (0, source.choice((1, 5))):
            target, states = optimum + more, States.of(instance)
            forward = ForwardSearch(states, predecessors_of(instance), evaluation, target)
            least = tel_of(requests, forward.search_exhaustively(LIMIT))
            assert least is None or optimum <= least < target  # more where starts are ruled out
            reached += least is not None
            rest = CostToGo(states, evaluation, budget_of(evaluation, target))
            rest.fill(source.choice((1, 5, 1000)), source.choice((1, 20, 1000)), Budget())
            looking = lookahead_of(forward, target, source.choice((1, 4, 20)))
            helped = replace(forward, cost_to_go=rest)
            for other in (helped, replace(forward, lookahead=looking)):
                assert tel_of(requests, other.search_exhaustively(LIMIT)) == least
                beam = other.search_with_beam(source.choice((1, 5, 50)))
                assert beam is None or brute_force.feasible(memory, requests, beam)
                assert beam is None or brute_force.tel(requests, beam) < target
            kept, helped_kept = kept + sum(forward.kept), helped_kept + sum(helped.kept)
    assert helped_kept < kept
    assert reached > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5])
def test_a_beam_goes_on_where_even_the_best_labels_cost_nearly_the_gap(seed: int) -> None:
    """A smaller gap leaves few enough labels; below the cost to go it would leave none."""
    instance = generate("uniform", 14, seed=seed)
    optimum = known(solve(instance).objective)
    first = next(states_priced(searched(instance), Budget(), fixes=False)).evaluation
    states, target = States.of(instance), optimum + 5
    rest = CostToGo(states, first, budget_of(first, target))
    rest.fill(1000, 10**6, Budget())
    forward = ForwardSearch(states, predecessors_of(instance), first, target, None, rest)
    with pytest.raises(TooWide, match="at round 0"):
        forward.search_exhaustively(100)
    forward.search_with_beam(1)
    assert len(forward.kept) > 10


def test_a_line_of_sets_tells_how_often_each_shape_starts() -> None:
    """Sets do not know requests: a line may start a shape several times."""
    instance = instance_of(6, [(0, 2, 4), (0, 3, 3)])
    states = States.of(instance)
    knots = drawn_knots(random.Random(1), 12)
    # Prices that fall a round a time: all starts up to the last price cost the same.
    prices = np.zeros((len(knots.times), len(states.holds)), dtype=np.int64)
    entries = states.firsts + states.outputs - 1
    prices[:, entries] = np.maximum(0, 12 - knots.times)[:, None]
    evaluation = evaluate(states, knots, states.all_starts(12), prices, 1)
    rest = CostToGo(states, evaluation, 10**6)
    rest.fill(10**4, 10**6, Budget())
    assert rest.starts_of_cheapest() == Counter()
    rise = rest.rise
    rest.fill(10**4, 10**6, Budget(), lines=True)
    counts = known(rest.starts_of_cheapest())
    assert rest.rise == rise
    assert set(counts) <= {(2, 4), (3, 3)}
    assert max(counts.values()) > 1
    rest.fill(1, 1, Budget(), lines=True)
    assert rest.starts_of_cheapest() is None


@pytest.mark.slow
def test_more_sets_prove_more_and_leave_less_to_do() -> None:
    instance, _, evaluation, optimum = climbed()
    budget = budget_of(evaluation, optimum)
    rest = CostToGo(States.of(instance), evaluation, budget)
    forward = ForwardSearch(States.of(instance), predecessors_of(instance), evaluation, optimum)
    assert forward.search_exhaustively(10**6) is None
    rises, kept = [0], [sum(forward.kept)]
    for sets, window in ((10, 1), (100, budget // 4), (10_000, budget)):
        rest.fill(sets, window, Budget())
        helped = replace(forward, cost_to_go=rest)
        assert helped.search_exhaustively(10**6) is None
        rises.append(rest.rise)
        kept.append(sum(helped.kept))
    assert rises == sorted(rises)
    assert rises[-1] > 0
    assert 4 * kept[-1] < kept[0]


def test_what_is_said_to_fit_into_memory_does() -> None:
    instance, _, evaluation, optimum = climbed()
    budget = budget_of(evaluation, optimum)
    rest = CostToGo(States.of(instance), evaluation, budget)
    rest.fill(500, budget // 4, Budget())
    memory = 2_000_000
    sets = rest.sets_within(memory)
    assert sets > 500
    tracemalloc.start()
    rest.fill(sets, budget // 4, Budget())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.5 * memory


def test_members_that_are_alike_are_counted_not_told_apart() -> None:
    """Each way to choose who of forty starts now would take for ever."""
    instance = instance_of(400, [(0, 10 - output, output) for output in (4, 5)] * 20)
    states = States.of(instance)
    knots = drawn_knots(random.Random(1), 8)
    prices = np.zeros((len(knots.times), len(states.holds)), dtype=np.int64)
    evaluation = evaluate(states, knots, states.all_starts(8), prices + 1, 1)
    rest = CostToGo(states, evaluation, 10**6)
    rest.fill(200, 10**6, Budget())
    assert rest.rise >= 0


def test_no_set_has_more_members_than_requests_can_be_active(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """States of the first one would fit three times; of the requests only two fit together.

    Not compiled, as then bounds of arrays are checked.
    """
    monkeypatch.setattr(cost_to_go, "add_configurations", unwrap(carried_sets.add_configurations))
    instance = instance_of(10, [(0, 0, 5), (0, 4, 1), (0, 4, 1)])
    states = States.of(instance)
    knots = drawn_knots(random.Random(1), 7)
    prices = np.ones((len(knots.times), len(states.holds)), dtype=np.int64)
    evaluation = evaluate(states, knots, states.all_starts(7), prices, 1)
    rest = CostToGo(states, evaluation, 20)
    rest.fill(1000, 20, Budget())
    literal = Literal(instance, evaluation, 20, told_apart=False)
    assert rest.rise == literal.rest(0, ())


def test_it_stops_when_asked() -> None:
    instance, _, evaluation, optimum = climbed()
    rest = CostToGo(States.of(instance), evaluation, budget_of(evaluation, optimum))
    rest.fill(1000, 1000, Budget())
    known = rest.rise
    left = iter(range(3))
    with pytest.raises(Stopped):
        rest.fill(1000, 10**6, Budget(until=lambda: next(left, None) is None))
    assert rest.rise == known


def test_fleets_and_large_tables_do_not_fit() -> None:
    small = instance_of(20, [(0, 1, 5)] * 5)
    assert CostToGo.fits(States.of(small))
    assert not CostToGo.fits(States.of(replace(small, workers=2)))
    assert not CostToGo.fits(States.of(instance_of(100_000, [(0, 1, 50)] * 50)))

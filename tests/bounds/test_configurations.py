"""Prices of configurations: copies, the evaluation in integers and its smooth stand-in."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import chain

import brute_force
import numpy as np
import pytest
from configuration_proofs import proof_of, proved
from effort import many
from literal import configurations as literal
from strategies import instance_of, plain, random_instances

from kvopt import Instance, bound, generate
from kvopt.bounds.configurations.ascent import Evaluator, Point
from kvopt.bounds.configurations.evaluation import denominator_for, evaluate, rounded
from kvopt.bounds.configurations.states import Knots, States
from kvopt.problem.arrays import Flags, Floats, Integers


def state_list(states: States) -> list[literal.State]:
    """Return (h, r) of each number."""
    return list(zip(states.holds.tolist(), states.remaining.tolist(), strict=True))


def states_by_peak(states: States) -> dict[int, list[int]]:
    """Return the columns of the states of each peak, from the last round to the first."""
    peaks: dict[int, list[int]] = {}
    for column, (held, left) in enumerate(state_list(states)):
        peaks.setdefault(held + left, []).append(column)
    return {
        peak: sorted(columns, key=lambda column: int(states.remaining[column]))
        for peak, columns in sorted(peaks.items())
    }


def drawn_knots(source: random.Random, last: int) -> Knots:
    """Return knots up to a last time, at any distances."""
    times = [t for t in range(2, last) if source.random() < source.choice((0.2, 0.5, 1))]
    return Knots(np.unique(np.array([1, *times, last])))


def drawn_starts(source: random.Random, states: States, last: int) -> Flags:
    """Return starts of which some are ruled out, but not all of any request."""
    starts = states.all_starts(last)
    share = source.choice((0.0, 0.0, 0.3, 0.7))
    for own in starts:
        allowed = np.flatnonzero(own)
        keep = source.choice(allowed.tolist())
        own[[k for k in allowed if k != keep and source.random() < share]] = False
    return starts


def drawn_prices(source: random.Random, states: States, knots: Knots, most: int) -> Integers:
    """Return integer prices, sparse or dense, mostly larger where more is held."""
    zeros = source.choice((0.0, 0.3, 0.8, 1.0))
    rows = [
        [
            0 if source.random() < zeros else source.randint(0, most) * source.choice((1, h))
            for h in states.holds.tolist()
        ]
        for _ in knots.times
    ]
    return np.array(rows, dtype=np.int64)


def windows_of(
    requests: Sequence[brute_force.Triple], starts: Flags, more: int = 0
) -> list[list[int]]:
    """Return the starts that are left; from the last time on the first ones that are allowed."""
    last = starts.shape[1] - 1
    found = []
    for (arrival, _, _), own in zip(requests, starts.tolist(), strict=True):
        late = max(arrival, last)
        window = [k for k in range(last) if own[k]]
        found.append(window + [late + delay for delay in range(more + 1) if own[last]])
    return found


def small(count: int, seed: int) -> Iterator[tuple[Instance, random.Random]]:
    source = random.Random(seed)
    for instance in random_instances(count, seed, least_requests=1, most_requests=4, most_memory=7):
        yield instance, source


# Copies.


class TestCopies:
    def test_states_are_those_that_requests_pass(self) -> None:
        for instance in random_instances(200, 1, least_requests=1, most_memory=15, most_output=9):
            memory, requests = plain(instance)
            states = States.of(instance)
            found = state_list(states)
            reached = {
                literal.state_of(request, 0, time)
                for request in requests
                for time in range(1, request[2] + 1)
            }
            assert len(set(found)) == len(found)
            assert reached == set(found)
            for (_, s, o), first in zip(requests, states.firsts.tolist(), strict=True):
                assert found[first : first + o] == [(s + o - r, r) for r in range(o)]
            assert np.array_equal(np.sort(states.remaining)[::-1], states.remaining[states.order])
            together = [sorted(s + 1 for _, s, _ in requests)[:n] for n in range(len(requests) + 1)]
            assert states.together == max(n for n, own in enumerate(together) if sum(own) <= memory)

    def test_copies_are_counted_over_the_times_between_the_neighbours(self) -> None:
        closed = 0
        for instance, source in small(many(150), 2):
            memory, requests = plain(instance)
            states, last = States.of(instance), source.randint(1, 14)
            knots, starts = drawn_knots(source, last), drawn_starts(source, states, last)
            closed += int((starts != states.all_starts(last)).any())
            windows = windows_of(requests, starts)
            copies = knots.copies(states, starts)
            around = [0, *knots.times.tolist(), last + 1]
            for row, before, after in zip(copies.tolist(), around, around[2:], strict=False):
                times = range(before + 1, after)
                counts = [literal.copies_in(requests, windows, time) for time in times]
                for (h, r), number in zip(state_list(states), row, strict=True):
                    most = max(count[h, r] for count in counts)
                    assert number == min(most, memory // (h + r))
        assert closed > many(35)

    def test_weights_are_shared_between_neighbours(self) -> None:
        source = random.Random(3)
        for _ in range(100):
            knots = drawn_knots(source, source.randint(1, 30))
            shares = [np.interp(np.arange(1, knots.last + 1), knots.times, row)
                      for row in np.eye(len(knots))]  # fmt: skip
            assert knots.weights() == pytest.approx(np.sum(shares, axis=1))
            assert Knots.every(1, knots.last).times.tolist() == list(range(1, knots.last + 1))
            prices = np.arange(2.0 * len(knots)).reshape(-1, 2)
            moved = knots.moved_to(Knots.every(1, knots.last), prices)
            assert moved[knots.times - 1] == pytest.approx(prices)


# The evaluation in integers.


class TestEvaluation:
    def test_it_is_what_the_checker_evaluates(self) -> None:
        """That is checked against the definition; starts that are ruled out are of searches."""
        for drawn, source in small(many(160), 10):
            memory, requests = plain(drawn)
            first = min(request.arrival for request in drawn)
            instance = instance_of(memory, [(a - first, s, o) for a, s, o in requests])
            states, last = States.of(instance), source.randint(1, 12)
            knots, scale = drawn_knots(source, last), source.choice((1, 3, 8))
            prices = drawn_prices(source, states, knots, scale)
            found = evaluate(states, knots, states.all_starts(last), prices, scale)
            peaks = states_by_peak(states)
            stage = {
                "denominator": scale,
                "peaks": [[peak, len(columns)] for peak, columns in peaks.items()],
                "times": knots.times.tolist(),
                "numerators": prices[:, list(chain.from_iterable(peaks.values()))].tolist(),
            }
            assert found.bound == proved(plain(instance), proof_of([stage]))

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(2))
    def test_no_schedule_made_of_allowed_starts_is_below_it(self, seed: int) -> None:
        source = random.Random(seed)
        tight = 0
        for instance in random_instances(200, 20 + seed, least_requests=1, most_memory=12):
            memory, requests = plain(instance)
            states, last = States.of(instance), source.randint(1, 14)
            knots, starts = drawn_knots(source, last), drawn_starts(source, states, last)
            prices = drawn_prices(source, states, knots, source.choice((1, 2, 5)))
            found = evaluate(states, knots, starts, prices, 6)
            whole = evaluate(states, knots, states.all_starts(last), prices, 6)
            assert whole.bound <= found.bound
            optimum = brute_force.optimum(memory, requests)
            assert whole.bound <= optimum
            tight += whole.bound == optimum
            windows = windows_of(requests, starts, more=sum(o for _, _, o in requests))
            best = brute_force.best_starts(memory, requests, windows)
            assert best is None or found.bound <= best[0]
        assert tight > 20

    def test_rounded_prices_are_not_negative_and_sums_fit(self) -> None:
        states = States.of(instance_of(10**6, [(10**6, 5, 10**5), (0, 9, 3)]))
        knots = Knots.every(1000, 2 * 10**6)
        prices = np.full((len(knots), 2), 1e6)
        scale = denominator_for(states, knots, prices)
        assert scale >= 1
        assert scale & (scale - 1) == 0
        latency = 10**6 + 2 * 10**6 + 10**5
        assert scale * (latency + 1e6 * 10**5) * (2 + knots.last) < 2**60
        values = rounded(np.array([[-1.0, 0.3], [0.999, 2.0]]), 4)
        assert values.tolist() == [[0, 1], [3, 8]]


# The smooth stand-in.


def drawn_evaluator(
    source: random.Random, instance: Instance, tau: float, threads: int = 1, completions: int = 0
) -> tuple[Evaluator, Floats]:
    """Return what steers, with all starts if it looks at few completions alone."""
    states, last = States.of(instance), source.randint(2, 12)
    knots, starts = drawn_knots(source, last), drawn_starts(source, states, last)
    prices = drawn_prices(source, states, knots, 3) / 4
    if completions:
        starts, copies = states.all_starts(last), knots.copies_by_arrival(states)
        return Evaluator(states, knots, starts, tau, threads, copies, completions), prices
    return Evaluator(states, knots, starts, tau, threads), prices


class TestSmoothing:
    @pytest.mark.parametrize(("tau", "completions"), [(0.2, 0), (1.0, 0), (0.5, 2), (0.5, 5)])
    def test_the_gradient_is_that_of_the_smooth_value(self, tau: float, completions: int) -> None:
        for instance, source in small(40, 41):
            evaluator, prices = drawn_evaluator(source, instance, tau, completions=completions)
            prices = prices - source.choice((0.0, 0.4))
            point = evaluator.begin(prices)
            for _ in range(6):
                direction = np.array(
                    [[source.uniform(-1, 1) for _ in row] for row in prices.tolist()]
                )
                step = 1e-5
                ahead = evaluator(prices + step * direction).smooth
                behind = evaluator(prices - step * direction).smooth
                slope = float((point.gradient * direction).sum())
                assert (ahead - behind) / (2 * step) == pytest.approx(slope, abs=1e-4)

    def test_a_point_that_floats_cannot_hold_is_no_place_to_climb_from(self) -> None:
        for instance, source in small(5, 44):
            evaluator, prices = drawn_evaluator(source, instance, 0.1)
            endless = np.full_like(prices, np.inf)
            for smooth in (-np.inf, 1.0):  # warnings are errors here
                assert not Point(prices, 1.0, smooth, endless).is_finite
            assert evaluator.begin(1e6 * prices).is_finite

    def test_smooth_values_are_below_hard_ones_and_come_closer_as_it_cools(self) -> None:
        for instance, source in small(60, 43):
            seed = source.randint(0, 10**6)
            gaps = []
            for tau in (3.0, 0.5, 0.1, 0.02):
                evaluator, prices = drawn_evaluator(random.Random(seed), instance, tau)
                point = evaluator(prices)
                assert math.isfinite(point.exact)
                if math.isfinite(point.smooth):
                    gaps.append(point.exact - point.smooth)
            assert min(gaps) >= -1e-6
            assert gaps == sorted(gaps, reverse=True)
            assert gaps[-1] < 3.0

    def test_threads_change_nothing(self) -> None:
        for instance, source in small(20, 44):
            seed = source.randint(0, 10**6)
            one, prices = drawn_evaluator(random.Random(seed), instance, 0.3, threads=1)
            two, _ = drawn_evaluator(random.Random(seed), instance, 0.3, threads=2)
            assert one(prices).smooth == pytest.approx(two(prices).smooth, abs=1e-9)
            assert one(prices).gradient == pytest.approx(two(prices).gradient, abs=1e-9)

    def test_the_hard_value_is_the_evaluation_in_floats(self) -> None:
        equal = 0
        for instance, source in small(150, 45):
            states, last = States.of(instance), source.randint(2, 12)
            knots, starts = drawn_knots(source, last), drawn_starts(source, states, last)
            scale = 2**20
            numerators = drawn_prices(source, states, knots, 3) * (scale // 4)
            hard = Evaluator(states, knots, starts, 0.1)(numerators / scale).exact
            found = evaluate(states, knots, starts, numerators, scale)
            lost = (last + sum(r.output for r in instance)) / scale
            # It may know that fewer can be active together than the evaluation takes as known.
            assert hard >= found.total / scale - lost - 1e-9
            if states.together == instance.memory // states.holds.min():
                assert hard == pytest.approx(found.total / scale, abs=lost + 1e-9)
                equal += 1
        assert equal > 35

    @pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e3, 1e12])
    @pytest.mark.parametrize("tau", [1e-6, 0.1, 1e4])
    def test_what_floats_cannot_hold_is_infinite_and_never_nonsense(
        self, size: float, tau: float
    ) -> None:
        for instance, source in small(25, 46):
            evaluator, prices = drawn_evaluator(source, instance, tau)
            prices = prices * size * source.choice((1, 1, -1))
            point = evaluator(prices)
            assert math.isfinite(point.exact)
            assert not math.isnan(point.smooth)
            if math.isfinite(point.smooth):
                assert np.isfinite(point.gradient).all()
                scale = max(1.0, abs(point.exact), size * prices.size)
                assert point.smooth <= point.exact + 1e-9 * scale
                # Sums of at most so many terms: tau times the logarithm of their number.
                starts = sum(math.log(30) for _ in instance)
                rest = evaluator.knots.weights().sum() * math.log(10**4)
                taus = float(evaluator.taus.max())
                assert point.smooth >= point.exact - taus * (starts + rest) - 1e-9 * scale


@pytest.mark.slow
def test_without_a_limit_the_method_ends_when_stages_hardly_gain() -> None:
    instance = generate("arrival-1", n=8, seed=1)
    ended = bound(instance, "configuration")
    assert ended.value == 253  # the optimum, and what all stages give
    assert ended.note is not None
    assert "configuration: ended after 6 stages" in ended.note
    assert bound(instance, "configuration", time_limit=1000).note is None

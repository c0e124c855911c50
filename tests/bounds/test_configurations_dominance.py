"""Labels that are dominated, and work that threads share, against the definition."""

from __future__ import annotations

from functools import partial
from itertools import chain

import numpy as np
import pytest

from kvopt import Instance, Request, Status, generate, solve
from kvopt.bounds.configurations import dominance
from kvopt.bounds.configurations.dominance import undominated
from kvopt.bounds.configurations.labels import DONE, WAITING, Layer, members_of
from kvopt.bounds.configurations.states import States
from kvopt.kernels.loop_calls import map_ranges


class TestSets:
    @pytest.mark.parametrize("count", [1, 7, 63, 64, 65, 128])
    def test_sets_of_any_size_are_kept_as_bits(self, count: int) -> None:
        draw = np.random.default_rng(count)
        rows = draw.integers(-1, 2, (20, count)).astype(np.int32)
        none = np.zeros(20, dtype=np.int64)
        for row, bits in zip(rows, Layer(rows, none, none, none).waiting(), strict=True):
            assert members_of(bits, count).tolist() == np.flatnonzero(row == WAITING).tolist()

    @pytest.mark.slow
    @pytest.mark.parametrize(("first", "last"), [(0, 1), (62, 63), (63, 64), (64, 69)])
    def test_those_with_other_waiting_requests_are_not_beaten(self, first: int, last: int) -> None:
        """Nothing else is active, so the cheapest of each set is left."""
        states = States.of(Instance(9, [Request(0, 1, 1)] * 70))
        rows = np.full((4, 70), DONE, dtype=np.int32)
        rows[[0, 1], first] = rows[[2, 3], last] = WAITING
        began, none = np.array([5, 6, 7, 8]), np.zeros(4, dtype=np.int64)
        left = undominated(Layer(rows, none, began, none), states, 5)
        assert left.began.tolist() == [5, 7]

    def test_seventy_requests_that_fit_by_twos_are_solved(self) -> None:
        """Seventy that fit two at a time: two complete at each of 35 rounds."""
        result = solve(Instance(4, [Request(0, 1, 1)] * 70), "exact", time_limit=60)
        assert result.schedule is not None
        assert result.status is Status.OPTIMAL
        assert result.objective == sum(2 * number for number in range(1, 36))


class TestOneMore:
    """A label that has started one more request may dominate another."""

    @pytest.mark.slow
    def test_the_dropped_are_those_of_the_definition(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(dominance, "map_ranges", partial(map_ranges, fewest=1))
        source = np.random.default_rng(7)
        beaten = 0
        for seed in range(30):
            instance = generate("arrival-2", 5, seed=seed)
            states, now = States.of(instance), int(source.integers(2, 12))
            ends = now + 1 + source.integers(0, 6, (40, 5))
            rows = np.where(source.random((40, 5)) < 0.7, DONE, ends)
            rows[source.random((40, 5)) < 0.4] = WAITING
            rows[rows == now + 1] = DONE
            none, began = np.zeros(40, dtype=np.int64), source.integers(0, 30, 40)
            layer = Layer(rows.astype(np.int16), none, began, np.arange(40))
            same = set(undominated(layer, states, now).parents.tolist())
            for threads in (1, 3):
                left = undominated(layer, states, now, threads, one_more=True).parents.tolist()
                expected = {
                    number
                    for number in same
                    if not any(
                        one_more_beats(instance, layer, other, number, now) for other in same
                    )
                }
                assert set(left) == expected
            beaten += len(same) - len(left)
        assert beaten > 20

    @pytest.mark.slow
    def test_a_difference_in_the_second_word_of_a_set_counts(self) -> None:
        """The request that makes the difference is in the second word of the set."""
        states = States.of(Instance(3, [Request(0, 1, 1)] * 70))
        rows = np.full((2, 70), DONE, dtype=np.int32)
        rows[:, 3] = rows[1, 68] = WAITING
        none = np.zeros(2, dtype=np.int64)
        for began, kept in (([16, 10], [16]), ([17, 10], [17, 10])):
            left = undominated(Layer(rows, none, np.array(began), none), states, 5, one_more=True)
            assert left.began.tolist() == kept


def one_more_beats(instance: Instance, layer: Layer, first: int, second: int, now: int) -> bool:
    """Claim 12, by its words, with w = now + 1."""
    fewer, more = (set(np.flatnonzero(layer.labels[k] == WAITING)) for k in (first, second))
    if not (fewer < more and len(more - fewer) == 1):
        return False
    (extra,) = more - fewer
    if layer.began[first] > layer.began[second] + max(
        now + 1, instance.requests[int(extra)].arrival
    ):
        return False

    def held(k: int, time: int) -> int:
        return sum(
            request.peak - (int(end) - time)
            for request, end in zip(instance, layer.labels[k], strict=True)
            if end >= time
        )

    return all(held(first, time) <= held(second, time) for time in range(now + 2, now + 12))


class TestParallel:
    @pytest.mark.parametrize("count", [0, 1, 9_999, 10_000, 10_001, 50_000])
    @pytest.mark.parametrize("threads", [1, 2, 3, 7])
    def test_parts_make_up_the_whole_in_order(self, count: int, threads: int) -> None:
        found = map_ranges(lambda begin, end: list(range(begin, end)), count, threads)
        assert [*chain.from_iterable(found)] == list(range(count))
        assert 1 <= len(found) <= threads

    @pytest.mark.slow
    def test_one_set_of_waiting_requests_stays_together(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However they are cut, what is beaten does not depend on the threads."""
        monkeypatch.setattr(dominance, "map_ranges", partial(map_ranges, fewest=1))
        instance = generate("arrival-1", 8, seed=1)
        states, source = States.of(instance), np.random.default_rng(5)
        for _ in range(20):
            ends = 8 + source.integers(0, 12, (60, 8))
            rows = np.where(source.random((60, 8)) < 0.9, DONE, ends).astype(np.int32)
            rows[:, source.integers(0, 8)] = WAITING
            none, began = np.zeros(60, dtype=np.int64), source.integers(0, 9, 60)
            layer = Layer(rows, none, began, none)
            alone = undominated(layer, states, 5)
            assert 0 < len(alone.began) < 60
            for threads in (2, 3, 5, 60):
                shared = undominated(layer, states, 5, threads)
                assert np.array_equal(shared.labels, alone.labels)

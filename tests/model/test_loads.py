"""Tokens held by many pieces of work at once, against one piece after the other."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvopt import Instance, Request, Schedule, run
from kvopt.model import schedule
from kvopt.model.loads import loads_at_ends
from kvopt.simulation import runs

PIECES = st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 30), st.integers(1, 9)), min_size=1)


def held(pieces: list[tuple[int, int, int]], time: int) -> int:
    return sum(p + time - k for p, k, length in pieces if k < time <= k + length)


@given(PIECES)
def test_it_is_the_sum_over_all_pieces(pieces: list[tuple[int, int, int]]) -> None:
    prompts, starts = [p for p, _, _ in pieces], [k for _, k, _ in pieces]
    ends = [k + length for _, k, length in pieces]
    times = sorted(set(ends))
    assert loads_at_ends(prompts, starts, ends) == (times, [held(pieces, t) for t in times])


def test_what_does_not_fit_into_64_bits_is_left_to_others() -> None:
    assert loads_at_ends([1, 2**52], [0, 0], [2**40, 2**61]) is None
    assert loads_at_ends([1, 1], [-(2**61), 0], [2, 2]) is None
    assert loads_at_ends([1, 2**52], [0, 2**53], [5, 2**54]) is not None


def test_checks_of_many_and_of_few_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    for _ in range(40):
        requests = [Request(0, rng.randint(0, 5), rng.randint(1, 5)) for _ in range(30)]
        instance = Instance(10, requests)
        shifted = [rng.randint(-1, 60) for _ in requests]
        lost = run(Instance(12, requests), "alpha-beta:alpha=0.1,beta=0.5")
        wrong = replace(lost, lost=(*lost.lost, *lost.lost[:1]))
        few = [Schedule(instance, shifted).check(), lost.peak_memory, wrong.violations()]
        with monkeypatch.context() as patch:
            patch.setattr(schedule, "LEAST", 1)
            patch.setattr(runs, "LEAST", 1)
            again = [replace(lost).peak_memory, replace(wrong).violations()]
            assert [Schedule(instance, shifted).check(), *again] == few

"""Tokens held by many pieces of work at once, against one piece after the other."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvopt import Instance, Request, Schedule, run
from kvopt.timetable import sweep
from kvopt.timetable.sweep import swept

Piece = tuple[int, int, int]

PIECES = st.lists(st.tuples(st.integers(-5, 30), st.integers(1, 9), st.integers(0, 9)), min_size=1)


def held(pieces: list[Piece], time: int) -> int:
    return sum(p + time - k for k, end, p in pieces if k < time <= end)


@given(PIECES)
def test_it_is_the_sum_over_all_pieces(drawn: list[Piece]) -> None:
    pieces = [(k, k + length, p) for k, length, p in drawn]
    columns = [list(column) for column in zip(*pieces, strict=True)]
    found = swept(*columns)
    assert found.times == sorted({time for k, end, _ in pieces for time in (k, end)})
    assert found.held == [held(pieces, time) for time in found.times]
    assert found.active == [sum(k < time <= end for k, end, _ in pieces) for time in found.times]


def test_nothing_holds_nothing() -> None:
    assert swept([], [], []).held == []


def test_what_does_not_fit_into_64_bits_is_left_to_integers_without_limit() -> None:
    assert swept([0, 0], [2**40, 2**61], [1, 2**52]).held == [0, 2**41 + 1 + 2**52, 2**61 + 2**52]
    assert swept([-(2**61), 0], [2, 2], [1, 1]).held == [0, 2**61 + 1, 2**61 + 6]
    assert swept([0], [2**70], [2**65]).held == [0, 2**70 + 2**65]


def test_checks_in_arrays_and_without_limit_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(1)
    for _ in range(40):
        requests = [Request(0, rng.randint(0, 5), rng.randint(1, 5)) for _ in range(30)]
        instance = Instance(10, requests)
        shifted = [rng.randint(-1, 60) for _ in requests]
        lost = run(Instance(12, requests), "alpha-beta:alpha=0.1,beta=0.5")
        wrong = replace(lost, lost=(*lost.lost, *lost.lost[:1]))
        few = [Schedule(instance, shifted).check(), lost.peak_memory, wrong.violations()]
        with monkeypatch.context() as patch:
            patch.setattr(sweep, "fits", lambda _: False)
            again = [replace(lost).peak_memory, replace(wrong).violations()]
            assert [Schedule(instance, shifted).check(), *again] == few

"""What each scope covers, and the sentence that says so."""

from __future__ import annotations

from itertools import product

import pytest

from kvopt.errors import InvalidInput
from kvopt.problem.scopes import Scope
from kvopt.verify.scopes import COVERED_BY

RUNS, RESTARTS, PAUSES, CHUNKS, BOTH = Scope


@pytest.mark.parametrize("scope", Scope)
def test_what_is_printed_can_be_read(scope: Scope) -> None:
    assert Scope.parse(str(scope)) is scope


def test_what_is_joined_has_no_order() -> None:
    assert Scope.parse("chunks+pauses") is BOTH


@pytest.mark.parametrize("text", ["", "pause", "RUNS", "runs+chunks", "pauses+pauses", None, 3])
def test_refused(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"^scope: must be one of runs, .*, pauses\+chunks, got"):
        Scope.parse(text)


def test_covers() -> None:
    """A bound for runs is one for restarts; all else is covered where it is allowed."""
    for scope, other in product(Scope, Scope):
        wanted = {
            RUNS: {RUNS, RESTARTS},
            RESTARTS: {RUNS, RESTARTS},
            PAUSES: {RUNS, RESTARTS, PAUSES},
            CHUNKS: {RUNS, RESTARTS, CHUNKS},
            BOTH: set(Scope),
        }
        assert scope.covers(other) == (other in wanted[scope])


def test_what_two_need_together_covers_both() -> None:
    for scope, other in product(Scope, Scope):
        joined = scope.joined(other)
        assert joined.covers(scope)
        assert joined.covers(other)
        assert joined is other.joined(scope)
        assert scope.joined(scope) is scope
    assert RUNS.joined(RESTARTS) is RESTARTS
    assert PAUSES.joined(CHUNKS) is BOTH


def test_sentences() -> None:
    """Runs and restarts say what was always said; others name what they cover."""
    assert RUNS.sentence == RESTARTS.sentence == Scope.RUNS.sentence
    assert {str(scope): scope.sentence for scope in Scope} == COVERED_BY
    assert len({scope.sentence for scope in Scope}) == len(Scope) - 1
    for scope in Scope:
        covered, _, beyond = scope.sentence.partition("not covered")
        for word, other in (("paus", PAUSES), ("in pieces", CHUNKS)):
            assert (word in covered) == scope.covers(other)
            assert (word in beyond) == (not scope.covers(other))

"""Searches inside another one: whose limits they keep."""

from __future__ import annotations

from kvopt import Instance, Request
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import Limits

ONE = Instance(3, [Request(0, 1, 2)])


def test_it_has_the_time_that_is_left_and_ends_with_the_whole() -> None:
    whole = Search(ONE, Limits(time_limit=50, seed=3, threads=1), checkable=True)
    inner = whole.inside(ONE)
    assert 0 < inner.remaining <= 50
    assert (inner.seed, inner.threads, inner.checkable) == (3, 1, True)
    assert not inner.should_stop()
    whole.interrupt()
    assert inner.should_stop()


def test_time_that_it_is_given_counts_though_the_whole_has_none() -> None:
    """Slower machines have a share of a limit of which the search before has none."""
    whole = Search(ONE, Limits(time_limit=0))
    inner = whole.inside(ONE, 5.0, stop=lambda _: False, checkable=True)
    assert inner.remaining > 1
    assert not inner.should_stop()

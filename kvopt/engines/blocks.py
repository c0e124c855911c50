"""Both sides of the answer where memory is given out in whole blocks.

Bounds: prices that count whole blocks, and every bound of the instance that counts the tokens of
all blocks, since blocks only restrict.  Schedules: those of the instance in which each request
holds ``B - 1`` tokens more (`Instance.inflated`), all of which fit into the blocks.  Between the
two lies a gap that no search closes: the best schedule of that instance need not be the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from kvopt.bounds.registry import bounds_for
from kvopt.engines.parts import Divided
from kvopt.engines.portfolio import run_watched
from kvopt.model.instance import Instance
from kvopt.model.pausing import PausedSchedule
from kvopt.model.scopes import Scope
from kvopt.search.incumbent import Search
from kvopt.search.params import share_of
from kvopt.search.paused import PausedSearch

_PRICED = ("lagrangian", "auto")
"""Methods that count whole blocks."""

AnySearch = TypeVar("AnySearch", bound=Search)


def bound_in_blocks(search: Search, method: str, scope: Scope, seconds: float = math.inf) -> None:
    """Offer what a method proves of schedules in whole blocks.

    Parameters
    ----------
    search
        Of an instance with a block size.
    method, scope
        As of `kvopt.bound`; `lagrangian` and `auto` count whole blocks, others their tokens.
    seconds
        For all of it.
    """
    end = search.seconds + min(search.remaining, seconds)
    work, pauses = bounds_for(scope).find(method), scope.covers(Scope.PAUSES)
    if method in _PRICED:
        from kvopt.bounds.blocks import offer_block_bound

        share = end - search.seconds if method == "lagrangian" else (end - search.seconds) / 2
        run_watched(
            search, "lagrangian in blocks",
            lambda: offer_block_bound(search, share, pauses=pauses),
        )  # fmt: skip
    if method == "lagrangian" and search.checked is not None or search.should_stop():
        return
    inner = _inside(search, Search, search.instance.in_tokens(), end - search.seconds)
    _work(search, inner, lambda: Divided(inner).work(lambda part, _: work(part)))
    if inner.checked is not None:
        search.offer_bound(inner.checked)


def schedules_in_blocks(
    search: Search, work: Callable[[Any], None], scope: Scope, seconds: float = math.inf
) -> PausedSchedule | None:
    """Let an engine look for schedules that fit into blocks, and offer the best one.

    Returns
    -------
    PausedSchedule | None
        Where requests may pause, what was found; then it is not offered.
    """
    instance, inflated = search.instance, search.instance.inflated()
    if not scope.covers(Scope.PAUSES):
        inner = _inside(search, Search, inflated, seconds)
        _work(search, inner, lambda: Divided(inner).work(lambda part, _: work(part)))
        if inner.schedule is not None:
            search.offer_starts(inner.schedule.starts, inner.found_by or inner.engine)
        return None
    paused = _inside(search, PausedSearch, inflated, seconds)
    _work(search, paused, lambda: work(paused))
    return None if paused.paused is None else PausedSchedule(instance, paused.paused.segments)


def _inside(
    search: Search, kind: type[AnySearch], instance: Instance, seconds: float
) -> AnySearch:
    """Return a search of another instance within the limits of one."""
    limit = min(search.remaining, seconds)
    inner = kind(
        instance,
        time_limit=None if limit == math.inf else max(limit, 0.0),
        seed=search.seed,
        threads=search.threads,
        stop=lambda _: search.should_stop(),
        checkable=search.checkable,
        ram=search.ram,
        params=search.params,
    )
    inner.engine = search.engine
    return inner


def _work(search: Search, inner: Search, work: Callable[[], None]) -> None:
    """Do work on a search inside another one, which takes its notes."""
    try:
        if not inner.should_stop():
            with inner.surviving():
                work()
    finally:
        search.take_notes(inner)


def solve_in_blocks(search: Search, work: Callable[[Any], None], scope: Scope) -> None:
    """Look for both sides: schedules first, so that there is one whatever the limit is."""
    if not len(search.instance):
        return
    found = schedules_in_blocks(search, work, scope, share_of(search.remaining, 0.5))
    if found is not None and isinstance(search, PausedSearch):
        search.offer_paused(found, "schedule of more tokens")
    if not search.should_stop():
        bound_in_blocks(search, "auto", scope)
    search.note(
        f"memory in whole blocks of {search.instance.block_size} tokens: schedules are those in "
        "which requests hold that many tokens more, less one"
    )

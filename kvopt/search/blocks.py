"""Both sides of the answer where memory is given out in whole blocks.

Bounds: prices that count whole blocks, and every bound of the instance that counts the tokens of
all blocks, since blocks only restrict.  Schedules: those of the instance in which each request
holds ``B - 1`` tokens more (`Instance.inflated`), all of which fit into the blocks.  Between the
two lies a gap, as the best schedule of that instance need not be the best one; only with pauses a
search of few requests closes it (`kvopt.search.pausing`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kvopt.bounds.registry import bounds_for
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.params import share_of
from kvopt.incumbent.result import Progress
from kvopt.problem.scopes import Scope
from kvopt.search.parts import Divided
from kvopt.search.portfolio import has_configurations, offer_volume, run_watched
from kvopt.timetable.schedule import Schedule

_BOUND_SHARE = 0.5
"""Share of the time left for bounds."""
_PRICED = ("lagrangian", "auto")
"""Methods that count whole blocks."""


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
    pauses = scope.covers(Scope.PAUSES)
    rest = _beside_prices(search, pauses) if method == "auto" else method
    if method in _PRICED:
        from kvopt.bounds.lagrangian import offer_lagrangian_bound

        share = (end - search.seconds) * (0.5 if rest == "configuration" else 1.0)
        run_watched(
            search,
            "lagrangian in blocks",
            lambda: offer_lagrangian_bound(search, share, pauses=pauses),
        )
    if search.checked is None and method == "lagrangian":
        _beside_prices(search, pauses)
        search.note("lagrangian: nothing within the limit; this is the volume bound")
    if rest in (None, "lagrangian") or search.should_stop():
        return
    work = bounds_for(scope).find(rest)

    def hear(_: Progress) -> None:
        if inner.checked is not None:
            search.offer_bound(inner.checked)

    inner = search.inside(search.instance.in_tokens(), end - search.seconds, observer=hear)
    _work(search, inner, lambda: Divided(inner).work(lambda part, _: work(part)))


def _beside_prices(search: Search, pauses: bool) -> str | None:
    """Offer volumes; return what to try beside prices: configurations, where they are few."""
    inner = search.inside(search.instance.in_tokens())
    offer_volume(inner)
    assert inner.checked is not None
    search.offer_bound(inner.checked)
    if pauses:
        return None
    offer_list_schedules(inner)
    return "configuration" if has_configurations(inner) else None


def schedules_in_blocks(search: Search, work: Callable[[Any], None]) -> None:
    """Let an engine look for schedules that fit into blocks, and offer the best one."""
    inflated = search.instance.inflated()

    def hear(_: Progress) -> None:
        if inner.schedule is not None:
            search.offer_starts(inner.schedule.starts, inner.found_by or inner.engine)

    if not search.problem.has_pauses:
        inner = search.inside(inflated, observer=hear)
        _work(search, inner, lambda: Divided(inner).work(lambda part, _: work(part)))
        return
    paused = search.inside(inflated)
    _work(search, paused, lambda: work(paused))
    if paused.best is not None:
        found = Schedule(search.instance, segments=paused.best.spans)
        search.offer(found, "schedule of more tokens")


def _work(search: Search, inner: Search, work: Callable[[], object]) -> None:
    """Do work on a search inside another one, which takes its notes."""
    try:
        if not inner.should_stop():
            with inner.surviving():
                work()
    finally:
        search.take_notes(inner)


def both_sides_in_blocks(search: Search, scope: Scope) -> None:
    """Offer a schedule within moments, then bounds in a share of the time."""
    inner = search.inside(search.instance.inflated())
    _work(search, inner, lambda: offer_list_schedules(inner))
    if inner.schedule is not None:
        search.offer_starts(inner.schedule.starts, inner.found_by or inner.engine)
    bound_in_blocks(search, "auto", scope, share_of(search.remaining, _BOUND_SHARE))


def solve_in_blocks(search: Search, work: Callable[[Any], None], scope: Scope) -> None:
    """Look for both sides; the engine's work is to find schedules."""
    if not len(search.instance):
        return
    both_sides_in_blocks(search, scope)
    if not search.should_stop():
        schedules_in_blocks(search, work)
    search.note(
        f"{search.instance.in_blocks}: schedules are those that fit if each request holds "
        f"{search.instance.block_size - 1} tokens more"
    )

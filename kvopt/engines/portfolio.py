"""A portfolio: what suits the size, ending with the best schedule and the best bound of all."""

from __future__ import annotations

import math

from kvopt.bounds.lp import offer_lp_bound
from kvopt.configurations.size import check_size
from kvopt.engines import cpsat, highs
from kvopt.engines.registry import register
from kvopt.errors import TooLarge
from kvopt.formulations.cpsat import LARGEST_PAIRS
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.search.incumbent import Search
from kvopt.search.proofs import Prices
from kvopt.search.threads import run_in_thread

_LP_COLUMNS = 100_000
"""Columns up to which the portfolio bounds by the LP; it takes ten seconds at most."""

_BOUND_SHARE = 0.25
"""Share of the time left that the first bound may take."""

_PROVED_AT_ONCE = 12
"""Requests up to which a proof mostly takes seconds, and finds the schedule on its way."""

_PROVABLE = 30
"""Requests up to which a proof is worth most of the time."""

_IMPROVED_SHARE = 0.3
"""Share of the time left for better schedules before a proof is tried."""


@register("auto")
def run(search: Search, *, presolve: bool = True) -> None:
    """Bound by configurations and search what they leave; where that is too large, by prices."""
    if search.schedule is None:
        offer_list_schedules(search)
    assert search.schedule is not None
    try:
        check_size(search.instance, search.schedule.makespan)
    except TooLarge:
        _run_large(search, presolve)
    else:
        from kvopt.engines import exact

        exact.run(search, presolve=presolve)
    if math.isfinite(search.remaining) and not search.should_stop():
        _improve(search)  # with the time that no engine could use


def _run_large(search: Search, presolve: bool) -> None:
    """Bound by the LP or by prices, then search for schedules as suits the size."""
    if search.schedule is not None and not _has_prices(search):
        _bound(search)
    if search.should_stop():
        return
    count = len(search.instance)
    if count > _PROVED_AT_ONCE:
        _improve(search, _IMPROVED_SHARE if count <= _PROVABLE else 1.0)
    if search.should_stop():
        return
    engine = cpsat if count * (count - 1) <= LARGEST_PAIRS else highs
    search.engine = engine.__name__.rpartition(".")[2]
    with search.surviving():
        engine.run(search, presolve=presolve)


def _improve(search: Search, share: float = 1.0) -> None:
    """Look for better schedules, for a share of the time."""
    from kvopt.heuristics import improve

    seconds = share * search.remaining
    # Neither compiling nor compiled loops notice signals: they are watched from here.
    with search.surviving("local search"):
        run_in_thread(search, lambda: improve(search, seconds), cancel=lambda: None)


def _has_prices(search: Search) -> bool:
    return search.checked is not None and isinstance(search.checked.proof, Prices)


def _bound(search: Search) -> None:
    seconds = _BOUND_SHARE * search.remaining
    try:
        offer_lp_bound(search, _LP_COLUMNS, seconds)
    except (TooLarge, MemoryError):
        from kvopt.bounds.lagrangian import offer_lagrangian_bound

        with search.surviving("lagrangian"):
            run_in_thread(
                search,
                lambda: offer_lagrangian_bound(search, time_limit=seconds),
                cancel=lambda: None,
            )

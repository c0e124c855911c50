"""What ``auto`` does with several workers, in rounds: both sides of the answer."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from kvopt.errors import unknown_name
from kvopt.formulations.cpsat import LARGEST_PAIRS
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.params import share_of
from kvopt.kernels.dependencies import load_cp_model
from kvopt.search.exact import fleets as fleet_search
from kvopt.search.meanwhile import solver_while_compiling
from kvopt.search.portfolio import bound_within, offer_volume, run_watched
from kvopt.search.registry import ENGINES

_LOGGER = logging.getLogger("kvopt")

NAMES = ("auto", "exact", "highs", "cpsat", "pyomo")
"""Engines that know more than one worker."""


def engine_for_fleets(name: str, work: Callable[[Search], None]) -> Callable[[Search], None]:
    """Return what an engine does with several workers, else raise."""
    if name not in NAMES:
        raise unknown_name(name, NAMES, "engine for several workers")
    if name == "auto":
        return run
    return fleet_search.run if name == "exact" else work


def begin(search: Search) -> None:
    """Offer a bound and a schedule within moments."""
    offer_volume(search)
    offer_list_schedules(search)


def run(search: Search, *, presolve: bool = True) -> None:
    """Search exhaustively what is small; else bound, improve, and let a solver prove."""
    params, count = search.params.portfolio, len(search.instance)
    if search.schedule is None:
        begin(search)
    with solver_while_compiling(search, presolve):
        if count <= fleet_search.MOST_REQUESTS:
            fleet_search.run(search, share_of(search.remaining, params.bound_share))
        if not search.should_stop():
            bound_within(search, share_of(search.remaining, params.bound_share))
        provable = count <= params.provable and count * (count - 1) <= LARGEST_PAIRS
        improve(search, share_of(search.remaining, params.improved_share if provable else 1.0))
        if provable and not search.should_stop():
            with search.surviving("cpsat"):
                load_cp_model()
                search.engine = "cpsat"
                ENGINES.find("cpsat")(search, presolve=presolve)
    if math.isfinite(search.remaining):
        improve(search)


def improve(search: Search, seconds: float = math.inf) -> None:
    """Look for better schedules, for so many seconds."""
    from kvopt.heuristics.fleets.searching import improve_fleet

    if search.should_stop():
        return
    _LOGGER.debug("stage: better schedules of all workers")
    seconds = min(search.remaining, seconds)
    run_watched(search, "local search", lambda: improve_fleet(search, seconds))

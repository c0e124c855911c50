"""The portfolio: which bound and which engine for which size, for `solve`, `bound`, `certify`.

All three work on one incumbent, in the same stages: both sides at once, bounds, and searches for
a better schedule and its proof.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress

from kvopt.bounds.coarse import has_large_requests
from kvopt.bounds.configurations.size import check_large, check_starts, is_quick
from kvopt.bounds.lp import QUICK_COLUMNS, offer_lp_bound
from kvopt.bounds.staircases import FEW_REQUESTS, offer_staircase_bound
from kvopt.bounds.volume import volume_bound
from kvopt.errors import TooLarge
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.incumbent.params import share_of
from kvopt.incumbent.proofs import Prices, SlotPrices, VolumeProof
from kvopt.problem.instance import Instance
from kvopt.search.meanwhile import prover, solver_while_compiling
from kvopt.search.registry import ENGINES, register
from kvopt.timetable.schedule import Schedule

_LOGGER = logging.getLogger("kvopt")

_CLIMBING_SHARE = 0.7
"""Share of the time of bounds by prices for the climb; the LP may take the rest."""
_BEFORE_SLOTS = 0.1
"""Share of that time for prices of tokens alone, where those of slots follow."""
_TOKENS_SHARE = 0.1
"""The same where prices of states, which say more than those of tokens, have the rest."""


_LEAST_GAIN, _LEAST_GAIN_OF_SLOTS = 0.0002, 0.0005
"""Share of the bound that a climb of prices must gain while its time doubles, to go on."""
_PROVED_AT_ONCE = 12
"""Requests up to which a solver proves at once and finds the schedule on its way."""


def both_sides(search: Search) -> Schedule | None:
    """Offer a bound and a schedule within moments; return what the usually best policy does."""
    offer_volume(search)
    if len(search.instance) <= FEW_REQUESTS:
        offer_staircase_bound(search)
    return offer_list_schedules(search)


def offer_volume(search: Search) -> None:
    """Offer the volume bound, which is there at once."""
    search.offer_checked(volume_bound(search.instance), "volume", VolumeProof())


def has_configurations(search: Search) -> bool:
    """Whether configurations are few enough to lay out all starts, for the exact engine.

    With more requests no search may end, and few knots with beams by their prices find more.
    """
    assert search.schedule is not None
    few = not has_many_configurations(search)
    return few and is_quick(search.instance, search.schedule.makespan)


def has_many_configurations(search: Search) -> bool:
    """Whether states are to be priced at few knots: requests are many, and the cache is small."""
    many = len(search.instance) > search.params.portfolio.exact_requests
    return many and _passes(check_large, search)


def _passes(check: Callable[[Instance, int], None], search: Search) -> bool:
    assert search.schedule is not None
    try:
        check(search.instance, search.schedule.makespan)
    except TooLarge:
        return False
    return True


def bound_within(search: Search, seconds: float = math.inf) -> None:
    """Bound by configurations or, where they are too many, by prices."""
    if has_configurations(search):
        climb_states(search, seconds)
    else:
        bound_by_prices(search, seconds)


def bound_by_prices(search: Search, seconds: float = math.inf) -> None:
    """Bound what has too many configurations to search, unless prices are known.

    Prices of tokens climb towards the best ones; the LP, where it is small, gives the last round
    or two.  In a small cache prices of states say far more, and few knots are enough for them.
    """
    known = search.checked is not None and isinstance(search.checked.proof, Prices | SlotPrices)
    if known or search.should_stop() or has_configurations(search):
        return
    end = search.seconds + seconds
    offer_staircase_bound(search)
    if has_many_configurations(search):
        climb(search, _TOKENS_SHARE * (end - search.seconds))
        climb_states(search, end - search.seconds, few_knots=True)
    elif not solve_lp(search, end - search.seconds, QUICK_COLUMNS):
        _climb_prices(search, _CLIMBING_SHARE * (end - search.seconds))
        solve_lp(search, end - search.seconds)


def _climb_prices(search: Search, seconds: float) -> None:
    """Let prices of tokens climb, or where many requests are large those of slots beside them."""
    if has_large_requests(search):
        end = search.seconds + seconds
        climb(search, _BEFORE_SLOTS * seconds)
        if climb_slots(search, end - search.seconds):
            return
        seconds = end - search.seconds
    climb(search, seconds)


def solve_lp(search: Search, seconds: float = math.inf, columns: int | None = None) -> bool:
    """Bound by the LP, where it is small; return whether it was solved."""
    if search.should_stop():
        return False
    _LOGGER.debug("stage: LP bound")
    columns = search.params.portfolio.lp_columns if columns is None else columns
    with search.surviving("lp"), suppress(TooLarge):
        return offer_lp_bound(search, columns, max(seconds, 0.0)) is not None
    return False


def climb(search: Search, seconds: float = math.inf, *, pauses: bool = False) -> None:
    """Let prices rise towards the LP bound, with ``pauses`` that of schedules with pauses.

    Where only some of the time is for them, they end once they gain little.
    """
    from kvopt.bounds.lagrangian import offer_lagrangian_bound

    _LOGGER.debug("stage: bound by prices")
    gain = 0.0 if seconds == math.inf else _LEAST_GAIN
    run_watched(
        search,
        "lagrangian",
        lambda: offer_lagrangian_bound(search, seconds, gain, pauses=pauses),
    )


def climb_slots(search: Search, seconds: float = math.inf) -> bool:
    """Let prices of tokens and slots rise; return whether slots are worth anything.

    Where only some of the time is for them, they end once they gain little.
    """
    from kvopt.bounds.slots import offer_slot_bound

    _LOGGER.debug("stage: bound by prices of slots")
    found: list[bool] = []
    gain = 0.0 if seconds == math.inf else _LEAST_GAIN_OF_SLOTS
    run_watched(search, "slots", lambda: found.append(offer_slot_bound(search, seconds, gain)))
    return any(found)


def climb_states(search: Search, seconds: float = math.inf, *, few_knots: bool = False) -> None:
    """Let prices of states rise towards the configuration bound."""
    from kvopt.bounds.configurations.bound import offer_configuration_bound

    _LOGGER.debug("stage: bound by configurations")
    run_watched(
        search,
        "configuration",
        lambda: offer_configuration_bound(search, seconds, few_knots=few_knots),
    )


def run_watched(search: Search, name: str, work: Callable[[], None]) -> None:
    """Do compiled work: neither compiling nor its loops notice signals, which are watched here."""
    with search.surviving(name):
        run_in_thread(search, work)


@register("auto")
def run(search: Search, *, presolve: bool = True) -> None:
    """Bound by configurations and search what they leave; where that is too large, by prices."""
    if search.schedule is None:
        offer_list_schedules(search)
    with solver_while_compiling(search, presolve):
        if has_configurations(search):
            _LOGGER.debug("stage: exact engine, by configurations")
            ENGINES.find("exact")(search, presolve=presolve)
        else:
            bound_by_prices(search, share_of(search.remaining, search.params.portfolio.bound_share))
            search_tokens(search)
            _search_large(search, presolve)
    if math.isfinite(search.remaining) and not search.should_stop():
        improve(search)  # with the time that no engine could use


def search_tokens(search: Search) -> None:
    """Search what prices of tokens leave of some dozens of requests, with a share of the time."""
    few = len(search.instance) <= search.params.portfolio.exact_requests
    if search.should_stop() or not (few and _passes(check_starts, search)):
        return
    from kvopt.search.exact.token_search import search_by_tokens  # loads numba

    _LOGGER.debug("stage: search under prices of tokens")
    search.engine = "exact"
    seconds = share_of(search.remaining, search.params.portfolio.tokens_share)
    run_watched(search, "exact", lambda: search_by_tokens(search, seconds))


def _search_large(search: Search, presolve: bool) -> None:
    """Search for schedules as suits the size, then let a solver search for a proof."""
    params, count = search.params.portfolio, len(search.instance)
    if search.should_stop():
        return
    if count > _PROVED_AT_ONCE:
        share = params.improved_share if count <= params.provable else 1.0
        improve(search, share_of(search.remaining, share))
    if search.should_stop():
        return
    search.engine = prover(search)
    _LOGGER.debug("stage: %s, for a proof", search.engine)
    with search.surviving():
        ENGINES.find(search.engine)(search, presolve=presolve)


def improve(search: Search, seconds: float = math.inf) -> None:
    """Look for better schedules, for so many seconds."""
    from kvopt.heuristics import improve as improved

    _LOGGER.debug("stage: better schedules")
    seconds = min(search.remaining, seconds)
    run_watched(search, "local search", lambda: improved(search, seconds))

"""What `solve` does where requests may pause, in rounds: both sides of the answer.

Volumes and prices bound from below, part by part between idle gaps.  Orders and annealing give
schedules, and where few requests are left with a gap an exhaustive search over rounds closes it.
"""

from __future__ import annotations

import math

from kvopt.bounds.registry import PAUSED_BOUNDS
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import Limits
from kvopt.incumbent.params import share_of
from kvopt.incumbent.proofs import Prices, VolumeProof
from kvopt.incumbent.result import Progress, SolveResult
from kvopt.kernels.dependencies import versions
from kvopt.problem.instance import Instance
from kvopt.problem.problem import Problem
from kvopt.problem.scopes import Scope
from kvopt.search.blocks import solve_in_blocks
from kvopt.search.parts import Divided
from kvopt.search.portfolio import improve, offer_volume, run_watched
from kvopt.search.registry import PAUSED_ENGINES, PausedEngine
from kvopt.timetable.schedule import Schedule

MOST_SEARCHED = 12
"""Requests up to which all schedules are searched: a round has up to 2^12 sets of them."""
_ORDER_SHARE, _BOUND_SHARE = 0.4, 0.3
"""Shares of the time left for orders, and then for prices."""
_IMPROVED_SHARE = 0.5
"""Share of what is left at the end for schedules without pauses; orders have the rest."""
_FEW_ORDERS, _GROUP_SHARE = 0.05, 0.3
"""Shares where all schedules can be searched: for orders, which the search betters itself, and for
prices of groups.
"""


def solve_with_pauses(
    instance: Instance,
    engine: str,
    work: PausedEngine,
    start: Schedule | None,
    limits: Limits,
    *,
    quick_start: bool,
    checkable: bool,
) -> SolveResult:
    """Look for a schedule of least total latency where requests may pause, and for a proof.

    Parameters
    ----------
    instance
        The problem.
    engine, work
        The engine and its name.
    start
        A feasible schedule to begin from.
    limits, checkable
        As of `Search`.
    quick_start
        Begin from list schedules and the volume bound.
    """
    search = Search(Problem(instance, scope=Scope.PAUSES), limits, checkable=checkable)
    search.versions = versions()
    with signals_interrupt(search):
        if start is not None:
            search.offer(start, "given schedule")
        if not len(instance):
            search.offer(Schedule(instance), "empty instance")
            search.offer_checked(0, "empty instance", VolumeProof())
        elif quick_start and instance.block_size == 1:
            offer_volume(search)
            offer_list_schedules(search)
        search.engine = engine
        if instance.block_size > 1:
            solve_in_blocks(search, work, Scope.PAUSES)
            search_few(search)
        elif not search.proved:
            with search.surviving():
                work(search)
    return search.result(engine)


@PAUSED_ENGINES.register("auto")
def run(search: Search) -> None:
    """Search orders, let prices rise, then search all schedules of few requests."""
    few = len(search.instance) <= MOST_SEARCHED
    search_with_pauses(search, share_of(search.remaining, _FEW_ORDERS if few else _ORDER_SHARE))
    bound_with_pauses(search, share_of(search.remaining, _BOUND_SHARE))
    search_few(search)
    if math.isfinite(search.remaining) and not search.should_stop():  # what no search could use
        _improve_without_pauses(search, share_of(search.remaining, _IMPROVED_SHARE))
        search_with_pauses(search, search.remaining)


def search_with_pauses(search: Search, seconds: float) -> None:
    """Find schedules by orders; the first one is there whatever the limit is."""
    from kvopt.heuristics.paused_orders import search_paused_orders  # it loads numba

    def work() -> None:
        found = search_paused_orders(
            search.instance, seconds, seed=search.seed, should_stop=search.should_stop
        )
        search.offer(found, "orders with pauses")

    run_watched(search, "orders with pauses", work)


def bound_with_pauses(search: Search, seconds: float) -> None:
    """Let prices rise part by part, unless they did before."""
    if search.should_stop() or search.bounded_by not in (None, "volume"):
        return
    bound = PAUSED_BOUNDS.find("auto")
    Divided(search).work(lambda part, _: bound(part), seconds)


def _improve_without_pauses(search: Search, seconds: float) -> None:
    """Look for better schedules without pauses, which are schedules with pauses too."""

    def hear(_: Progress) -> None:
        if inner.schedule is not None:
            search.offer(inner.schedule, inner.found_by or inner.engine)

    inner = search.inside(Problem(search.instance), seconds, observer=hear)
    if search.schedule is not None:
        inner.offer(search.schedule, search.found_by or inner.engine)
    Divided(inner).work(improve)
    search.take_notes(inner)


def search_few(search: Search) -> None:
    """Search all schedules that are better than the one at hand, where requests are few."""
    if search.should_stop() or not 0 < len(search.instance) <= MOST_SEARCHED:
        return
    from kvopt.search.exact.paused_groups import improved_prices  # they load numba
    from kvopt.search.exact.paused_layers import search_layers

    proof = None if search.checked is None else search.checked.proof
    prices = proof if isinstance(proof, Prices) else Prices((), 1)
    upper = search.objective
    if upper is None:  # there is one with less latency than this
        upper = len(search.instance) * (search.instance.last_arrival + search.instance.total_output)

    def work() -> None:
        left = search.remaining - share_of(search.remaining, _GROUP_SHARE)
        better, value = improved_prices(
            search.instance, prices, upper, lambda: search.should_stop() or search.remaining < left
        )
        search.offer_claimed(value, "prices of groups")
        found = search_layers(search.instance, better, upper, search.should_stop)
        if found is None:
            return
        if found.schedule is not None:
            search.offer(found.schedule, "exhaustive search")
        search.offer_claimed(
            upper if found.schedule is None else found.schedule.objective, "exhaustive search"
        )

    run_watched(search, search.engine, work)

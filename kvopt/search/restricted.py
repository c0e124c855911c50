"""Problems with weights, a limit of active requests, or shared prefixes.

They are bounded by the problem of the papers: a limit only restricts, and every latency is at least
the output, so each weight above 1 adds so many outputs.  With shared prefixes each request pays its
share (`kvopt.bounds.shares`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from kvopt.bounds.shares import shared_out
from kvopt.errors import PolicyFault, Stopped
from kvopt.heuristics.list_schedules import one_after_another
from kvopt.heuristics.seconds.runs import policies_for
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.incumbent.shares import SHARING_BEAMS, share_of
from kvopt.kernels.clock import wall_time
from kvopt.search.engines import engine_of
from kvopt.search.meanwhile import prover
from kvopt.simulate.running import run

ENGINES_THAT_KNOW = ("auto", "cpsat", "highs", "pyomo")
"""Engines that support weights, limits and shared prefixes."""
_MOMENT = 0.5
"""Least seconds of schedulers: under a short limit their share is too little for a first run."""


def bound_by_relaxation(search: Search, seconds: float, work: Callable[[Search], None]) -> None:
    """Run work on the problem of the papers, and offer its bound."""
    instance = search.instance
    sure = sum(request.weight * request.output for request in instance)
    plain, more = shared_out(instance).without_extras(), sure - instance.total_output
    search.work_inside(plain, work, seconds, takes=["bounds"], more=more)


def bound_by_shared_prices(search: Search, seconds: float) -> None:
    """Offer the bound of prices of tokens and of shares that change over time."""
    from kvopt.bounds.shared_prices import offer_shared_prices  # loads numba

    with search.surviving("prices of shared blocks"):
        run_in_thread(search, lambda: offer_shared_prices(search, seconds))


def is_apart(search: Search) -> bool:
    """Whether it is more than the problem of the papers behind a common prefix."""
    return bool(search.instance.without_common_prefix().extras)


def shares_prefixes(search: Search) -> bool:
    """Whether prefixes are its only further fields."""
    return search.instance.extras == ("prefix",)


def without_common_prefix(search: Search, work: Callable[[Search], object]) -> None:
    """Run work on the problem of the papers that has the same schedules."""
    plain, everything = search.instance.without_common_prefix(), ("schedules", "bounds", "claims")
    search.work_inside(plain, work, takes=everything, known=True)


def offer_one_after_another(search: Search, _: float = 0.0) -> None:
    """Offer a schedule within moments, for any restriction or sharing."""
    search.offer(one_after_another(search.instance), "one after another")


def offer_policies(search: Search, seconds: float = inf) -> None:
    """Offer the runs of schedulers that end within so many seconds, or within moments."""
    end = wall_time() + max(seconds, _MOMENT)

    def is_late() -> bool:
        return wall_time() >= end or search.should_stop()

    for name in policies_for(search.instance):
        try:
            found = run(search.instance, name, should_stop=is_late)
        except PolicyFault as fault:
            search.note(f"{name}: {fault}")
            continue
        except Stopped:
            return
        if found.schedule is not None:
            search.offer(found.schedule, f"policy {name}")


def improve_sharing(search: Search, seconds: float) -> None:
    """Search better schedules in which active requests share their nodes: beams, then moves."""
    from kvopt.heuristics.reinsertion import search_reinsertions  # they load numba
    from kvopt.heuristics.trace_beams import search_traces

    def work() -> None:
        end = wall_time() + min(seconds, search.remaining)
        search_traces(search, share_of(end - wall_time(), SHARING_BEAMS), search.seed)
        search_reinsertions(search, end - wall_time(), search.seed)

    with search.surviving("beams"):
        run_in_thread(search, work)


def prove(search: Search, _: float = 0.0) -> None:
    """Search the best schedule with a solver."""
    engine_of(prover(search))(search)

"""Problems in rounds with several fields that no search knows together.

Wider problems give bounds (`kvopt.bounds.relaxations`): a limit of active requests only restricts,
and so on.  Schedulers obey all fields, and narrower problems give schedules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kvopt.bounds.relaxations import chains, price_chain, relaxed_by
from kvopt.errors import PolicyFault, Stopped
from kvopt.heuristics.seconds.worker_moves import policies_for
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.incumbent.shares import SHARING_BEAMS
from kvopt.kernels.budget import Budget
from kvopt.problem.scopes import Scope
from kvopt.search.stages import climb
from kvopt.simulate.run_policy import run

ENGINES_THAT_KNOW = ("auto", "cpsat", "highs", "pyomo")
"""Engines that support weights, limits and shared prefixes."""
_MOMENT = 0.5
"""Least seconds of schedulers: under a short limit their share is too little for a first run."""


def bound_by_relaxation(search: Search, budget: Budget, work: Callable[[Search], None]) -> None:
    """Run work on each wider problem with bounds, and offer these."""
    ways = chains(search.problem)
    for left, names in zip(range(len(ways), 0, -1), ways, strict=True):
        wider, more = relaxed_by(search.problem, names)
        search.work_inside(
            replace(wider, slo=None),
            work,
            budget.part(1 / left),
            takes=["bounds"],
            more=more,
            relaxations=names,
        )


def has_prices(search: Search) -> bool:
    """Whether prices of tokens know more of it than other bounds: weights, or blocks."""
    return price_chain(search.problem) not in chains(search.problem)


def bound_by_prices(search: Search, budget: Budget) -> None:
    """Offer the bound of prices of tokens, which know weights and blocks."""
    names = price_chain(search.problem)
    wider, more = relaxed_by(search.problem, names)
    search.work_inside(
        replace(wider, slo=None),
        lambda inner: climb(inner, inner.budget.part(most=budget.left)),
        takes=["bounds"],
        more=more,
        relaxations=names,
    )


def search_narrower(search: Search, budget: Budget, work: Callable[[Search], None]) -> None:
    """Run work on a narrower problem, whose schedules are those of this one too.

    It has no pauses.  Instead of whole blocks prompts are longer, see `Instance.inflated`.
    """
    problem = search.problem
    scope = Scope.SHARING if problem.scope.covers(Scope.SHARING) else Scope.RUNS
    narrower = replace(problem, instance=search.instance.inflated(), scope=scope, slo=None)
    search.work_inside(narrower, work, budget, takes=["schedules"])


def is_wide(search: Search) -> bool:
    """Whether it has pauses, or memory in whole blocks, beside other fields."""
    return search.problem.has_pauses or search.problem.in_blocks


def bound_by_shared_prices(search: Search, budget: Budget) -> None:
    """Offer the bound of prices of tokens and of shares that change over time."""
    from kvopt.bounds.shared_prices import offer_shared_prices  # loads numba

    with search.surviving("prices of shared blocks"):
        run_in_thread(search, lambda: offer_shared_prices(search, budget))


def shares_prefixes(search: Search) -> bool:
    """Whether prefixes are its only further fields."""
    return search.instance.extras == ("prefix",) and not is_wide(search)


def offer_policies(search: Search, budget: Budget) -> None:
    """Offer the runs of schedulers that end within so many seconds, or within moments."""
    part = search.budget.part(most=max(budget.left, _MOMENT))
    for name in policies_for(search.instance):
        try:
            ended = run(search.instance, name, should_stop=part.over)
        except PolicyFault as fault:
            search.note(f"{name}: {fault}")
            continue
        except Stopped:
            return
        if ended.schedule is not None:
            search.offer(ended.schedule, f"policy {name}")


def improve_sharing(search: Search, budget: Budget) -> None:
    """Search better schedules in which active requests share their nodes: beams, then moves."""
    from kvopt.heuristics.reinsertion import search_reinsertions  # they load numba
    from kvopt.heuristics.trace_beams import search_traces

    def work() -> None:
        search_traces(search, budget.part(SHARING_BEAMS), search.limits.seed)
        search_reinsertions(search, budget, search.limits.seed)

    with search.surviving("beams"):
        run_in_thread(search, work)

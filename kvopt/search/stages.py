"""Stages of the plan: each offers to one incumbent, and knows nothing of the others.

Every function takes a search and its budget.  Only `kvopt.search.plan` decides when and
how long it works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from kvopt.bounds.configurations.size import check_large, check_size, is_quick
from kvopt.bounds.lp import lp_bounds
from kvopt.bounds.relaxations import chain, relaxed_by
from kvopt.bounds.seconds import SecondsBound, seconds_bound
from kvopt.bounds.shared_rounds_ascent import shared_rounds_bound
from kvopt.bounds.staircases import best_staircases
from kvopt.bounds.volume import volume_bound
from kvopt.errors import PolicyFault, Stopped, TooLarge
from kvopt.heuristics.list_schedules import offer_list_schedules, one_after_another
from kvopt.heuristics.seconds.worker_moves import offer_one_by_one, policies_for
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.incumbent.proofs import CheckedBound, VolumeProof, lines_of, prices_of, token_prices
from kvopt.kernels import compiler
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance import Instance
from kvopt.problem.scopes import Scope
from kvopt.search.engines import engine_of
from kvopt.search.meanwhile import prover
from kvopt.simulate.run_policy import run
from kvopt.timetable.eager_schedule import eager_schedule

if TYPE_CHECKING:
    from kvopt.bounds.configurations.dual_ascent import DualAscent

_SHARING_BEAMS = 0.75
"""Share of the time: beams over a whole trace with shared prefixes; local search has the rest."""
_MIN_GAIN, _MIN_GAIN_OF_SLOTS = 0.0002, 0.0005
"""Share of the bound that an ascent of prices must gain while its time doubles, to continue."""

_PRICED_REQUESTS = 80
"""Requests up to which the exact engine prices all starts; more take longer than it has."""
_BRANCHED_REQUESTS = 200
"""Requests up to which cases are searched; with more the program of a case takes too long."""
_LP_COLUMNS = 40_000
"""Columns up to which an LP ends the ascent of prices; more cost time and memory."""
_SHARES = 0.25
"""Share of the time of bounds in seconds that shares of the machine may take."""
_LARGE_SHARE = 0.1
"""Share of the work in requests of more than half the memory from which on slots are priced."""
_MOMENT = 0.5
"""Seconds that schedulers have at least: a share of a short limit is too little for a run."""
FINAL_BOUND = "the bound in seconds is final: more time can only improve the schedule"
"""Remark if no bound has anything left to do."""

# ---- sizes ------------------------------------------------------------------------------------


def has_configurations(search: Search) -> bool:
    """Whether configurations are few enough for tables of all starts, for the exact engine.

    With more requests no search can end; few knots prove more.
    """
    assert search.schedule is not None
    few = not has_many_configurations(search)
    return few and is_quick(search.instance.in_tokens(), search.schedule.makespan)


def has_many_configurations(search: Search) -> bool:
    """Whether states get prices at few knots: for many requests in a small cache."""
    many = len(search.instance) > _PRICED_REQUESTS
    return many and _passes(check_large, search)


def has_few_cases(search: Search) -> bool:
    """Whether cases of what is active together may be searched: up to some hundred requests."""
    return len(search.instance) <= _BRANCHED_REQUESTS


def _passes(check: Callable[[Instance, int], None], search: Search) -> bool:
    assert search.schedule is not None
    try:
        check(search.instance, search.schedule.makespan)
    except TooLarge:
        return False
    return True


def has_large_requests(search: Search) -> bool:
    """Whether requests that need more than half of the memory make a large share of the work."""
    instance = search.instance
    large = sum(r.volume for r in instance if 2 * r.peak > instance.memory)
    return large > _LARGE_SHARE * sum(r.volume for r in instance)


# ---- immediate results ------------------------------------------------------------------------


def offer_volume(search: Search, _: Budget | None = None) -> None:
    """Offer the bound of volumes, which know a limit of active requests, and count tokens."""
    names = chain(search.problem, "volume")
    wider, more = relaxed_by(search.problem, names)
    search.offer_checked(volume_bound(wider.instance) + more, "volume", VolumeProof(), names)


def offer_staircases(search: Search, _: Budget | None = None) -> None:
    """Offer the bound by staircases."""
    if (bound := best_staircases(search.instance, search.budget)) is not None:
        search.offer_bound(bound)


def offer_lists(search: Search, _: Budget | None = None) -> None:
    """Offer list schedules, for blocks with longer prompts."""
    if search.problem.in_blocks:
        as_longer_prompts(search, offer_list_schedules)
    else:
        offer_list_schedules(search)


def offer_one_after_another(search: Search, _: Budget | None = None) -> None:
    """Offer a schedule within moments, for any restriction or sharing."""
    if search.problem.in_seconds:
        offer_one_by_one(search)
    else:
        search.offer(one_after_another(search.instance), "one after another")


def offer_eager(search: Search, _: Budget | None = None) -> None:
    """Offer the one eager schedule, if the cache never makes a request wait."""
    schedule = eager_schedule(search.problem)
    if schedule is not None:
        search.eager = schedule.objective
        search.offer(schedule, "eager")


# ---- bounds -----------------------------------------------------------------------------------


def ascend(search: Search, budget: Budget, min_gain: float = _MIN_GAIN) -> None:
    """Ascend with prices towards the LP bound of the scope, for blocks with prices of whole blocks.

    If they have only a share of the time, they end once they gain little.
    """
    from kvopt.bounds.lagrangian import lagrangian_bounds

    problem = search.problem
    gain = min_gain if budget.ends_before(search.granted) and not problem.in_blocks else 0.0
    bounds = lagrangian_bounds(problem, budget, search.limits, gain, search.budget)
    offer_all(search, "lagrangian", bounds)


def ascend_slots(search: Search, budget: Budget) -> bool:
    """Ascend with prices of tokens and slots; return whether slots gain.

    If they have only a share of the time, they end once they gain little.
    """
    from kvopt.bounds.slots import slot_bounds

    if (schedule := search.schedule) is None:
        return False
    gain = _MIN_GAIN_OF_SLOTS if budget.ends_before(search.granted) else 0.0
    bounds = slot_bounds(search.instance, schedule, budget, search.limits, gain, search.budget)
    return offer_all(search, "slots", bounds)


def ascend_states(
    search: Search, budget: Budget, *, few_knots: bool = False, min_gain: float = 0.0
) -> None:
    """Ascend with prices of states towards the configuration bound.

    It ends with a note when two stages together add less than that share of the bound.  If there
    are too many starts, prices have few knots.
    """
    few_knots = few_knots or not _passes(check_size, search)

    def work() -> None:
        values: list[int] = []
        for _ in states_priced(search, budget, few_knots=few_knots):
            assert search.checked is not None
            values.append(search.checked.value)
            if len(values) > 2 and values[-1] - values[-3] < min_gain * values[-1]:
                search.note(
                    f"configuration: ended after {len(values)} stages, since two of them together "
                    f"raised the bound by less than {min_gain:.1%}; with a time limit it goes on"
                )
                return

    run_watched(search, "configuration", work)


def states_priced(
    search: Search,
    budget: Budget,
    *,
    few_knots: bool = False,
    fixes: bool = True,
    patience: float = 1.0,
) -> Iterator[DualAscent]:
    """Offer the bounds of a dual ascent; yield it after each one that leaves something to prove."""
    from kvopt.bounds.configurations.dual_ascent import DualAscent  # loads numba

    def target() -> int:
        assert search.schedule is not None
        return search.schedule.objective

    assert search.schedule is not None
    makespan, threads = search.schedule.makespan, search.limits.threads
    ascent = DualAscent(search.instance, makespan, threads, budget, few_knots=few_knots)
    for bound in ascent.bounds(target, fixes=fixes, patience=patience):
        search.offer_bound(bound)
        if not search.budget.over():
            yield ascent


def solve_lp(search: Search, budget: Budget, columns: int = _LP_COLUMNS) -> bool:
    """Bound by the LP, if it has no more columns; return whether it was solved."""
    bounds = lp_bounds(search.instance, budget, search.limits, columns)
    with search.timing("solve"):
        return offer_all(search, "lp", _if_small(bounds)) and not budget.over()


def _if_small(bounds: Iterator[CheckedBound]) -> Iterator[CheckedBound]:
    with suppress(TooLarge):
        yield from bounds


def bound_by_wider(
    search: Search,
    names: tuple[str, ...],
    work: Callable[[Search], object],
    budget: Budget | None = None,
) -> None:
    """Offer the bounds that work finds for the wider problem of some relaxations."""
    wider, more = relaxed_by(search.problem, names)
    search.work_inside(
        replace(wider, slo=None), work, budget, takes=["bounds"], more=more, relaxations=names
    )


def ascend_states_of_tokens(search: Search, budget: Budget) -> None:
    """Ascend with prices of states that count the tokens of all blocks."""

    def work(inner: Search) -> None:
        offer_list_schedules(inner)
        ascend_states(inner, inner.budget)

    bound_by_wider(search, ("tokens",), work, budget)


def has_prices(search: Search) -> bool:
    """Whether prices of tokens know more of it than other bounds: weights, or blocks."""
    return chain(search.problem, "prices") != chain(search.problem)


def bound_by_prices(search: Search, budget: Budget) -> None:
    """Offer the bound of prices of tokens, which know weights and blocks."""
    bound_by_wider(
        search,
        chain(search.problem, "prices"),
        lambda inner: ascend(inner, inner.budget.part(most=budget.left)),
    )


def bound_by_shared_prices(search: Search, budget: Budget) -> None:
    """Offer the bound of prices of tokens and of shares that change over time."""
    from kvopt.bounds.shared_prices import shared_price_bounds  # loads numba

    bounds = shared_price_bounds(search.instance, budget, search.limits)
    offer_all(search, "prices of shared blocks", bounds)


def bound_in_seconds(search: Search, budget: Budget) -> None:
    """Bound by shares of the machine, then by prices of rounds that active requests share.

    The first step of shares is completed under any limit: nothing else is sure to give a bound.
    """
    rounds = partial(shared_rounds_bound, threads=search.limits.threads)
    ended = _offer_in_seconds(search, "shares", seconds_bound, budget.part(_SHARES))
    ended &= budget.over() or _offer_in_seconds(search, "shared rounds", rounds, budget)
    if ended and len(search.instance) and not budget.over():
        search.note(FINAL_BOUND)


def _offer_in_seconds(
    search: Search, name: str, method: Callable[..., SecondsBound[Any] | None], budget: Budget
) -> bool:
    """Offer a bound of the wider problem in seconds; return whether more time gains nothing."""
    names = chain(search.problem)
    problem, _ = relaxed_by(search.problem, names)
    model = search.clock.batch_time
    bound = method(problem.instance, model, scope=problem.scope, budget=budget)
    if bound is None:
        return not budget.over()
    if "prefix" in problem.instance.extras and not getattr(bound.proof, "block_shares", ()):
        names = (*names, "shares")
    search.offer_checked(bound.value_ns, name, bound.proof, names)
    return bound.is_final


# ---- schedules and proofs ---------------------------------------------------------------------


def run_exact(search: Search, _: Budget) -> None:
    """Run the exact engine, by configurations."""
    engine_of("exact")(search)


def prove(search: Search, _: Budget) -> None:
    """Run a solver for a proof."""
    search.engine = prover(search)
    with search.surviving():
        engine_of(search.engine)(search)


def search_layers_with_pauses(search: Search, _: Budget) -> None:
    """Search all schedules with pauses that are better than the known one."""
    from kvopt.search.exact.paused_layers import search_layers  # loads numba

    prices = prices_of(search.proof) or token_prices((), 1)
    upper = search.objective
    if upper is None:  # one after another requests take no longer
        upper = len(search.instance) * (search.instance.last_arrival + search.instance.total_output)

    def work() -> None:
        best = search_layers(search.instance, prices, upper, search.budget.over)
        if best is not None:
            search.offer(best, "exhaustive search")
        search.offer_claimed(upper if best is None else best.objective, "exhaustive search")

    run_watched(search, search.engine, work)


def as_longer_prompts(search: Search, work: Callable[[Search], object]) -> None:
    """Search schedules of longer prompts: each of them fits into blocks."""
    search.work_inside(search.instance.inflated(), work, takes=["schedules"])


def search_beams_in_seconds(search: Search, budget: Budget) -> None:
    """Offer the best run of some beams by the prices of the bound, until they find none better."""
    from kvopt.heuristics.seconds.timed_beams import beams_in_seconds  # loads numba

    assert search.checked is not None, "the bound comes first"
    assert isinstance(search.clock, Seconds)
    best = beams_in_seconds(
        search.instance,
        search.clock,
        lines_of(search.checked.proof),
        budget=budget,
        threads=search.limits.threads,
        seed=search.limits.seed,
    )
    if best is not None:
        search.offer(best, "beams")


@dataclass(frozen=True)
class Compiled:
    """Work of another module, which loads numba and so is loaded at its first use.

    Parameters
    ----------
    name
        Its name in notes.
    path
        Module and name of a function of a search and its budget.
    """

    name: str
    path: str

    def __call__(self, search: Search, budget: Budget) -> None:
        """Run the function, watched for limits and signals."""
        run_watched(search, self.name, partial(resolve_name(self.path), search, budget))


search_branches = Compiled("branches", "kvopt.search.exact.branch_search:search_branches")
"""Prove an optimum by cases of what is active together."""
improve = Compiled("local search", "kvopt.heuristics:improve")
"""Search for better schedules, on one worker or in a fleet."""
search_orders_with_pauses = Compiled(
    "orders with pauses", "kvopt.heuristics.reinsertion:search_with_pauses"
)
"""Find schedules by orders; the first one is found under any limit."""
search_servers = Compiled("servers", "kvopt.heuristics.seconds.server_search:search_servers")
"""Offer servers with good settings."""
offer_first_server = Compiled(
    "servers", "kvopt.heuristics.seconds.server_search:offer_first_server"
)
"""Offer a server with usual settings."""
search_conversations = Compiled(
    "conversations", "kvopt.heuristics.seconds.waiting_turns:search_conversations"
)
"""Offer runs in which requests wait for later turns of their conversation."""
search_over_time = Compiled("servers", "kvopt.heuristics.seconds.server_search:search_over_time")
"""Offer servers with settings that change over time."""


def offer_first_run(search: Search, budget: Budget) -> None:
    """Offer a run of conversations or of a server, which takes moments once loops are compiled."""
    has_prefixes = "prefix" in search.instance.extras
    begin = search_conversations if has_prefixes else offer_first_server
    with compiler.wait_until(budget.over):
        begin(search, Budget(0.0))


# ---- problems in rounds with several fields that no search knows together ---------------------


def is_wide(search: Search) -> bool:
    """Whether it has pauses, or memory in whole blocks, beside other fields."""
    return search.problem.has_pauses or search.problem.in_blocks


def shares_prefixes(search: Search) -> bool:
    """Whether prefixes are its only further fields."""
    return search.instance.extras == ("prefix",) and not is_wide(search)


def search_narrower(search: Search, budget: Budget, work: Callable[[Search], None]) -> None:
    """Run work on a narrower problem, whose schedules are those of this one too.

    It has no pauses.  Instead of whole blocks prompts are longer, see `Instance.inflated`.
    """
    problem = search.problem
    scope = Scope.SHARING if problem.scope.covers(Scope.SHARING) else Scope.RUNS
    narrower = replace(problem, instance=search.instance.inflated(), scope=scope, slo=None)
    search.work_inside(narrower, work, budget, takes=["schedules"])


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
        search_traces(search, budget.part(_SHARING_BEAMS), search.limits.seed)
        search_reinsertions(search, budget, search.limits.seed)

    run_watched(search, "beams", work)


def offer_all(search: Search, name: str, bounds: Iterable[CheckedBound]) -> bool:
    """Offer bounds as they come; return whether any came."""
    values: list[int] = []

    def work() -> None:
        for bound in bounds:
            search.offer_bound(bound)
            values.append(bound.value)

    run_watched(search, name, work)
    return bool(values)


def run_watched(search: Search, name: str, work: Callable[[], None]) -> None:
    """Run compiled work in a thread, since compilation and compiled loops ignore signals."""
    with search.surviving(name):
        run_in_thread(search, work)

"""The plan: the order of the stages, their problems, and their shares of the time.

`solve`, `bound`, `certify` and `fleet` read the same tables.  They differ in their end and in their
result: `certify` is `solve` that keeps proofs and evaluates runs between bounds and schedules,
`bound` skips schedules, `fleet` is `bound` for each number of workers.  No stage knows another one;
all offer to one incumbent.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from kvopt.bounds.lp import QUICK_COLUMNS
from kvopt.bounds.relaxations import chain
from kvopt.bounds.staircases import FEW_REQUESTS
from kvopt.formulations.cpsat import has_few_pairs
from kvopt.heuristics.seconds.worker_moves import offer_policies, search_runs
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import Proof, VolumeProof
from kvopt.kernels.budget import Budget
from kvopt.problem.scopes import Scope
from kvopt.search import attaining, stages
from kvopt.search.exact.all_runs import search_all
from kvopt.search.meanwhile import solver_while_compiling
from kvopt.search.reductions import OtherInstance, Work, reduced
from kvopt.search.stages import has_configurations

_LOGGER = logging.getLogger("kvopt")

_MAX_REQUESTS_PREEMPTIVE = 12
"""Limit of requests to search all schedules with pauses: a round has up to 2^12 sets."""
_MAX_EXACT_IN_BOUND = 14
"""Limit of requests for which `bound` searches the gap of configurations, which takes no longer."""
_MAX_SOLVER_ONLY = 12
"""Limit of requests for which a solver proves the optimum at once, with its schedule."""
_BRANCHES_IN_BOUND = 0.2
"""Share of the time of `bound` for cases, which raise no bound where many requests fit together."""
_MAX_SOLVER_FIRST = 30
"""Requests up to which a solver's proof gets more time than better schedules."""


@dataclass(frozen=True)
class PlanStage:
    """A row of the plan.

    Parameters
    ----------
    name
        Its name in progress, log and notes.
    supports
        Whether it applies, evaluated before it runs.
    work
        Its work within a budget, or the rows that share it.  True means that its work is complete.
    share
        Share of the remaining time of the rows, a function of the search where it varies.
    skipped_if_done
        Rows above whose completion makes this one useless.
    ignores_time_limit
        Whether it runs although the time is over, since no other row gives an answer.
    """

    name: str
    supports: Callable[[Search], bool]
    work: Callable[[Search, Budget], object] | tuple[PlanStage, ...]
    share: float | Callable[[Search], float] = 1.0
    skipped_if_done: tuple[str, ...] = ()
    ignores_time_limit: bool = False

    def part(self, search: Search, budget: Budget) -> Budget:
        """Return its share of a budget."""
        return budget.part(self.share(search) if callable(self.share) else self.share)


# ---- conditions on a problem, and shares that vary ----------------------------------------------


def _always(_: Search) -> bool:
    return True


def _in_seconds(search: Search) -> bool:
    return search.problem.in_seconds


def _is_restricted(search: Search) -> bool:
    """Whether no search in rounds knows all of its fields."""
    return search.problem.is_restricted


def _is_listed(search: Search) -> bool:
    """Whether list schedules know it: all problems in rounds that searches know."""
    return not (_in_seconds(search) or _is_restricted(search))


def _in_blocks(search: Search) -> bool:
    """Whether rounds count memory in whole blocks; in seconds tokens count instead."""
    return search.problem.in_blocks and _is_listed(search)


def _has_starts(search: Search) -> bool:
    return search.problem.is_starts


def _has_starts_on_one(search: Search) -> bool:
    return _has_starts(search) and not search.problem.is_fleet


def _pauses(search: Search) -> bool:
    """Whether schedules have pauses, on one worker, in tokens."""
    problem = search.problem
    return problem.has_segments and not problem.in_blocks and not problem.is_restricted


def has_few_with_pauses(search: Search) -> bool:
    """Whether all schedules with pauses can be searched."""
    few = 0 < len(search.instance) <= _MAX_REQUESTS_PREEMPTIVE
    return search.problem.has_segments and few and not _is_restricted(search)


def _has_time(search: Search) -> bool:
    """Whether a limit is set and time remains that no other stage can use."""
    return math.isfinite(search.budget.left)


def _is_large(search: Search) -> bool:
    """Whether no engine searches configurations: there are too many on one worker."""
    return search.problem.is_fleet or not has_configurations(search)


def _has_few_cases(search: Search) -> bool:
    """Whether cases of what is active together may prove an optimum: on one worker, in rounds."""
    return _has_starts_on_one(search) and _is_large(search) and stages.has_few_cases(search)


def _is_provable(search: Search) -> bool:
    """Whether the proof of a solver gets most of the time."""
    few = len(search.instance) <= _MAX_SOLVER_FIRST
    fits = has_few_pairs(search.instance) and not search.checkable
    return few and (fits or not search.problem.is_fleet)


def _has_slo(search: Search) -> bool:
    return search.problem.slo is not None


def _knows_prefixes(search: Search) -> bool:
    """Whether it is in seconds, counts tokens, and prefixes are its only further field."""
    knows = search.instance.extras in ((), ("prefix",)) and not search.problem.in_blocks
    return knows and _in_seconds(search)


def _has_conversations(search: Search) -> bool:
    """Whether it is in seconds, and prefixes and weights are its only further fields."""
    shares = search.problem.scope.covers(Scope.SHARING) and _in_seconds(search)
    fields = search.instance.extras in (("prefix",), ("weight", "prefix"))
    return shares and fields and not search.problem.in_blocks


def _has_first_run(search: Search) -> bool:
    """Whether loops run it at once on one machine, and its bounds take longer than moments."""
    runs = "prefix" not in search.instance.extras or _has_conversations(search)
    is_large = len(search.instance) > _MAX_SOLVER_ONLY
    return _in_seconds(search) and runs and is_large and not search.problem.is_fleet


def _is_for_beams(search: Search) -> bool:
    """Whether beams in seconds know the problem: they process whole prompts on one machine."""
    return _knows_prefixes(search) and not (search.instance.extras or search.problem.is_fleet)


def _is_relaxed(search: Search) -> bool:
    """Whether its bounds are those of wider problems."""
    return _is_restricted(search) and chain(search.problem) != ()


def _is_searched_by_beams(search: Search) -> bool:
    """Whether it shares prefixes among many; then shares of blocks that vary over time gain."""
    is_shared = _is_restricted(search) and stages.shares_prefixes(search)
    return is_shared and len(search.instance) > _MAX_SOLVER_ONLY


def _share_of_bounds(search: Search) -> float:
    return search.limits.params.portfolio_bound_share


def _share_of_prices_with_pauses(search: Search) -> float:
    """Where CP-SAT or all layers may prove the optimum, bounds get less."""
    return 0.2 if _pauses(search) and not search.checkable else _share_of_bounds(search)


# ---- the tables ---------------------------------------------------------------------------------


def _in_time(bound: float, search: float, seconds: float) -> tuple[PlanStage, ...]:
    """Return rows for a service level, each with a share of the time, at most so many seconds."""
    return (
        PlanStage("ceiling", _has_slo,
                  lambda s, t: attaining.bound_in_time(s, t.part(most=seconds)),
                  bound, ignores_time_limit=True),
        PlanStage("service level", _has_slo,
                  lambda s, t: attaining.search_in_time(s, t.part(most=seconds)),
                  search, ignores_time_limit=True),
    )  # fmt: skip


IN_TIME = _in_time(0.15, 0.15, 10.0)
"""Both sides of the number of requests in time: they come first, and latency has the rest."""

CEILING = IN_TIME[:1]
"""Without a search for schedules."""

ONLY_IN_TIME = _in_time(0.3, 0.9, 600.0)
"""The same where latency does not matter."""

FIRST = (
    PlanStage("volume", lambda s: not _in_seconds(s), stages.offer_volume, ignores_time_limit=True),
    PlanStage("staircases",
              lambda s: _has_starts(s) and len(s.instance) <= FEW_REQUESTS,
              stages.offer_staircases, ignores_time_limit=True),
    PlanStage("list schedules", _is_listed, stages.offer_lists, ignores_time_limit=True),
    PlanStage("one after another", lambda s: not _is_listed(s), stages.offer_one_after_another,
              ignores_time_limit=True),
    PlanStage("eager", _in_seconds, stages.offer_eager),
)  # fmt: skip
"""Stages that take moments, under any limit."""

FIRST_RUN = (PlanStage("first run", _has_first_run, stages.offer_first_run, 0.05),)
"""A good schedule before bounds in seconds, if its loops are compiled soon."""

PRICES = (
    PlanStage("staircases", _always, stages.offer_staircases),
    PlanStage("few knots", stages.has_many_configurations, (
        PlanStage("prices", _always, stages.ascend, 0.1),
        PlanStage("states at few knots", _always, partial(stages.ascend_states, few_knots=True)),
    )),
    # A second at most.
    PlanStage("small LP", _always, partial(stages.solve_lp, columns=QUICK_COLUMNS),
              skipped_if_done=("few knots",)),
    PlanStage("climb", _always, (
        PlanStage("prices before slots", stages.has_large_requests, stages.ascend, 0.1),
        PlanStage("slots", stages.has_large_requests, stages.ascend_slots),
        PlanStage("prices", _always, stages.ascend, skipped_if_done=("slots",)),
    ), 0.7, skipped_if_done=("few knots", "small LP")),
    PlanStage("LP", _always, stages.solve_lp, skipped_if_done=("few knots", "small LP")),
)  # fmt: skip
"""Bounds if there are too many configurations to search: prices ascend, then a small LP."""

BOUNDS = (
    PlanStage("states", lambda s: _has_starts(s) and s.problem.is_fleet and has_configurations(s),
              stages.ascend_states, _share_of_bounds),
    PlanStage("prices", lambda s: _has_starts(s) and not has_configurations(s), PRICES,
              _share_of_bounds),
    PlanStage("prices with pauses",
              lambda s: s.problem.has_pauses and not _in_seconds(s) and not chain(s.problem),
              lambda s, t: Driver(s, only_bounds=True).work(stages.ascend, t),
              _share_of_prices_with_pauses),
    PlanStage("blocks", _in_blocks, (
        PlanStage("states of tokens", lambda s: not s.problem.has_pauses and has_configurations(s),
                  stages.ascend_states_of_tokens, 0.5),
        PlanStage("prices in blocks", _always, stages.ascend),
    ), 0.5),
    PlanStage("bounds in seconds", _in_seconds, stages.bound_in_seconds, 0.3,
              ignores_time_limit=True),
    PlanStage("relaxation", _is_relaxed,
              lambda s, t: stages.bound_by_wider(s, chain(s.problem), bounding, t),
              # Prices of shared blocks are better than the relaxation, and take the time.
              lambda s: 0.05 if _is_searched_by_beams(s) else 0.3, ignores_time_limit=True),
    PlanStage("prices of tokens", lambda s: _is_relaxed(s) and stages.has_prices(s),
              stages.bound_by_prices, 0.3),
    PlanStage("prices of shared blocks", _is_searched_by_beams,
              stages.bound_by_shared_prices, 0.3),
)  # fmt: skip
"""Lower bounds; policies run after them."""

BOUND_ONLY_STAGES = (
    PlanStage("exact", lambda s: _has_starts_on_one(s) and has_configurations(s)
              and len(s.instance) <= _MAX_EXACT_IN_BOUND, stages.run_exact),
    PlanStage("states", lambda s: _has_starts_on_one(s) and has_configurations(s),
              stages.ascend_states),
    PlanStage("branches", lambda s: _has_few_cases(s) and _has_time(s),
              lambda s, t: stages.search_branches(s, t.part(_BRANCHES_IN_BOUND))),
)  # fmt: skip
"""Rows that replace searches in `bound`: bounds for few configurations."""

LAYERS = (
    PlanStage("all with pauses", has_few_with_pauses, stages.search_layers_with_pauses),
)  # fmt: skip
"""All schedules with pauses."""

POLICIES = (
    PlanStage("policies", _is_restricted, stages.offer_policies,
              lambda s: 0.05 if _is_searched_by_beams(s) else 0.15,
              ignores_time_limit=True),
    PlanStage("policies", _in_seconds, offer_policies),
)  # fmt: skip
"""Runs of schedulers, which know every problem."""

SEARCHES = (
    PlanStage("exact", lambda s: _has_starts_on_one(s) and has_configurations(s), stages.run_exact),
    PlanStage("branches", _has_few_cases, stages.search_branches, 0.5),
    PlanStage("better schedules", lambda s: _has_starts(s) and _is_large(s)
              and (s.problem.is_fleet or len(s.instance) > _MAX_SOLVER_ONLY),
              stages.improve, lambda s: 0.3 if _is_provable(s) else 1.0),
    PlanStage("proof by a solver", lambda s: _has_starts(s) and _is_large(s)
              and (_is_provable(s) or not s.problem.is_fleet), stages.prove),
    PlanStage("better schedules", lambda s: _has_starts(s) and _has_time(s), stages.improve),
    PlanStage("orders", _pauses, stages.search_orders_with_pauses,
              lambda s: 0.05 if has_few_with_pauses(s) else 0.4),
    PlanStage("longer prompts", _in_blocks,
              lambda s, _: stages.as_longer_prompts(s, lambda inner: Driver(inner).work(auto))),
    *LAYERS,
    PlanStage("orders", lambda s: _pauses(s) and _has_time(s), stages.search_orders_with_pauses),
    # Quicker than the runs of schedulers, and better.
    PlanStage("conversations", lambda s: _has_conversations(s) and not s.problem.is_fleet,
              stages.search_conversations, 0.7),
    *POLICIES,
    # The simulator, which knows prefixes, takes a hundred times as long as loops.
    PlanStage("servers", _in_seconds, stages.search_servers,
              lambda s: 0.6 if "prefix" in s.instance.extras else 0.3),
    # A fleet deals requests out as behind its best router.
    PlanStage("conversations", lambda s: _has_conversations(s) and s.problem.is_fleet,
              stages.search_conversations, 0.6),
    PlanStage("exact", _knows_prefixes, search_all),
    # Where memory is short, beams are better than servers, and soon; then they go on.
    PlanStage("beams", _is_for_beams, stages.search_beams_in_seconds,
              lambda s: 0.15 if s.is_led_by_server else 1.0),
    PlanStage("settings over time", lambda s: s.is_led_by_server, stages.search_over_time,
              lambda s: 0.6 if s.problem.is_fleet else 1.0),
    PlanStage("beams", lambda s: _is_for_beams(s) and _has_time(s) and s.found_by == "beams",
              stages.search_beams_in_seconds),
    PlanStage("routers", _knows_prefixes, search_runs),
    PlanStage("beams", _is_searched_by_beams, stages.improve_sharing,
              lambda s: 0.3 if has_few_pairs(s.instance) else 1.0),
    PlanStage("narrower", lambda s: _is_restricted(s) and stages.is_wide(s),
              lambda s, t: stages.search_narrower(s, t, solving)),
    PlanStage("proof by a solver", lambda s: _is_restricted(s) and not stages.is_wide(s),
              stages.prove),
)  # fmt: skip
"""Better schedules, and proofs that no other one is better."""

NARROWER_SHARE = 0.4
"""Share of the limit of `certify` for optima of narrower scopes, if these suffice for policies."""

# ---- reading the tables -------------------------------------------------------------------------


def run(rows: tuple[PlanStage, ...], search: Search, budget: Budget | None = None) -> None:
    """Run the rows that support a search, one after another.

    They share a budget; without one each may take all of the remaining time.
    """
    completed = set[str]()
    for row in rows:
        is_late = search.budget.over() and not row.ignores_time_limit
        if is_late or completed.intersection(row.skipped_if_done) or not row.supports(search):
            continue
        part = None if budget is None else row.part(search, budget)
        if isinstance(row.work, tuple):
            run(row.work, search, part)
            completed.add(row.name)
            continue
        limit = part or search.budget
        _LOGGER.debug("%s begins, %.1f s at most", row.name, limit.left)
        search.engine = row.name
        with search.surviving(row.name), search.counting(row.name):
            if row.work(search, limit) is True:
                completed.add(row.name)


class Driver:
    """The plan for a search, by way of the reductions that apply.

    Every door runs it: `solve` begins and searches, `certify` runs schedulers in between, `bound`
    and `fleet` bound.

    Parameters
    ----------
    search
        The search.
    prices
        Proof of a bound, from which the search of its parts begins.
    only_bounds
        Whether it bounds without a search for schedules.
    """

    def __init__(
        self, search: Search, prices: Proof | None = None, *, only_bounds: bool = False
    ) -> None:
        self._search, self._only_bounds = search, only_bounds
        self._reduced = reduced(search, prices, only_bounds=only_bounds)

    @property
    def is_reduced(self) -> bool:
        """Whether other problems are solved in place of this one."""
        return self._reduced is not None

    def begin(self) -> None:
        """Run the first rows, which take moments, for parts on the whole."""
        if isinstance(self._reduced, OtherInstance):
            self._reduced.work(lambda inner, _: Driver(inner).begin())
        else:
            run(FIRST, self._search)

    def run(self, rows: tuple[PlanStage, ...], budget: Budget | None = None) -> None:
        """Run rows of the plan, which share a budget."""
        self.work(lambda search, part: run(rows, search, part), budget)

    def work(self, work: Work, budget: Budget | None = None) -> None:
        """Let some work be done behind all reductions, if there are requests."""
        if not len(self._search.instance):
            _offer_nothing(self._search)
            return
        if self._reduced is None:
            with self._search.surviving():
                work(self._search, budget or self._search.budget)
            return
        only_bounds = self._only_bounds
        self._reduced.work(
            lambda inner, part: Driver(inner, only_bounds=only_bounds).work(work, part), budget
        )

    def explained(self, rows: tuple[PlanStage, ...]) -> Iterator[tuple[str, float]]:
        """Yield the first rows and others that apply, and the limit of each in seconds."""
        search = self._search
        if self._reduced is not None:
            yield self._reduced.name, 0.0
        if isinstance(self._reduced, OtherInstance):
            yield from Driver(search.inside(self._reduced.instance)).explained(rows)
            return
        yield from ((row.name, 0.0) for row in FIRST if row.supports(search))
        yield from _explained(rows, search, search.budget.left, "")


def bound_share_used_up(search: Search) -> bool:
    """Whether bounds by prices would get less time than the earlier stages took."""
    share = search.budget.part(search.limits.params.portfolio_bound_share)
    return _has_starts_on_one(search) and share.left < search.granted.spent


def _offer_nothing(search: Search) -> None:
    """Offer both sides of an instance without requests."""
    if search.problem.in_seconds:
        run(FIRST + BOUNDS, search)
    else:
        search.offer_starts((), "empty instance", ())
        search.offer_checked(0, "empty instance", VolumeProof())


def auto(search: Search, _: Budget | None = None) -> None:
    """Bound and search by the size of the problem."""
    if search.schedule is None and _is_listed(search):
        stages.offer_lists(search)
    with solver_while_compiling(search):
        run(FIRST_RUN + BOUNDS + SEARCHES, search, search.budget)


def solving(search: Search) -> None:
    """Search schedules and bounds of a problem from the beginning."""
    driver = Driver(search)
    driver.begin()
    driver.work(auto)


def bounding(search: Search) -> None:
    """Bound by the size of the problem, without a search for schedules."""
    Driver(search, only_bounds=True).work(_bound)


def _bound(search: Search, _: Budget) -> None:
    """Run all rows that give bounds; those of wider problems take equal parts of the time."""
    run(FIRST, search)
    if not _is_relaxed(search):
        run(BOUND_ONLY_STAGES + BOUNDS, search)
        return
    rows = [row for row in BOUNDS if row.supports(search)]
    for left, row in zip(range(len(rows), 0, -1), rows, strict=True):
        run((replace(row, share=1 / left),), search, search.budget)


def explained(search: Search) -> Iterator[tuple[str, float]]:
    """Yield the rows that apply to a search, and the limit of each in seconds."""
    driver = Driver(search)
    driver.begin()
    yield from _explained(IN_TIME, search, search.budget.left, "")
    yield from driver.explained(FIRST_RUN + BOUNDS + SEARCHES)


def _explained(
    rows: tuple[PlanStage, ...], search: Search, left: float, indent: str
) -> Iterator[tuple[str, float]]:
    for row in rows:
        if row.supports(search):
            seconds = row.part(search, Budget(left)).left
            yield f"{indent}{row.name}", seconds
            if isinstance(row.work, tuple):
                yield from _explained(row.work, search, seconds, indent + "  ")
            left = left - seconds if math.isfinite(seconds) else left

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

from kvopt.bounds.coarse import has_large_requests
from kvopt.bounds.relaxations import chains
from kvopt.bounds.staircases import FEW_REQUESTS
from kvopt.formulations.cpsat import LARGEST_PAIRS
from kvopt.heuristics.seconds.worker_moves import offer_policies, search_runs
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import Proof, VolumeProof
from kvopt.kernels.budget import Budget
from kvopt.search import attaining, restricted, stages
from kvopt.search.exact.runs import search_all
from kvopt.search.meanwhile import solver_while_compiling
from kvopt.search.reductions import Work, reduction_of
from kvopt.search.stages import has_configurations

_LOGGER = logging.getLogger("kvopt")

MOST_WITH_PAUSES = 12
"""Limit of requests to search all schedules with pauses: a round has up to 2^12 sets."""
_MOST_BOUNDED = 14
"""Limit of requests for which `bound` searches the gap of configurations, which takes no longer."""
_PROVED_AT_ONCE = 12
"""Limit of requests for which a solver proves the optimum at once, with its schedule."""
_PROVABLE = 30
"""Requests up to which a solver's proof gets more time than better schedules."""


@dataclass(frozen=True)
class Stage:
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
    unless
        Rows above whose completion makes this one useless.
    at_once
        Whether it runs although the time is over, since no other row gives an answer.
    """

    name: str
    supports: Callable[[Search], bool]
    work: Callable[[Search, Budget], object] | tuple[Stage, ...]
    share: float | Callable[[Search], float] = 1.0
    unless: tuple[str, ...] = ()
    at_once: bool = False

    def part(self, search: Search, budget: Budget) -> Budget:
        """Return its share of a budget."""
        return budget.part(self.share(search) if callable(self.share) else self.share)


# ---- conditions on a problem ------------------------------------------------------------------


def _always(_: Search) -> bool:
    return True


def _in_seconds(search: Search) -> bool:
    return search.problem.in_seconds


def _in_rounds(search: Search) -> bool:
    return not search.problem.in_seconds


def _is_restricted(search: Search) -> bool:
    """Whether no search in rounds knows all of its fields."""
    return search.problem.is_restricted


def _is_listed(search: Search) -> bool:
    """Whether list schedules know it: all problems in rounds that searches know."""
    return _in_rounds(search) and not _is_restricted(search)


def _in_blocks(search: Search) -> bool:
    """Whether rounds count memory in whole blocks; in seconds tokens count instead."""
    return search.problem.in_blocks and _is_listed(search)


def _pauses(search: Search) -> bool:
    """Whether schedules have pauses, on one worker, in tokens."""
    problem = search.problem
    return problem.has_segments and not problem.in_blocks and not problem.is_restricted


def _has_bounds_with_pauses(search: Search) -> bool:
    """Whether prices cover its pauses as they are, on any number of workers."""
    problem = search.problem
    return _in_rounds(search) and problem.has_pauses and chains(problem) == [()]


def _plain(search: Search) -> bool:
    return search.problem.is_starts


def _alone(search: Search) -> bool:
    return _plain(search) and not search.problem.is_fleet


def _fleet(search: Search) -> bool:
    return _plain(search) and search.problem.is_fleet


def has_few_with_pauses(search: Search) -> bool:
    """Whether all schedules with pauses can be searched."""
    few = 0 < len(search.instance) <= MOST_WITH_PAUSES
    return search.problem.has_segments and few and not _is_restricted(search)


def _has_time(search: Search) -> bool:
    """Whether a limit is set and time remains that no other stage can use."""
    return math.isfinite(search.budget.left)


def _is_priced_by_states(search: Search) -> bool:
    return _plain(search) and has_configurations(search)


def _is_priced_by_tokens(search: Search) -> bool:
    return _plain(search) and not has_configurations(search)


def _is_large(search: Search) -> bool:
    """Whether no engine searches configurations: there are too many on one worker."""
    return search.problem.is_fleet or not has_configurations(search)


def _is_provable(search: Search) -> bool:
    """Whether the proof of a solver gets most of the time."""
    count = len(search.instance)
    few = count <= _PROVABLE
    fits = count * (count - 1) <= LARGEST_PAIRS and not search.checkable
    return few and (fits or not search.problem.is_fleet)


def _has_slo(search: Search) -> bool:
    return search.problem.slo is not None


def _knows_tokens(search: Search) -> bool:
    """Whether it counts tokens, without fields beyond the problem of the papers."""
    return not (search.instance.extras or search.problem.in_blocks)


def _knows_prefixes(search: Search) -> bool:
    """Whether it counts tokens, and prefixes are its only further field."""
    return search.instance.extras in ((), ("prefix",)) and not search.problem.in_blocks


def _is_relaxed(search: Search) -> bool:
    """Whether its bounds are those of wider problems."""
    return _is_restricted(search) and chains(search.problem) != [()]


def _has_prices_of_its_own(search: Search) -> bool:
    return _is_relaxed(search) and restricted.has_prices(search)


def _is_shared(search: Search) -> bool:
    """Whether prefixes are its only fields beyond the problem of the papers."""
    return _is_restricted(search) and restricted.shares_prefixes(search)


def _is_solved_by_program(search: Search) -> bool:
    return len(search.instance) * (len(search.instance) - 1) <= LARGEST_PAIRS


def _is_searched_by_beams(search: Search) -> bool:
    """Whether it shares prefixes among many; then shares of blocks that vary over time gain."""
    return _is_shared(search) and len(search.instance) > _PROVED_AT_ONCE


# ---- shares that vary ---------------------------------------------------------------------------


def _share_of_bounds(search: Search) -> float:
    return search.limits.params.portfolio_bound_share


def _share_of_prices_with_pauses(search: Search) -> float:
    """Where CP-SAT or all layers may prove the optimum, bounds get less."""
    return 0.2 if _pauses(search) and not search.checkable else _share_of_bounds(search)


def _share_before_proof(search: Search) -> float:
    return 0.3 if _is_provable(search) else 1.0


def _share_of_orders(search: Search) -> float:
    return 0.05 if has_few_with_pauses(search) else 0.4


def _share_of_relaxation(search: Search) -> float:
    """Prices of shared blocks are better than the relaxation, and take the time."""
    return 0.05 if _is_searched_by_beams(search) else 0.3


def _share_of_policies(search: Search) -> float:
    return 0.05 if _is_searched_by_beams(search) else 0.15


def _share_of_beams(search: Search) -> float:
    return 0.3 if _is_solved_by_program(search) else 1.0


def _is_for_beams(search: Search) -> bool:
    """Whether beams in seconds know the problem: they process whole prompts on one machine."""
    return _in_seconds(search) and not search.problem.is_fleet and _knows_tokens(search)


def _is_led_by_server(search: Search) -> bool:
    return search.is_led_by_server


def _share_of_servers(search: Search) -> float:
    """The simulator, which knows prefixes, takes a hundred times as long as loops."""
    return 0.6 if "prefix" in search.instance.extras else 0.3


def _share_of_beams_in_seconds(search: Search) -> float:
    """Where memory is short, beams are better than servers, and soon; then they go on."""
    return 0.15 if search.is_led_by_server else 1.0


def _share_over_time(search: Search) -> float:
    return 0.6 if search.problem.is_fleet else 1.0


# ---- the tables ---------------------------------------------------------------------------------


def _in_time(bound: float, search: float, most: float) -> tuple[Stage, ...]:
    """Return rows for a service level, each with a share of the time, at most so many seconds."""
    return (
        Stage("ceiling", _has_slo,
              lambda s, t: attaining.bound_in_time(s, t.part(most=most)), bound, at_once=True),
        Stage("service level", _has_slo,
              lambda s, t: attaining.search_in_time(s, t.part(most=most)), search, at_once=True),
    )  # fmt: skip


IN_TIME = _in_time(0.15, 0.15, 10.0)
"""Both sides of the number of requests in time: they come first, and latency has the rest."""

CEILING = IN_TIME[:1]
"""Without a search for schedules."""

ONLY_IN_TIME = _in_time(0.3, 0.9, 600.0)
"""The same where latency does not matter."""

FIRST = (
    Stage("volume", _in_rounds, stages.offer_volume, at_once=True),
    Stage("staircases",
          lambda s: _plain(s) and len(s.instance) <= FEW_REQUESTS,
          stages.offer_staircases, at_once=True),
    Stage("list schedules", _is_listed, stages.offer_lists, at_once=True),
    Stage("one after another", lambda s: not _is_listed(s), stages.offer_one_after_another,
          at_once=True),
    Stage("eager", _in_seconds, stages.offer_eager),
)  # fmt: skip
"""Stages that take moments, under any limit."""

PRICES = (
    Stage("staircases", _always, stages.offer_staircases),
    Stage("few knots", stages.has_many_configurations, (
        Stage("prices", _always, stages.climb, 0.1),
        Stage("states at few knots", _always, stages.climb_few_states),
    )),
    Stage("small LP", _always, stages.solve_small_lp, unless=("few knots",)),
    Stage("climb", _always, (
        Stage("prices before slots", has_large_requests, stages.climb, 0.1),
        Stage("slots", has_large_requests, stages.climb_slots),
        Stage("prices", _always, stages.climb, unless=("slots",)),
    ), 0.7, unless=("few knots", "small LP")),
    Stage("LP", _always, stages.solve_lp, unless=("few knots", "small LP")),
)  # fmt: skip
"""Bounds if there are too many configurations to search: prices climb, then a small LP."""

BOUNDS = (
    Stage("states", lambda s: _fleet(s) and _is_priced_by_states(s),
          stages.climb_states, _share_of_bounds),
    Stage("prices", _is_priced_by_tokens, PRICES, _share_of_bounds),
    Stage("prices with pauses", _has_bounds_with_pauses,
          lambda s, t: Driver(s, only_bounds=True).work(stages.climb, t),
          _share_of_prices_with_pauses),
    Stage("blocks", _in_blocks, (
        Stage("states of tokens", lambda s: not s.problem.has_pauses and has_configurations(s),
              stages.climb_states_of_tokens, 0.5),
        Stage("prices in blocks", _always, stages.climb),
    ), 0.5),
    Stage("bounds in seconds", _in_seconds, stages.bound_in_seconds, 0.3, at_once=True),
    Stage("relaxation", _is_relaxed,
          lambda s, t: restricted.bound_by_relaxation(s, t, bounding),
          _share_of_relaxation, at_once=True),
    Stage("prices of tokens", _has_prices_of_its_own, restricted.bound_by_prices, 0.3),
    Stage("prices of shared blocks", _is_searched_by_beams,
          restricted.bound_by_shared_prices, 0.3),
)  # fmt: skip
"""Lower bounds; policies run after them."""

CLOSING = (
    Stage("exact", lambda s: _alone(s) and _is_priced_by_states(s)
          and len(s.instance) <= _MOST_BOUNDED, stages.run_exact),
    Stage("states", lambda s: _alone(s) and _is_priced_by_states(s), stages.climb_states),
)  # fmt: skip
"""Rows that replace searches in `bound`: bounds for few configurations."""

LAYERS = (
    Stage("all with pauses", has_few_with_pauses, stages.search_layers_with_pauses),
)  # fmt: skip
"""All schedules with pauses."""

POLICIES = (
    Stage("policies", _is_restricted, restricted.offer_policies, _share_of_policies,
          at_once=True),
    Stage("policies", _in_seconds, offer_policies),
)  # fmt: skip
"""Runs of schedulers, which know every problem."""

SEARCHES = (
    Stage("exact", lambda s: _alone(s) and has_configurations(s), stages.run_exact),
    Stage("search under prices", lambda s: _alone(s) and _is_large(s) and stages.has_few_starts(s),
          stages.search_tokens, 0.3),
    Stage("better schedules", lambda s: _plain(s) and _is_large(s)
          and (s.problem.is_fleet or len(s.instance) > _PROVED_AT_ONCE),
          stages.improve, _share_before_proof),
    Stage("proof by a solver", lambda s: _plain(s) and _is_large(s)
          and (_is_provable(s) or not s.problem.is_fleet), stages.prove),
    Stage("better schedules", lambda s: _plain(s) and _has_time(s), stages.improve),
    Stage("orders", _pauses, stages.search_orders_with_pauses, _share_of_orders),
    Stage("longer prompts", _in_blocks,
          lambda s, _: stages.as_longer_prompts(s, lambda inner: Driver(inner).work(auto))),
    *LAYERS,
    Stage("orders", lambda s: _pauses(s) and _has_time(s), stages.search_orders_with_pauses),
    *POLICIES,
    Stage("servers", _in_seconds, stages.search_servers, _share_of_servers),
    Stage("exact", lambda s: _in_seconds(s) and _knows_prefixes(s), search_all),
    Stage("beams", _is_for_beams, stages.search_beams_in_seconds, _share_of_beams_in_seconds),
    Stage("settings over time", _is_led_by_server, stages.search_over_time, _share_over_time),
    Stage("beams", lambda s: _is_for_beams(s) and _has_time(s) and s.found_by == "beams",
          stages.search_beams_in_seconds),
    Stage("routers", lambda s: _in_seconds(s) and _knows_prefixes(s), search_runs),
    Stage("beams", _is_searched_by_beams, restricted.improve_sharing, _share_of_beams),
    Stage("narrower", lambda s: _is_restricted(s) and restricted.is_wide(s),
          lambda s, t: restricted.search_narrower(s, t, solving)),
    Stage("proof by a solver", lambda s: _is_restricted(s) and not restricted.is_wide(s),
          stages.prove),
)  # fmt: skip
"""Better schedules, and proofs that no other one is better."""

NARROWER_SHARE = 0.4
"""Share of the limit of `certify` for optima of narrower scopes, if these suffice for policies."""

# ---- reading the tables -------------------------------------------------------------------------


def run(rows: tuple[Stage, ...], search: Search, budget: Budget | None = None) -> None:
    """Run the rows that support a search, one after another.

    They share a budget; without one each may take all of the remaining time.
    """
    over = set[str]()
    for row in rows:
        is_late = search.budget.over() and not row.at_once
        if is_late or over.intersection(row.unless) or not row.supports(search):
            continue
        part = None if budget is None else row.part(search, budget)
        if isinstance(row.work, tuple):
            run(row.work, search, part)
            over.add(row.name)
            continue
        limit = part or search.budget
        _LOGGER.debug("%s begins, %.1f s at most", row.name, limit.left)
        search.engine = row.name
        with search.surviving(row.name), search.counting(row.name):
            if row.work(search, limit) is True:
                over.add(row.name)


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
        self._reduction = reduction_of(search, only_bounds=only_bounds)
        self._reduced = None
        if self._reduction is not None:
            self._reduced = self._reduction.reduced(search, prices)

    @property
    def is_reduced(self) -> bool:
        """Whether other problems are solved in place of this one."""
        return self._reduced is not None

    def begin(self) -> None:
        """Run the first rows, which take moments."""
        if self._reduced is None or self._reduction is None or self._reduction.has_whole_start:
            run(FIRST, self._search)
        else:
            self._reduced.work(lambda inner, _: Driver(inner).begin())

    def run(self, rows: tuple[Stage, ...], budget: Budget | None = None) -> None:
        """Run rows of the plan, which share a budget."""
        self.work(lambda search, part: run(rows, search, part), budget)

    def work(self, stage: Work, budget: Budget | None = None) -> None:
        """Let a stage work behind all reductions."""
        if self._reduced is not None:
            self._reduced.work(self._behind(stage), budget)
            return
        with self._search.surviving():
            stage(self._search, budget or self._search.budget)

    def explained(self, rows: tuple[Stage, ...]) -> Iterator[tuple[str, float]]:
        """Yield the first rows and others that apply, and the limit of each in seconds."""
        if self._reduction is not None:
            yield self._reduction.name, 0.0
            inner = self._reduction.inner(self._search)
            if inner is not self._search:
                yield from Driver(inner).explained(rows)
                return
        yield from ((row.name, 0.0) for row in FIRST if row.supports(self._search))
        yield from _explained(rows, self._search, self._search.budget.left, "")

    def _behind(self, stage: Work) -> Work:
        only_bounds = self._only_bounds
        return lambda inner, part: Driver(inner, only_bounds=only_bounds).work(stage, part)


def is_rushed(search: Search) -> bool:
    """Whether bounds by prices would get less time than the earlier stages took."""
    share = search.budget.part(search.limits.params.portfolio_bound_share)
    return _alone(search) and share.left < search.granted.spent


def offer_nothing(search: Search) -> None:
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
        run(BOUNDS + SEARCHES, search, search.budget)


def solving(search: Search) -> None:
    """Search schedules and bounds of a problem from the beginning."""
    driver = Driver(search)
    driver.begin()
    driver.work(auto)


def bounding(search: Search) -> None:
    """Bound by the size of the problem, without a search for schedules."""
    if not len(search.instance):
        offer_nothing(search)
    else:
        Driver(search, only_bounds=True).work(_bound)


def _bound(search: Search, _: Budget) -> None:
    """Run all rows that give bounds; those of wider problems take equal parts of the time."""
    run(FIRST, search)
    if not _is_relaxed(search):
        run(CLOSING + BOUNDS, search)
        return
    rows = [row for row in BOUNDS if row.supports(search)]
    for left, row in zip(range(len(rows), 0, -1), rows, strict=True):
        run((replace(row, share=1 / left),), search, search.budget)


def explained(search: Search) -> Iterator[tuple[str, float]]:
    """Yield the rows that apply to a search, and the limit of each in seconds."""
    driver = Driver(search)
    driver.begin()
    yield from _explained(IN_TIME, search, search.budget.left, "")
    yield from driver.explained(BOUNDS + SEARCHES)


def _explained(
    rows: tuple[Stage, ...], search: Search, left: float, indent: str
) -> Iterator[tuple[str, float]]:
    for row in rows:
        if row.supports(search):
            seconds = row.part(search, Budget(left)).left
            yield f"{indent}{row.name}", seconds
            if isinstance(row.work, tuple):
                yield from _explained(row.work, search, seconds, indent + "  ")
            left = left - seconds if math.isfinite(seconds) else left

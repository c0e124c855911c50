"""Searches of the exact engine at given prices: beam and exhaustive forward search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kvopt.bounds.configurations.cost_to_go import CostToGo
from kvopt.bounds.configurations.dual_ascent import DualAscent
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.expand import TooWide
from kvopt.bounds.configurations.forward_search import (
    CHILDREN,
    FULL_LAYERS,
    ForwardSearch,
    predecessors_of,
)
from kvopt.bounds.configurations.least_costs import LeastCosts
from kvopt.bounds.configurations.lookahead_tables import Lookahead
from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget, wall_time

_COMPLETIONS = 0.6
"""Share of the time: cost-to-go bounds before the last searches."""
NAME = "exact"
"""Name of the engine in `bounded_by` of its bounds."""

_MARGIN, _INSTANT = 0.8, 1e-3
"""Share of the remaining time for a search for a better bound, and its least seconds."""

_FIRST_SETS, _MORE_SETS, _WORTH_IT = 2_000, 9, 1.5
"""Sets of a time in the first cost-to-go bounds, and the factor of the next ones."""
_SETS_OF_FEW, _LATER_SETS = 8_000, 3
"""Sets for few requests, whose proof mostly takes no more, and the factor at the next prices."""

FIRST_WIDTH, _WIDER = 100, 3
"""Beam width in labels while prices are rough; the factor from one beam search to the next."""
_WIDE_HORIZONS, _EXCLUSION_HORIZON = (5, 3, 8), 20
"""Rounds of the look-ahead of wider beams, in turn, and of exhaustive searches."""
WIDTH, WIDEST_WIDTH = 1000, 40_000
"""Largest beam widths in labels while the bound rises, and when it rises no more."""
MAX_SETS = 1_000_000
"""Default limit of the sets of states of a time with cost-to-go bounds."""
RISING_LABELS = 30_000
"""Most labels in a round of a search for a better bound while prices rise."""
_PLAIN = 1 / 9
"""Share of the labels of a proof that a search may keep before cost-to-go bounds are tried."""
_CHECKABLE_SETS, _LABELS_A_SET, _SHARE_OF_SETS = 4_000_000, 100, 0.5
"""Sets of all times that `kvopt verify` finds in some minutes, with 2 GB; checkable labels, times
requests, for each set more; and the share of sets in the effort of a proof."""
_COMPLETION_WINDOW = 1 / 4
"""Window of sets with cost-to-go bounds, as a share of the budget."""
_BEAMS = 0.3
"""Share of the time for a wider beam, between higher least costs and searches."""
_LONG_STEP = 1.0
"""Seconds of a step of least costs after which its bound is offered at once."""
_MOST_SAVED = 3600.0
"""Seconds that a rise of the bound can save: without a limit tiny rises would go on and on."""
_FEWER_SETS, _STEPS, _MOST_FAILS = 2, 3, 5
"""Factor by which tables for higher least costs begin with fewer sets; the last steps whose gain
tells whether another one follows; steps without a gain after which none does."""
_GROWTH_A_ROUND, _LONGEST = 0.2, 50.0
"""Growth of the logarithm of the labels with each round of the bound, before a search tells it;
and the most that a forecast adds to the logarithm of the seconds."""
_FIRST_RISE, _FARTHER, _MORE_WORK = 1 / 16, 6.0, 4.0
"""Share of the gap that the first search for a better bound tries; the most that the next one adds,
as a factor of what is tried; factor of its labels from one search to the next."""
_FIRST_OF_ALL, _LABELS_A_SECOND = 0.4, 200_000
"""Share of the time for the first search, and the most labels of a round for each second of each
thread: a machine expands fewer."""
_FEW_LABELS = 20_000
"""Labels up to which they cost less than the rounds of a search: the next one may have so many."""

_BYTES, _BYTES_A_REQUEST = 100, 4
"""Bytes of a label with its extensions and their hash table, and more for each request."""


def label_limit(search: Search) -> int:
    """Return how many labels a search may keep in each round, within the memory budget."""
    count = len(search.instance)
    of_earlier_rounds = 4 + 8 * math.ceil(count / 64)  # the parent, and a bit for each request
    label = _BYTES + _BYTES_A_REQUEST * count + FULL_LAYERS * of_earlier_rounds
    return min(search.limits.params.exact_most_labels, search.budget.memory_left // label)


class _Effort(NamedTuple):
    """Cost of a gain of the bound: the logarithm of the labels, and seconds."""

    rise: float
    kept: float
    seconds: float


_NOTHING = _Effort(0.0, 0.0, 0.0)


class _Forecast(NamedTuple):
    """Seconds of the last search, its rounds above its cost-to-go bound, and their growth."""

    rise: float = 0.0
    seconds: float = 0.0
    growth: float = _GROWTH_A_ROUND
    value: float = 0.0

    def of(self, rise: float) -> float:
        """Return the seconds of a search with another rise; 0 before there was one."""
        exponent = self.growth * (rise - self.rise)
        return self.seconds * math.exp(min(exponent, _LONGEST))


class Forward:
    """Searches forward in time with the prices of one evaluation.

    Parameters
    ----------
    search
        The search, with a schedule; better ones are offered to it.
    priced
        Prices with their evaluation.
    limit
        When it stops, by default with the search.
    max_sets
        Limit of the sets of states of a time with cost-to-go bounds, which drop labels.
    last
        Searches with prices of an evaluation before, whose number of sets comes first.
    many
        Whether requests are so many that cost-to-go bounds begin small and grow.
    """

    def __init__(
        self,
        search: Search,
        priced: DualAscent,
        limit: Budget | None = None,
        max_sets: int = MAX_SETS,
        last: Forward | None = None,
        *,
        many: bool = True,
    ) -> None:
        assert search.schedule is not None
        self._search, self._priced, self._evaluation = search, priced, priced.evaluation
        self._limit, self._max_sets = limit or search.budget, max_sets
        self._predecessors = predecessors_of(search.instance)
        self._budget = self._gap_of(self._evaluation)
        self._window = max(1, int(_COMPLETION_WINDOW * self._budget))
        # Sets of a time in cost-to-go bounds.
        self._sets: int = last._sets if last else _FIRST_SETS if many else _SETS_OF_FEW
        self._grows = many
        self._forecast: _Forecast = last._forecast if last else _Forecast()
        self._costs: LeastCosts | None = None
        self._lookaheads: dict[int, Lookahead | None] = {}
        self._completions: CostToGo | None = None
        self._width = WIDTH  # of the last wide beam
        self._is_last = False

    # ---- exhaustive -------------------------------------------------------------------

    @property
    def expected(self) -> float:
        """Seconds of a search for all better schedules, by the last one; 0 before there was one."""
        return self._forecast.of(self._objective() - self._forecast.value)

    def excludes_all(self, max_labels: int, limit: Budget) -> bool:
        """Search for all better schedules in that time; return whether it ended.

        Cost-to-go bounds come first, then targets that rise.
        """
        before, self._limit = self._limit, limit
        try:
            self.complete(limit.part(_COMPLETIONS))
            return self.raises(max_labels, look_ahead=self._looks_ahead)
        except Stopped:
            return False
        finally:
            self._limit = before

    @property
    def _looks_ahead(self) -> bool:
        """Whether a last search looks ahead: a checker only does with cost-to-go bounds."""
        return self._completions is not None or not self._search.checkable

    def raises(self, max_labels: int, *, look_ahead: bool = False, margin: float = _MARGIN) -> bool:
        """Raise the target towards the schedule; return whether the gap is closed.

        Labels grow by about the same factor with every round of latency, so two searches predict
        the target of the next one, and whether there is time for it.  After a search beyond the
        label limit it ends, or with look-ahead continues with smaller steps.  A search may take
        the share ``margin`` of the remaining time.
        """
        # All rises are rounds of latency above the bound of the prices.
        bound = self._evaluation.bound
        proved = (self._search.lower_bound or bound) - bound
        unknown = self._objective() - bound - proved
        first = _FIRST_RISE * unknown
        rise = max(1.0, proved + first if look_ahead else max(first, proved / 2))
        growth, failed = 1.0, math.inf
        # The known bound takes no labels with look-ahead, and a little more may take many.
        last = _NOTHING._replace(rise=float(proved)) if look_ahead else _NOTHING
        while not self._limit.over():
            target = min(bound + math.ceil(rise), self._objective())
            began = wall_time()
            # Nothing is known of the first search: it may not take all of the time for nothing.
            limit = self._limit if last.seconds else self._limit.part(_FIRST_OF_ALL)
            in_time = _LABELS_A_SECOND * self._search.limits.threads * limit.left
            most = int(min(max_labels, in_time))
            try:
                kept = math.log(self.exclude(target, most, limit, look_ahead=look_ahead) + 1)
            except (TooWide, Stopped):
                is_least = rise - max(proved, last.rise) <= 1.0
                if not look_ahead or is_least or self._limit.over():
                    return False
                failed, rise = rise, (max(proved, last.rise) + rise) / 2
                continue
            if target >= self._objective():
                return True
            growth = max(kept - last.kept, 0.1) / (rise - last.rise)
            last = _Effort(rise, kept, wall_time() - began)
            if look_ahead:
                value = self._value
                self._forecast = _Forecast(target - value, last.seconds, growth, value)
            more = max(_MORE_WORK, _FEW_LABELS / math.exp(kept))
            more = min(more, margin * self._limit.left / max(last.seconds, _INSTANT))
            if more < 1.0:
                return False
            farthest = min(_FARTHER * (rise - (proved if look_ahead else 0)), (failed - rise) / 2)
            rise += max(1.0, min(farthest, math.log(more) / growth))
        return False

    def finishes(self) -> bool:
        """Finish when prices do not rise any more; return whether the gap is closed.

        Higher least costs, wider beams and searches have turns, until two turns raise no bound.
        If bounds have to be checkable, only then searches take more labels than a checker does.
        """
        idle = 0
        while idle < 2 and not self._limit.over():
            bound = self._search.lower_bound
            try:
                self.complete(self._limit.part(_COMPLETIONS), sharpens=True)
                if self._widens():
                    self._search_in_part()
                if self.raises(label_limit(self._search), look_ahead=self._looks_ahead):
                    return True
            except Stopped:
                return False
            idle = idle + 1 if self._search.lower_bound == bound else 0
        # No bound that can be checked is within reach: an optimum may be.
        self._is_last = self._search.checkable
        return self._is_last and self.raises(
            label_limit(self._search), look_ahead=self._looks_ahead
        )

    def _search_in_part(self) -> None:
        """Search with wide beams for a part of the time; the rest is for the bound."""
        before = self._limit
        self._limit = before.part(_BEAMS)
        try:
            self._search_widely()
        except Stopped:
            if before.over():
                raise
        finally:
            self._limit = before

    def complete(self, limit: Budget, *, sharpens: bool = False) -> None:
        """Compute cost-to-go bounds in that time, sharp ones if asked, and offer their value.

        For a checkable result their sets are limited to half of what `kvopt verify` takes.
        """
        if not CostToGo.fits(self._priced.states):
            return
        if self._search.checkable:
            times = len(self._evaluation.prices)
            most = _SHARE_OF_SETS * self._checkable_sets / times
            self._max_sets = min(self._max_sets, int(most))
        if sharpens:
            self._sharpen(limit)
        if not sharpens or self._completions is None:
            self._tabulate(limit)

    def _tabulate(self, limit: Budget) -> None:
        """Compute cost-to-go bounds of more and more sets, and offer their value."""
        evaluation, max_sets = self._evaluation, self._max_sets
        completions = CostToGo(self._priced.states, evaluation, self._budget)
        rise, fewer = -1, self._sets
        while True:
            began = wall_time()
            sets = self._sets = min(self._sets, max_sets)
            try:
                completions.fill(sets, self._window, limit)
            except Stopped:  # the next prices begin with fewer sets
                self._sets = max(_FIRST_SETS, sets // 2)
                break
            self._completions = completions
            self._offer_completions()
            if not self._grows:
                self._sets = _LATER_SETS * sets
                break
            if completions.rise == rise:
                self._sets = fewer  # which do as well
                break
            last = max(wall_time() - began, _INSTANT)
            in_time = sets * _MARGIN * limit.left / last
            in_memory = completions.sets_within(self._search.budget.memory_left // 2)
            more = min(_MORE_SETS * sets, max_sets, in_time, in_memory)
            if completions.is_whole or more < _WORTH_IT * sets:
                break
            self._sets, rise, fewer = int(more), completions.rise, sets

    def _sharpen(self, limit: Budget) -> None:
        """Raise least costs of shapes while that saves more time than it takes.

        A round of the bound saves a share of the time of a search for all better schedules.  If
        there is less time than that, it saves as much of what is left.
        """
        if self._costs is None:
            sets = max(_FIRST_SETS, self._sets // _FEWER_SETS)
            self._costs = LeastCosts(self._search.instance, self._priced, sets)
        costs, steps = self._costs, list[tuple[float, float]]()
        costs.fails = 0
        while not costs.is_final and costs.fails < _MOST_FAILS:
            began, last, most = wall_time(), costs.value, self._max_sets
            if costs.cost_to_go is not None:
                in_memory = costs.cost_to_go.sets_within(self._search.budget.memory_left // 4)
                most = min(most, in_memory)
            try:
                costs.step(self._objective(), self._window, most, limit)
            except Stopped:
                break
            if costs.value > last:
                self._adopt(costs)
                if wall_time() - began > _LONG_STEP:
                    self._offer_completions()
            gain = costs.value - last if last > -math.inf else 0.0
            steps.append((gain, wall_time() - began))
            gains, seconds = map(sum, zip(*steps[-_STEPS:], strict=True))
            whole = self._forecast.of(self._objective() - costs.value) or math.inf
            saved = self._forecast.growth * min(whole, limit.left, _MOST_SAVED)
            if len(steps) > _STEPS and gains * saved < seconds:
                break
        self._offer_completions()

    def _adopt(self, costs: LeastCosts) -> None:
        """Search with the best least costs from now on."""
        self._priced, self._evaluation = costs.priced, costs.priced.evaluation
        self._completions, self._budget = costs.cost_to_go, self._gap_of(self._evaluation)
        self._lookaheads.clear()

    @property
    def _value(self) -> float:
        """What cost-to-go bounds prove with nothing decided, in rounds."""
        rise = self._completions.rise if self._completions else 0
        return (self._evaluation.total + rise) / self._evaluation.denominator

    def _offer_completions(self) -> None:
        """Offer the value of cost-to-go bounds with nothing decided."""
        if self._completions is not None:
            # Latency is an integer, so its bound is rounded up.
            total = self._evaluation.total + self._completions.rise
            proved = -(-total // self._evaluation.denominator)
            self._offer(min(proved, self._objective()), (), look_ahead=True)

    def _gap_of(self, evaluation: Evaluation) -> int:
        """Return what reduced costs and slacks of a better schedule may sum to."""
        return (self._objective() - 1) * evaluation.denominator - evaluation.total

    def exclude(
        self, target: int, max_labels: int, limit: Budget | None = None, *, look_ahead: bool
    ) -> int:
        """Exclude schedules below a target, or find the best; return the number of kept labels.

        Raises
        ------
        TooWide
            If this needs more labels.
        Stopped
            If it was asked to stop, or its time is up.
        """
        search, completed = self._search, look_ahead and self._completions is not None
        # Cost-to-go bounds see more than the look-ahead, and a checker repeats them.
        horizon = _EXCLUSION_HORIZON if look_ahead and not completed else 0
        forward = self._forward(target, horizon, complete=completed)
        in_all = self._most_labels(look_ahead=look_ahead)
        starts = forward.search_exhaustively(max_labels, limit or self._limit, in_all=in_all)
        # Without starts no schedule is below the target; else none is below these, the best.
        if starts is not None:
            search.offer_starts(starts, "forward search")
            target = self._objective()
        self._offer(target, forward.kept, look_ahead=look_ahead)
        return sum(forward.kept)

    @property
    def _checkable(self) -> int:
        """How many labels `kvopt verify` repeats in some minutes."""
        return self._search.limits.params.exact_checkable_labels // len(self._search.instance)

    @property
    def _checkable_sets(self) -> int:
        """How many sets it finds in about as long."""
        return max(
            _CHECKABLE_SETS, self._search.limits.params.exact_checkable_labels // _LABELS_A_SET
        )

    def _most_labels(self, *, look_ahead: bool) -> int | None:
        """Return how many labels a search may keep in all, None without a limit.

        If only checkable bounds count, more of them prove a bound that is not offered.
        """
        if not look_ahead:
            return int(_PLAIN * self._checkable)
        if not self._search.checkable or self._is_last:
            return None
        sets = self._completions.size if self._completions is not None else 0
        return int(self._checkable * max(0.0, 1.0 - sets / self._checkable_sets))

    def _offer(self, target: int, kept: Sequence[int], *, look_ahead: bool) -> None:
        """Offer a bound that a search proved, with the proof if a checker can repeat it.

        The checker has no look-ahead, but cost-to-go bounds.  If only checkable bounds count, no
        other one is claimed, since a claim might end the search.
        """
        search, first = self._search, self._search.instance.first_arrival
        completions = self._completions if look_ahead else None
        cuts, sets = (completions.cuts(first), completions.size) if completions else ((), 0)
        effort = sum(kept) * self._checkable_sets + sets * self._checkable
        is_long = effort > self._checkable * self._checkable_sets
        if is_long or (look_ahead and not cuts):
            if not search.checkable:
                search.offer_claimed(target, NAME)
            return
        counts = tuple(kept[first:])  # the checker begins with the first arrival
        proof = self._priced.proof(target, counts, cuts)
        search.offer_checked(target, NAME, proof)

    # ---- beam -------------------------------------------------------------------------

    def search_with_beam(self, width: int, horizon: int, *, repeats: bool = True) -> None:
        """Search below the best schedule with a beam; repeat it until it finds none."""
        while True:
            forward = self._forward(self._objective(), horizon, complete=True)
            try:
                starts = forward.search_with_beam(width, self._limit)
            except TooWide:  # more equally good labels than the limit of the beam
                return
            better = starts is not None and self._search.offer_starts(starts, "forward search")
            if not (better and repeats):
                return

    def widen_beam(self) -> None:
        """Search with wider and wider beams."""
        while not self._limit.over() and self._widens():
            self._search_widely()

    def _widens(self) -> bool:
        """Widen the next wide beam within the limit and memory; return whether it is wider."""
        last, in_memory = self._width, label_limit(self._search) // CHILDREN
        self._width = max(last, min(_WIDER * last, WIDEST_WIDTH, in_memory))
        return self._width > last

    def _search_widely(self) -> None:
        """Search with a wide beam, or without cost-to-go bounds, which see farther, with some."""
        horizons = _WIDE_HORIZONS[:1] if self._completions is not None else _WIDE_HORIZONS
        for horizon in horizons:
            self.search_with_beam(self._width, horizon)

    # ---- both -------------------------------------------------------------------------

    def _objective(self) -> int:
        assert self._search.schedule is not None
        return self._search.schedule.objective

    def _forward(self, target: int, horizon: int, *, complete: bool) -> ForwardSearch:
        return ForwardSearch(
            self._priced.states,
            self._predecessors,
            self._evaluation,
            target,
            self._lookahead(horizon),
            self._completions if complete else None,
            self._search.limits.threads,
        )

    def _lookahead(self, horizon: int) -> Lookahead | None:
        if horizon not in self._lookaheads:
            states, evaluation = self._priced.states, self._evaluation
            fits = horizon > 0 and Lookahead.fits(states, evaluation, horizon)
            lookahead = Lookahead(states, evaluation, self._budget, horizon) if fits else None
            self._lookaheads[horizon] = lookahead
        return self._lookaheads[horizon]

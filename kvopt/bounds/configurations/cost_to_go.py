"""The cost to go: least costs of the rest of a schedule, by the states that it carries.

A dynamic program goes backwards in time.  Each set of states that is carried from one time to the
next gets the least cost of a continuation: slacks, and what starts cost above the cheapest one
then or later, which waiting requests pay in any case.  The relaxation forgets
which requests are active: a waiting request may start several times or never, and requests of one
peak are the same.  So the program has far fewer sets than labels.  If few requests are active
together, as late in a schedule, it can go through all that matter.

It keeps the sets near the least cost of their time.  All others have one value, the cut, which is
at most theirs.  That this is valid is Claim 3.13 of docs/theory.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from kvopt.bounds.configurations.carried_sets import (
    END,
    NEVER,
    NONE,
    PRICE,
    Requests,
    Sets,
    add_configurations,
    extend,
    fill_knapsack,
    fill_possible_states,
    fill_table,
)
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.labels import NO_COST_TO_GO, CostToGoTable, Integers
from kvopt.bounds.configurations.states import Shape, States
from kvopt.errors import Stopped
from kvopt.kernels.budget import Budget

_ROOM = 3
"""Slots of the hash table, as a multiple of the most sets that are kept at a time."""
_MORE_POSSIBLE = 5
"""Largest number of sets within the slack of one time, as a factor of the same."""
_NARROWER, _WIDER = 0.75, 1.05
"""Factors of the window if sets are too many, and if more would fit."""
_MOST_CELLS = 10_000_000
"""Limit of the cells of one table of largest prices of further requests."""
_PART = 20_000
"""Sets that are extended between two checks of the stop flag."""


class CostToGo:
    """Bounds on the cost to go at all times, for searches by one evaluation.

    They are those of Claim 3.13 in docs/theory.

    Parameters
    ----------
    states, evaluation
        The requests and their prices.
    gap
        The most that a schedule below the target costs above the bound, in units of 1 / D.

    Attributes
    ----------
    rise
        The least that a schedule below the target costs above the bound, in the same units.  If it
        is more than ``gap`` no such schedule exists.
    is_whole
        Whether the last tables have all sets within their window.
    """

    def __init__(self, states: States, evaluation: Evaluation, gap: int) -> None:
        self.rise, self.is_whole = 0, False
        self._gap, self._last = gap, len(evaluation.prices) - 1
        self._kept: dict[int, tuple[Integers, Integers, int]] = {}
        self._lines: list[tuple[Integers, Integers]] = []
        self._max_sets = 0
        self._requests = Requests.of(states, evaluation, gap)
        self._kinds = np.unique(states.firsts, return_inverse=True)[1]
        self._until = _last_cheapest_starts(states, evaluation)

    @staticmethod
    def fits(states: States) -> bool:
        """Return whether one worker serves and tables for one time are small."""
        cells = int(states.outputs.sum()) * (states.together + 1) * (states.memory + 1)
        return states.workers == 1 and cells <= _MOST_CELLS

    def fill(self, max_sets: int, window: int, limit: Budget, *, lines: bool = False) -> None:
        """Go backwards through all times; `Stopped` leaves earlier tables valid.

        Parameters
        ----------
        max_sets
            Limit of the sets to keep at each time.
        window
            Sets are kept that cost less than so much more than the cheapest.
        limit
            When to stop.
        lines
            Whether `starts_of_cheapest` will be asked.
        """
        size, together = _ROOM * max_sets, self._requests.together
        sets, others = (Sets.of(size, together, lines=lines) for _ in range(2))
        kept: dict[int, tuple[Integers, Integers, int]] = {}
        self._lines = []
        # After the last time the rest of every set costs nothing.
        cut, lowest, narrowed, is_whole = 0, 0, float(window), True
        for now in range(self._last, 0, -1):
            # Any cut is valid: near the lowest cost few sets are kept; beyond the gap none matter.
            wanted = min(lowest + int(narrowed), self._gap + 1)
            below = self._go_back(now, sets, cut, lowest, wanted, others, max_sets, limit)
            if others.number > max_sets:
                below = others.drop_dearest(max_sets)
            is_whole &= below == wanted
            narrowed = float(max(below - lowest, 1))
            if 2 * others.number < max_sets:
                narrowed = min(_WIDER * narrowed, float(window))
            sets, others, cut = others, sets, below
            costs = sets.costs[: sets.number]
            lowest = int(costs.min(initial=cut))
            kept[now - 1] = sets.keys[: sets.number].copy(), costs.copy(), cut
            if lines:
                self._lines.append(
                    (sets.afters[: sets.number].copy(), sets.begun[: sets.number].copy())
                )
        self._kept, self._max_sets, self.is_whole = kept, max_sets, is_whole
        self.rise = max(self.rise, lowest)

    def _go_back(
        self,
        now: int,
        sets: Sets,
        cut: int,
        lowest: int,
        below: int,
        into: Sets,
        max_sets: int,
        limit: Budget,
    ) -> int:
        """Compute the carried sets of a time below a cost limit; return the limit used."""
        possible = np.empty((self._requests.outputs.sum(), END + 1), dtype=np.int64)
        possible = possible[: fill_possible_states(self._requests, now, possible)]
        ending = possible[possible[:, END] == now]
        ending = ending[np.argsort(-ending[:, PRICE], kind="stable")]
        worth = None
        while True:
            into.clear()
            # All sets that are not kept cost the cut, and the slack of this time.
            if below > cut:
                if worth is None:
                    limits = self._requests.together + 1, self._requests.memory + 1
                    worth = np.zeros((len(possible) + 1, *limits), dtype=np.int64)
                    fill_knapsack(possible, worth)
                allowed = _MORE_POSSIBLE * max_sets
                if not add_configurations(
                    self._requests, now, possible, worth, cut, below, into, allowed
                ):
                    # Any limit is a valid cut (Claim 3.13): a lower one leaves fewer sets.
                    below = cut + (below - cut) // 4
                    continue
            for begin in range(0, max(1, sets.number), _PART):
                if limit.over():
                    raise Stopped
                part = (begin, min(begin + _PART, sets.number))
                if not extend(self._requests, now, sets, part, ending, below, into):
                    below = lowest + int(_NARROWER * (below - lowest))
                    break
            else:
                return below

    def starts_of_cheapest(self) -> Counter[Shape] | None:
        """Return how often each shape starts in the cheapest line of sets, None if it is cut.

        Only starts count that are no later than the last one of the least cost.  What later ones
        cost above those to come does not depend on the least cost.
        """
        counts: Counter[Shape] = Counter()
        width, at = self._requests.ends.shape[1], 0
        # At time 0 the empty set is the only one.
        for now, (afters, begun) in enumerate(reversed(self._lines)):
            if at >= len(afters):
                return None
            for code in begun[at].tolist():
                if code == NONE:
                    break
                kind, end = divmod(code, width)
                output = end - now
                shape = int(self._requests.peaks[kind]) - output, output
                counts[shape] += now <= self._until[shape]
            at = int(afters[at])
            if at == NONE:
                return counts if now + 1 == len(self._lines) else None
        return counts

    @property
    def size(self) -> int:
        """Number of stored sets at all times together."""
        return sum(len(costs) for _, costs, _ in self._kept.values())

    def cuts(self, first: int) -> tuple[int, ...]:
        """Return the cuts of the times from the first arrival on."""
        return tuple(self._kept[time][2] for time in sorted(self._kept) if time >= first)

    def sets_within(self, memory: int) -> int:
        """Return about how many sets fit into so many bytes, with as many times as now."""
        kept = sum(keys.nbytes + costs.nbytes for keys, costs, _ in self._kept.values())
        a_set = 2 * _ROOM * (4 * (self._requests.together + 1) + 24) + kept // max(
            1, self._max_sets
        )
        return memory // a_set

    def after(self, now: int) -> CostToGoTable:
        """Return the costs to go of labels that have decided the starts of a round."""
        if now + 1 not in self._kept:
            return NO_COST_TO_GO
        keys, costs, cut = self._kept[now + 1]
        size = 1 << (2 * len(keys) + 1).bit_length()
        zobrist, ends = self._requests.zobrist[self._kinds], self._requests.ends[self._kinds]
        empty = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
        table = CostToGoTable(zobrist, ends, *empty, cut)
        fill_table(keys, costs, table)
        return table


def _last_cheapest_starts(states: States, evaluation: Evaluation) -> dict[Shape, int]:
    """Return for each shape the last start of the least cost, `NEVER` if all later ones have it."""
    until: dict[Shape, int] = {}
    shapes = zip((states.peaks - states.outputs).tolist(), states.outputs.tolist(), strict=True)
    for shape, costs in zip(shapes, evaluation.reduced_costs, strict=True):
        last = NEVER if costs[-1] == 0 else int(np.flatnonzero(costs == costs.min())[-1])
        until[shape] = max(last, until.get(shape, 0))
    return until

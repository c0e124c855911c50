"""Look-ahead: slack that the next rounds cannot avoid, for any starts.

The active requests of a label fix part of the configurations of the next rounds.  Requests that
start later are young then: their states have small prices, and they have to fit next to the active
ones.  So if the next rounds cannot be filled well, the label has slack to come.

Every number here is at most the slack that follows (Claim 3.10 of docs/theory).  It
guides the beam search, and lets the exhaustive one drop more labels.  Searches that `kvopt verify`
repeats do not use it.
"""

from __future__ import annotations

import numpy as np

from kvopt.bounds.configurations.carried_sets import HOLD, LEFT, PRICE, fill_knapsack
from kvopt.bounds.configurations.evaluation import Evaluation
from kvopt.bounds.configurations.labels import NO_LOOKAHEAD, OFFSETS, Integers, LookaheadTables
from kvopt.bounds.configurations.states import States
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Flags

_NEVER = -(2**60)
"""Value of unreachable entries: less than any sum of prices."""

_MOST_WORK = 40_000_000_000
"""Limit of the additions for all tables; about five seconds."""
_MOST_NUMBERS = 30_000_000
"""Limit of the integers in all tables together; 240 MB."""
_MAX_SLACK = 2**31 - 1
"""Limit of the price of a configuration: tables have 32 bits, so that loops read half as much."""


class Lookahead:
    """Look-ahead, least slacks of the next rounds: a part of Claim 3.10 of docs/theory.

    Parameters
    ----------
    states, evaluation
        The requests and their prices.
    gap
        Starts with a larger reduced cost are ignored.
    horizon
        Rounds of the look-ahead, beyond the one whose slack is known.
    """

    def __init__(self, states: States, evaluation: Evaluation, gap: int, horizon: int) -> None:
        last = len(evaluation.prices) - 1
        ends = np.arange(last + horizon + 2 + int(states.outputs.max()))[:, None]
        times = np.clip(ends - states.remaining, 0, last + 1)  # at 0 and last + 1 nothing is paid
        prices = np.pad(np.minimum(evaluation.prices, _MAX_SLACK), ((0, 1), (0, 0))).astype(
            np.int32
        )
        self._prices = prices[times, np.arange(len(states.holds))]
        self._largest = np.pad(evaluation.largest, (0, horizon + 1)).astype(np.int32)
        self._gains = np.zeros((last, horizon, len(OFFSETS), states.memory + 1), dtype=np.int32)
        _fill_gains(states, evaluation.prices, evaluation.reduced_costs <= gap, self._gains)

    @staticmethod
    def fits(states: States, evaluation: Evaluation, horizon: int) -> bool:
        """Return whether tables for such a horizon are small and quickly computed."""
        times, cells = len(evaluation.prices) * horizon, states.memory + 1
        work = times * horizon * len(states.outputs) * (states.together + 1) * cells
        is_short = evaluation.largest.max() <= _MAX_SLACK
        return is_short and work <= _MOST_WORK and times * len(OFFSETS) * cells <= _MOST_NUMBERS

    def after(self, now: int) -> LookaheadTables:
        """Return the look-ahead for labels that have decided the starts of a round."""
        if now >= len(self._gains):
            return NO_LOOKAHEAD
        return LookaheadTables(now + 2, self._prices, self._largest, self._gains[now])


@compiled
def _fill_gains(states: States, prices: Integers, allowed: Flags, gains: Integers) -> None:
    """Fill in the largest prices that requests can add at a time, by free memory.

    ``gains[now, j - 1]`` is for the time now + 1 + j and requests that start after now.
    """
    horizon, memory, outputs = gains.shape[1], states.memory, states.outputs
    last = allowed.shape[1] - 1
    counts = np.empty(len(states.holds), dtype=np.int64)
    young = np.empty((horizon * len(outputs), 3), dtype=np.int64)
    after = np.empty((len(young) + 1, states.together + 1, memory + 1), dtype=np.int64)
    before = np.empty((states.together + 1, memory + 1), dtype=np.int64)
    for now in range(len(gains)):
        for j in range(1, min(horizon, last - now - 1) + 1):
            time = now + 1 + j
            # Requests that start after now and can be in each state at that time.
            counts[:] = 0
            for i in range(len(outputs)):
                for age in range(1, min(j, outputs[i]) + 1):
                    start = time - age
                    if start >= states.arrivals[i] and allowed[i, min(start, last)]:
                        counts[states.firsts[i] + outputs[i] - age] += 1
            many = 0
            for state in states.order:
                if prices[time, state] > 0:
                    hold, left = states.holds[state], states.remaining[state]
                    for _ in range(min(counts[state], memory // (hold + left))):
                        young[many, PRICE] = prices[time, state]
                        young[many, HOLD], young[many, LEFT] = hold, left
                        many += 1
            _fill_gains_of(young[:many], before, after, gains[now, j - 1])


@compiled
def _fill_gains_of(young: Integers, before: Integers, after: Integers, gains: Integers) -> None:
    """Fill ``gains[offset, free]`` for the states that may be added, by rounds left, descending.

    States with enough rounds left hold tokens at the offset: the tables before and after them are
    combined there.  More free memory allows no less, so gains are made to rise with it.  A gain
    beyond the slack of an empty machine counts as no more.
    """
    members, memory = before.shape[0] - 1, before.shape[1] - 1
    many = len(young)
    after[many] = 0
    fill_knapsack(young, after)
    before[:] = _NEVER
    before[0, 0] = 0
    at = reached = 0
    for offset in range(len(OFFSETS) - 1, -1, -1):
        while at < many and young[at, LEFT] >= OFFSETS[offset]:
            price, hold, left = young[at, PRICE], young[at, HOLD], young[at, LEFT]
            reached = min(reached + 1, members)
            for c in range(reached - 1, -1, -1):
                for held in range(memory - hold - (c + 1) * left + 1):
                    into = held + hold
                    before[c + 1, into] = max(before[c + 1, into], before[c, held] + price)
            at += 1
        gains[offset] = 0
        for c in range(reached + 1):
            for held in range(memory - c * OFFSETS[offset] + 1):
                # So much do the c members hold at the offset; later ones fit next to them.
                free = held + c * OFFSETS[offset]
                gain = before[c, held] + after[at, c, held]
                gains[offset, free] = max(gains[offset, free], min(gain, _MAX_SLACK))
        for free in range(1, memory + 1):
            gains[offset, free] = max(gains[offset, free], gains[offset, free - 1])

"""First prices: what a token-round is worth in the fluid schedule.

Serve volumes as a fluid, the smallest remaining one first (`kvopt.bounds.volume`).  One more
token-round at time t would let everything that waits behind it finish ``1 / M`` rounds earlier,
so the price of a token at t is the number of completions that would move, over M.

The completion of a request of volume v moves with t if from t up to that completion the
fluid never idles and never serves anything with more than v left.  With all arrivals at 0 that
is everything not yet complete at t.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from kvopt.bounds.kinds import Floats
from kvopt.instance import Instance


def fluid_prices(instance: Instance) -> Floats:
    """Return the price of a token at the times ``1, 2, ...`` up to the end of the fluid."""
    spans = list(_spans(instance))
    if not spans:
        return np.zeros(0)
    memory = instance.memory
    begins, ends = (np.array(column, dtype=float) / memory for column in zip(*spans, strict=True))
    last = int(np.ceil(ends.max()))
    changes = np.zeros(last + 2)
    for times, sign in ((begins, 1.0), (ends, -1.0)):
        rounds = times.astype(np.int64)
        rest = times - rounds
        np.add.at(changes, rounds, sign * (1 - rest))  # a round that is cut counts in part
        np.add.at(changes, rounds + 1, sign * rest)
    return np.maximum(changes.cumsum()[:last] / memory, 0.0)


def fluid_end(instance: Instance) -> int:
    """Return the round in which the fluid schedule ends."""
    return max((-(-end // instance.memory) for _, end in _spans(instance)), default=0)


def _spans(instance: Instance) -> Iterator[tuple[int, int]]:
    """Yield for each request from when on time moves its completion, and the completion.

    Time is counted in tokens: round t is the tokens ``(t - 1) M + 1 .. t M``.
    """
    arriving = sorted(((r.arrival * instance.memory, r.volume) for r in instance), reverse=True)
    waiting: list[tuple[int, int]] = []  # what is left, volume
    stretches = _Stretches()
    clock = 0
    while arriving or waiting:
        if not waiting and arriving[-1][0] > clock:
            clock = arriving[-1][0]
            stretches.idle_until(clock)
        while arriving and arriving[-1][0] <= clock:
            volume = arriving.pop()[1]
            heapq.heappush(waiting, (volume, volume))
        left, volume = heapq.heappop(waiting)
        served = left if not arriving else min(left, arriving[-1][0] - clock)
        clock += served
        stretches.serve(left, clock)
        if served == left:
            yield stretches.begin_below(volume), clock
        else:
            heapq.heappush(waiting, (left - served, volume))


class _Stretches:
    """What was left of what was served, for the question when it last was more than v.

    Only stretches with more left than all later ones can be an answer, so what is kept falls
    from entry to entry.
    """

    def __init__(self) -> None:
        self._lefts: list[int] = []  # negated: ascending
        self._ends: list[int] = []

    def idle_until(self, clock: int) -> None:
        """Nothing was served: nothing before counts."""
        self._lefts, self._ends = [-(2**80)], [clock]

    def serve(self, left: int, clock: int) -> None:
        """Serve a request with so much left, up to ``clock``."""
        while self._lefts and -self._lefts[-1] <= left:
            self._lefts.pop()
            self._ends.pop()
        self._lefts.append(-left)
        self._ends.append(clock)

    def begin_below(self, volume: int) -> int:
        """Return the end of the last stretch that had more than ``volume`` left."""
        more = bisect_left(self._lefts, -volume)
        return self._ends[more - 1] if more else 0

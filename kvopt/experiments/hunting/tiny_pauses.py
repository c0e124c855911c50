"""The optimum with pauses of tiny instances in microseconds: it steers a hunt and proves nothing.

A search in time: in each round every set of requests that fits, and to which none can be added,
yields a token, and a branch ends when its bound reaches the cutoff.  Claim 3 of ``docs/pausing.md``
shows why other sets need not be tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kvopt.experiments.hunting.space import Case
from kvopt.incumbent.proofs import Prices
from kvopt.kernels.compiled import compiled
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.search.exact.starts import insert, is_twin
from kvopt.simulate.simulator import Stopped

_MOST_SETS = 3_000_000
"""Sets of requests that are tried, for a second or so; then labels are merged instead."""

_STOPPED = -2
"""Result of a search that was stopped after `_MOST_SETS` sets."""


def paused_optimum_below(
    case: Case, cutoff: int, should_stop: Callable[[], bool] = lambda: False
) -> int | None:
    """Return the least total latency with pauses if it is below ``cutoff``, else None.

    Examples
    --------
    >>> pair = (10, ((0, 0, 10), (6, 5, 1)))
    >>> paused_optimum_below(pair, 14), paused_optimum_below(pair, 12)
    (12, None)
    """
    memory, requests = case
    if not requests:
        return 0 if cutoff > 0 else None
    table = np.array(sorted(requests), dtype=np.int64)
    shift = int(table[:, 0].sum())
    best = int(_search(memory, table, cutoff + shift, _MOST_SETS))
    if best == _STOPPED:
        return _by_layers(case, cutoff, should_stop)
    return None if best < 0 else best - shift


def _by_layers(case: Case, cutoff: int, should_stop: Callable[[], bool]) -> int | None:
    from kvopt.search.exact.paused_layers import search_layers

    memory, requests = case
    instance = Instance(memory, [Request(*triple) for triple in requests])
    found = search_layers(instance, Prices((), 1), cutoff, should_stop)
    if found is None:
        raise Stopped
    return None if found.schedule is None else found.schedule.objective


@compiled
def _search(memory: int, table: Any, cutoff: int, most: int) -> int:
    """Return the least sum of completions below the cutoff, -1 if none, or `_STOPPED`."""
    n = len(table)
    done = np.zeros(n, dtype=np.int64)
    by_volume, ends = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    first = table[:, 0].min()
    sets = np.zeros(cutoff + 2, dtype=np.int64)  # of the rounds so far; in the last, the next one
    depth, completed, best, tried = 0, 0, -1, 0
    sets[0] = 1 << n
    while depth >= 0:
        time = first + depth
        sets[depth] -= 1
        chosen = sets[depth]
        if chosen < 0:
            depth -= 1
            if depth >= 0:
                completed -= _step(table, done, sets[depth], first + depth, -1)
            continue
        if not _is_tried(memory, table, done, time, chosen):
            continue
        tried += 1
        if tried > most:
            return _STOPPED
        completed += _step(table, done, chosen, time, 1)
        least = _least(memory, table, done, time + 1, by_volume, ends)
        if completed + least < cutoff and least > 0:
            depth += 1
            sets[depth] = 1 << n
            continue
        if completed + least < cutoff:
            best = cutoff = completed
        completed -= _step(table, done, chosen, time, -1)
    return best


@compiled
def _step(table: Any, done: Any, chosen: int, time: int, by: int) -> int:
    """Give the chosen requests a token, or take it back; return the new completions."""
    completed = 0
    for i in range(len(table)):
        if chosen >> i & 1:
            if max(done[i], done[i] + by) == table[i, 2]:
                completed += time + 1
            done[i] += by
    return completed


@compiled
def _is_tried(memory: int, table: Any, done: Any, time: int, chosen: int) -> bool:
    """Whether a set fits and nothing can be added; of equal requests the first ones go first."""
    room = memory
    for i in range(len(table)):
        if chosen >> i & 1:
            if table[i, 0] > time or done[i] == table[i, 2]:
                return False
            room -= table[i, 1] + done[i] + 1
            is_first = i == 0 or chosen >> (i - 1) & 1 or done[i - 1] != done[i]
            if not is_first and is_twin(table, i):
                return False
    if room < 0:
        return False
    for i in range(len(table)):
        is_left = not chosen >> i & 1 and table[i, 0] <= time and done[i] < table[i, 2]
        if is_left and table[i, 1] + done[i] + 1 <= room:
            return False
    return True


@compiled
def _least(memory: int, table: Any, done: Any, time: int, volumes: Any, ends: Any) -> int:
    """Return a bound on the remaining completions, 0 if none remain.

    The j-th completion is not before the j-th smallest completion of requests alone, and not before
    the j smallest volumes are served.
    """
    count = 0
    for i in range(len(table)):
        left = table[i, 2] - done[i]
        if left > 0:
            insert(ends, count, max(time, table[i, 0]) + left)
            insert(volumes, count, left * (table[i, 1] + done[i]) + left * (left + 1) // 2)
            count += 1
    total, served = 0, 0
    for rank in range(count):
        served += volumes[rank]
        total += max(ends[rank], time + (served + memory - 1) // memory)
    return total

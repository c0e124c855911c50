"""Exhaustive search for the best starts of a few requests on one worker, in rounds, below a target.

At each round every waiting request starts or waits, in a fixed order, and a branch ends if its
bound reaches the target.  Tiny cases take microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kvopt.kernels.compiled import compiled
from kvopt.kernels.copying import order_of
from kvopt.problem.arrays import Integers
from kvopt.simulate.simulator import Stopped

_STEPS = 100_000
"""Steps between two checks of the stop flag."""
_TIME, _NEXT, _DEPTH, _SUM, _TARGET, _IS_FOUND, _LAST, _ENTRIES = range(8)
"""Entries of the state: the next round and request, the number of started requests, the sum of
their completions, its limit, whether a schedule below the limit exists, and a time by which all
requests complete without idle rounds."""


def best_below(
    memory: int,
    requests: Sequence[tuple[int, int, int]],
    target: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[int, list[int]] | None:
    """Return the least total latency below a target and its starts, or None.

    Requests are arrival, prompt and output.

    Raises
    ------
    Stopped
        If it was asked to stop.

    Examples
    --------
    >>> backlog = [(0, 1, 3), (0, 1, 4), (0, 1, 5), (0, 1, 7)]
    >>> best_below(9, backlog, 28)
    (27, [0, 3, 0, 5])
    >>> best_below(9, backlog, 27) is None
    True
    """
    count = len(requests)
    if not count:
        return (0, []) if target > 0 else None
    order = sorted(range(count), key=requests.__getitem__)
    table = np.array([requests[i] for i in order], dtype=np.int64)
    arrivals = sum(arrival for arrival, _, _ in requests)
    last = requests[order[-1]][0] + sum(output for _, _, output in requests)
    work = np.zeros(_ENTRIES + 3 * count + 2 * last, dtype=np.int64)
    work[_TIME], work[_LAST], work[_TARGET] = requests[order[0]][0], last, target + arrivals
    while not _search(memory, table, work, _STEPS):  # ``work`` has the whole state
        if should_stop():
            raise Stopped
    if not work[_IS_FOUND]:
        return None
    found = work[_ENTRIES : _ENTRIES + count].tolist()
    starts = [start for _, start in sorted(zip(order, found, strict=True))]
    return int(work[_TARGET]) - arrivals, starts


class _Table(NamedTuple):
    """Requests in a fixed order, by columns, and their positions by volume."""

    arrivals: Integers
    outputs: Integers
    volumes: Integers
    by_volume: Integers


@compiled
def _search(memory: int, table: Any, work: Any, steps: int) -> bool:
    """Take so many steps, and return whether the search is complete.

    ``work`` has the state; the best starts; the current starts plus one, 0 for waiting requests;
    a stack of the started requests; room for a bound; and the tokens held.
    """
    n = len(table)
    best, starts = work[_ENTRIES : _ENTRIES + n], work[_ENTRIES + n : _ENTRIES + 2 * n]
    order, held = work[_ENTRIES + 2 * n : _ENTRIES + 3 * n], work[_ENTRIES + 3 * n :]
    ends = np.empty(n, dtype=np.int64)
    arrivals, outputs = table[:, 0], table[:, 2]
    volumes = table[:, 1] * outputs + outputs * (outputs + 1) // 2
    known = _Table(arrivals, outputs, volumes, order_of(volumes))
    time, i, depth, completed, target = work[0], work[1], work[2], work[3], work[4]
    while True:
        if depth == n:  # below the target, else the bound would have ended this branch
            best[:], target, work[_IS_FOUND] = starts - 1, completed, 1
        elif (
            time < work[_LAST]
            and completed + _least(known, memory, time, i, starts, held, ends) < target
        ):
            while i < n and not _may_start(memory, time, i, starts, table, held):
                i += 1
            if i < n:
                starts[i] = time + 1
                for token in range(1, table[i, 2] + 1):
                    held[time + token] += table[i, 1] + token
                completed += time + table[i, 2]
                order[depth] = i
                depth += 1
                i += 1
            else:
                time, i = time + 1, 0
            continue
        steps -= 1
        if depth == 0 or steps < 0:
            break
        depth -= 1  # undo the last start and let that request wait in this round
        i = order[depth]
        time = starts[i] - 1
        starts[i] = 0
        for token in range(1, table[i, 2] + 1):
            held[time + token] -= table[i, 1] + token
        completed -= time + table[i, 2]
        i += 1
    work[0], work[1], work[2], work[3], work[4] = time, i, depth, completed, target
    return bool(depth == 0)


@compiled
def _may_start(memory: int, time: int, i: int, starts: Any, table: Any, held: Any) -> bool:
    """Whether a request waits and fits, and is the first of equal ones."""
    if starts[i] or table[i, 0] > time:
        return False
    if i > 0 and not starts[i - 1] and is_twin(table, i):
        return False
    for token in range(1, table[i, 2] + 1):
        if held[time + token] + table[i, 1] + token > memory:
            return False
    return True


@compiled
def is_twin(table: Any, i: int) -> bool:
    """Whether a request equals the one before it."""
    same = table[i, 0] == table[i - 1, 0] and table[i, 1] == table[i - 1, 1]
    return bool(same and table[i, 2] == table[i - 1, 2])


@compiled
def insert(values: Integers, count: int, value: int) -> None:
    """Insert a value where the first ones are in ascending order."""
    while count > 0 and values[count - 1] > value:
        values[count] = values[count - 1]
        count -= 1
    values[count] = value


@compiled
def _least(
    known: _Table, memory: int, time: int, first: int, starts: Any, held: Any, ends: Any
) -> int:
    """Return a bound on the completions of requests that have not started.

    Requests before ``first`` start in the next round or later, the others in this one or later.
    The j-th completion is not before the j-th of these ends, and not before the j smallest
    volumes are served in the remaining memory.
    """
    count = 0
    for j in range(len(starts)):
        if not starts[j]:
            begin = max(time + 1 if j < first else time, known.arrivals[j])
            insert(ends, count, begin + known.outputs[j])
            count += 1
    total, rank, served, room, moment = 0, 0, 0, 0, time
    for position in range(len(starts)):
        j = known.by_volume[position]
        if not starts[j]:
            served += known.volumes[j]
            while room < served:
                moment += 1
                room += memory - held[moment] if moment < len(held) else memory
            total += max(ends[rank], moment)
            rank += 1
    return total

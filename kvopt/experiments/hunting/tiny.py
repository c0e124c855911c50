"""The optimum of tiny instances in microseconds: it steers a hunt and proves nothing.

A search in time: at each round every waiting request is started or left, in a fixed order, and a
branch ends when its bound reaches the cutoff.  What a hunt reports is certified afterwards by
other means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kvopt.kernels.compiled import compiled

Case = tuple[int, tuple[tuple[int, int, int], ...]]
"""Memory, and ``(arrival, prompt, output)`` of each request."""


def optimum_below(case: Case, cutoff: int) -> int | None:
    """Return the least total latency if it is below ``cutoff``, else None.

    Examples
    --------
    >>> seed = (9, ((0, 1, 3), (0, 1, 4), (0, 1, 5), (0, 1, 7)))
    >>> optimum_below(seed, 28), optimum_below(seed, 27)
    (27, None)
    """
    memory, requests = case
    if not requests:
        return 0 if cutoff > 0 else None
    table = np.array(sorted(requests), dtype=np.int64)
    shift = int(table[:, 0].sum())
    best = int(_search(memory, table, cutoff + shift))
    return None if best < 0 else best - shift


@compiled
def _search(memory: int, table: Any, cutoff: int) -> int:
    """Return the least sum of completions below the cutoff, or -1."""
    n = len(table)
    arrivals, prompts, outputs = table[:, 0], table[:, 1], table[:, 2]
    volumes = prompts * outputs + outputs * (outputs + 1) // 2
    by_volume = np.argsort(volumes)
    held = np.zeros(cutoff + outputs.max() + 2, dtype=np.int64)
    starts = np.full(n, -1, dtype=np.int64)
    order = np.zeros(n, dtype=np.int64)  # of the started, the last one on top
    ends = np.zeros(n, dtype=np.int64)  # room for a bound
    depth = time = i = completed = 0
    best = -1
    while True:
        if depth == n:  # cheaper than the best so far, or the bound would have ended it
            best = cutoff = completed
        elif (
            completed
            + _least(memory, time, i, starts, arrivals, outputs, volumes, by_volume, held, ends)
            < cutoff
        ):
            while i < n and not _may_start(memory, time, i, starts, table, held):
                i += 1
            if i < n:
                starts[i] = time
                for token in range(1, outputs[i] + 1):
                    held[time + token] += prompts[i] + token
                completed += time + outputs[i]
                order[depth] = i
                depth += 1
                i += 1
            else:
                time, i = time + 1, 0
            continue
        if depth == 0:
            return best
        depth -= 1  # take the last start back and leave that request for this round
        i = order[depth]
        time = starts[i]
        starts[i] = -1
        for token in range(1, outputs[i] + 1):
            held[time + token] -= prompts[i] + token
        completed -= time + outputs[i]
        i += 1


@compiled
def _may_start(memory: int, time: int, i: int, starts: Any, table: Any, held: Any) -> bool:
    """Whether a request waits and fits; of equal requests the first one goes first."""
    if starts[i] >= 0 or table[i, 0] > time:
        return False
    if i > 0 and starts[i - 1] < 0:
        same = True
        for column in range(3):
            same = same and table[i, column] == table[i - 1, column]
        if same:
            return False
    for token in range(1, table[i, 2] + 1):
        if held[time + token] + table[i, 1] + token > memory:
            return False
    return True


@compiled
def _least(
    memory: int,
    time: int,
    first: int,
    starts: Any,
    arrivals: Any,
    outputs: Any,
    volumes: Any,
    by_volume: Any,
    held: Any,
    ends: Any,
) -> int:
    """Return a bound on the completions of what has not started.

    Requests before ``first`` start in the next round or later, the others in this one or later.
    The j-th completion is not before the j-th of these ends, and not before the j smallest
    volumes are served in what memory is left.
    """
    count = 0
    for j in range(len(starts)):
        if starts[j] < 0:
            end = max(time + 1 if j < first else time, arrivals[j]) + outputs[j]
            place = count
            while place > 0 and ends[place - 1] > end:
                ends[place] = ends[place - 1]
                place -= 1
            ends[place] = end
            count += 1
    total, rank, served, room, moment = 0, 0, 0, 0, time
    for position in range(len(starts)):
        j = by_volume[position]
        if starts[j] < 0:
            served += volumes[j]
            while room < served:
                moment += 1
                room += memory - held[moment] if moment < len(held) else memory
            total += max(ends[rank], moment)
            rank += 1
    return total

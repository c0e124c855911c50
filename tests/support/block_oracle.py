"""Brute force where memory is given out in whole blocks, written from the definition alone.

As in `oracle`, nothing of kvopt is imported.  What holds h tokens takes ``ceil(h / block)`` of the
``memory // block`` blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

from oracle import Triple


def blocks_of(tokens: int, block: int) -> int:
    """Return the blocks that hold so many tokens."""
    return tokens // block + (tokens % block > 0)


def most_blocks(requests: Sequence[Triple], times: Sequence[Sequence[int]], block: int) -> int:
    """Return the most blocks that active times take, looked at time by time."""
    ends = range(max((max(active) for active in times), default=0) + 1)
    return max(
        sum(
            blocks_of(prompt + active.index(time) + 1, block)
            for (_, prompt, _), active in zip(requests, times, strict=True)
            if time in active
        )
        for time in ends
    )


def optimum(memory: int, requests: Sequence[Triple], block: int, *, pauses: bool) -> int:
    """Return the least total latency: every round, every set of requests that fits."""
    return _after(memory // block, block, tuple(requests), pauses, 0, (0,) * len(requests))


@cache
def _after(
    blocks: int,
    block: int,
    requests: tuple[Triple, ...],
    pauses: bool,
    clock: int,
    produced: tuple[int, ...],
) -> int:
    """Return the least sum of latencies after a round, where so many tokens are produced.

    A round costs 1 for each request that is there and not done.  Without pauses what has begun and
    is not done is in every set.  Once all have arrived the number of the round makes no difference,
    and a round without work is left out: what follows it could begin one round earlier.
    """
    there = [
        i
        for i, (arrival, _, output) in enumerate(requests)
        if arrival <= clock and produced[i] < output
    ]
    last = max((arrival for arrival, _, _ in requests), default=0)
    if not there and clock >= last:
        return 0
    bound_to_go_on = [i for i in there if produced[i] and not pauses]
    best, following = 10**9, min(clock + 1, last)
    for size in range(1 if clock >= last else 0, len(there) + 1):
        for chosen in combinations(there, size):
            if not set(bound_to_go_on) <= set(chosen):
                continue
            if sum(blocks_of(requests[i][1] + produced[i] + 1, block) for i in chosen) > blocks:
                continue
            after = tuple(g + (i in chosen) for i, g in enumerate(produced))
            best = min(best, _after(blocks, block, requests, pauses, following, after))
    return best + len(there)

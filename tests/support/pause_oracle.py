"""Brute force where requests may pause, written from the definition alone.

As in `oracle`, nothing of kvopt is imported.  Request i is active at ``output`` times after its
arrival and holds ``prompt + j`` tokens at the j-th of them; at other times it holds none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import block_oracle
from oracle import Triple


def held(requests: Sequence[Triple], times: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the tokens held at each time at which a request is active."""
    tokens: dict[int, int] = defaultdict(int)
    for (_, prompt, _), active in zip(requests, times, strict=True):
        for produced, time in enumerate(active, 1):
            tokens[time] += prompt + produced
    return tokens


def feasible(memory: int, requests: Sequence[Triple], times: Sequence[Sequence[int]]) -> bool:
    """Whether all tokens are produced, at different times after the arrival, within memory."""
    for (arrival, _, output), active in zip(requests, times, strict=True):
        if len(active) != output or sorted(set(active)) != list(active) or active[0] <= arrival:
            return False
    return all(tokens <= memory for tokens in held(requests, times).values())


def latency(requests: Sequence[Triple], times: Sequence[Sequence[int]]) -> int:
    """Return the total latency of active times."""
    return sum(
        active[-1] - arrival for (arrival, _, _), active in zip(requests, times, strict=True)
    )


def optimum(memory: int, requests: Sequence[Triple]) -> int:
    """Return the least total latency: every round, every set of requests that fits."""
    return block_oracle.optimum(memory, requests, 1, pauses=True)

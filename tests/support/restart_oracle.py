"""Brute force where a request may be evicted, lose its tokens and start again.

As in `oracle`, nothing of kvopt is imported.  A request that is not active in a round after it
began, and is not done, has lost what it produced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from oracle import Triple

State = tuple[int, ...]
"""Tokens that each request holds of its own."""


def optimum(memory: int, requests: Sequence[Triple]) -> int:
    """Return the least total latency: every round, every set of requests that fits."""
    done = tuple(output for _, _, output in requests)
    if not requests:
        return 0
    waits = {(0,) * len(requests): 0}
    clock, best = 0, 10**9
    while waits:
        following: dict[State, int] = {}
        for state, waited in waits.items():
            after = waited + sum(
                arrival <= clock and produced < output
                for (arrival, _, output), produced in zip(requests, state, strict=True)
            )
            for new in _next(memory, requests, state, clock):
                rest = sum(done) - sum(new)  # each token takes a round in which it is waited for
                if after + rest < best and after < following.get(new, best):
                    following[new] = after
        clock += 1
        best = min(best, following.pop(done, best))
        waits = following
    return best


def _next(memory: int, requests: Sequence[Triple], state: State, clock: int) -> Iterator[State]:
    choices = [
        (output,) if produced == output else ((0, produced + 1) if arrival <= clock else (0,))
        for (arrival, _, output), produced in zip(requests, state, strict=True)
    ]
    for new in product(*choices):
        held = sum(
            prompt + g
            for (_, prompt, output), g, before in zip(requests, new, state, strict=True)
            if g > 0 and before < output
        )
        if held <= memory:
            yield new

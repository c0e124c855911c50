"""Optimal schedules in continuous time by trying all of them; shares no code with kvopt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from oracle import Triple, feasible

Lines = Sequence[tuple[int, int]]
"""Fixed nanoseconds of a round, and nanoseconds for each token that it processes."""


class Server(NamedTuple):
    """How long rounds last."""

    lines: Lines
    prompt_ns: int
    kv_ns: int

    def round_ns(self, tokens: int, prompts: int, held: int) -> int:
        """Return the nanoseconds of a round."""
        most = max(fixed + each * tokens for fixed, each in self.lines)
        return most + self.prompt_ns * prompts + self.kv_ns * held


def timed_tel(server: Server, requests: Sequence[Triple], starts: Sequence[int]) -> int:
    """Return the total latency of a schedule given by rounds, round by round.

    Arrivals are nanoseconds.  A round begins when the one before it has ended and all that
    start with it are there; rounds without work take no time.
    """
    now = total = 0
    last = max(k + o for k, (_, _, o) in zip(starts, requests, strict=True))
    for r in range(1, last + 1):
        active = [
            (r - k, *request)
            for k, request in zip(starts, requests, strict=True)
            if k < r <= k + request[2]
        ]
        new = [(a, s) for j, a, s, _ in active if j == 1]
        if not active:
            continue
        now = max([now, *(a for a, _ in new)])
        prompts = sum(s for _, s in new)
        held = sum(s + j for j, _, s, _ in active)
        now += server.round_ns(len(active) + prompts, prompts, held)
        total += sum(now - a for j, a, _, o in active if j == o)
    return total


def timed_schedules(memory: int, requests: Sequence[Triple]) -> Iterator[tuple[int, ...]]:
    """Yield all schedules by rounds that an optimal one can be among."""
    rounds = range(sum(o for _, _, o in requests))
    early = [(0, s, o) for _, s, o in requests]
    for starts in product(rounds, repeat=len(requests)):
        if feasible(memory, early, starts):
            yield starts


def timed_optimum(server: Server, memory: int, requests: Sequence[Triple]) -> int:
    """Return the least total latency, in nanoseconds."""
    if not requests:
        return 0
    return min(timed_tel(server, requests, k) for k in timed_schedules(memory, requests))

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


def timed_completions(
    server: Server, requests: Sequence[Triple], starts: Sequence[int]
) -> list[int]:
    """Return when each request of a schedule given by rounds completes, round by round.

    Arrivals are nanoseconds.  A round begins when the one before it has ended and all that
    start with it are there; rounds without work take no time.
    """
    now, ends = 0, [0] * len(requests)
    last = max(k + o for k, (_, _, o) in zip(starts, requests, strict=True))
    for r in range(1, last + 1):
        active = [
            (i, r - k, *request)
            for i, (k, request) in enumerate(zip(starts, requests, strict=True))
            if k < r <= k + request[2]
        ]
        new = [(a, s) for _, j, a, s, _ in active if j == 1]
        if not active:
            continue
        now = max([now, *(a for a, _ in new)])
        prompts = sum(s for _, s in new)
        held = sum(s + j for _, j, _, s, _ in active)
        now += server.round_ns(len(active) + prompts, prompts, held)
        for i, j, _, _, o in active:
            if j == o:
                ends[i] = now
    return ends


def timed_tel(server: Server, requests: Sequence[Triple], starts: Sequence[int]) -> int:
    """Return the total latency of a schedule given by rounds."""
    ends = timed_completions(server, requests, starts)
    return sum(end - a for end, (a, _, _) in zip(ends, requests, strict=True))


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


def timed_most(
    server: Server, memory: int, requests: Sequence[Triple], allowed: Sequence[int]
) -> int:
    """Return how many can complete so many nanoseconds after their arrival."""
    return max(
        sum(
            end - a <= most
            for end, (a, _, _), most in zip(
                timed_completions(server, requests, starts), requests, allowed, strict=True
            )
        )
        for starts in timed_schedules(memory, requests)
    )

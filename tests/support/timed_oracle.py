"""Optimal schedules in continuous time by trying all of them; shares no code with kvopt.

With pauses and prompts in pieces what is tried is at least as good as what a server can do: a
request that returns brings its tokens and its part of the prompt back for nothing.  So a bound
that is never above this covers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from oracle import Triple

Lines = Sequence[tuple[int, int]]
"""Fixed nanoseconds of a round, and nanoseconds for each token that it processes."""
State = tuple[tuple[int, int], ...]
"""Of each request the prompt tokens that are processed, and the tokens produced."""


class Server(NamedTuple):
    """How long rounds last."""

    lines: Lines
    prompt_ns: int
    kv_ns: int

    def round_ns(self, tokens: int, prompts: int, held: int) -> int:
        """Return the nanoseconds of a round."""
        most = max(fixed + each * tokens for fixed, each in self.lines)
        return most + self.prompt_ns * prompts + self.kv_ns * held


class Step(NamedTuple):
    """What a request does in a round: all 0 if it is not active."""

    prompt: int
    produced: int
    held: int


class Timed(NamedTuple):
    """Requests on a server, whose arrivals are nanoseconds, and what schedules may do."""

    server: Server
    memory: int
    requests: Sequence[Triple]
    scope: str
    waits: bool = False
    """Whether a round may wait for an arrival while requests are active."""

    @property
    def nothing(self) -> State:
        """What is done at first."""
        return ((0, 0),) * len(self.requests)

    def steps(self, request: Triple, prompt: int, produced: int) -> Iterator[Step]:
        """Yield what a request that is there can do in a round."""
        _, whole, output = request
        has_begun = prompt > 0 or produced > 0
        if produced == output or "pauses" in self.scope or not has_begun:
            yield Step(0, 0, 0)
        if produced < output:
            yield Step(whole - prompt, 1, whole + produced + 1)
            pieces = range(1, whole - prompt + 1) if "chunks" in self.scope else ()
            yield from (Step(piece, 0, prompt + piece) for piece in pieces)

    def rounds(self, now: int, state: State) -> Iterator[tuple[int | None, State, list[int]]]:
        """Yield when what comes next ends, the state then, and who has produced a token.

        A round without work goes on to the next arrival; after the last one it never ends.
        """
        choices = [
            list(self.steps(request, *each)) if request[0] <= now else [Step(0, 0, 0)]
            for request, each in zip(self.requests, state, strict=True)
        ]
        later = min((a for a, _, _ in self.requests if a > now), default=None)
        if self.waits and later is not None:
            yield later, state, []
        every: list[tuple[tuple[Step, ...], int]] = [((), 0)]
        for own in choices:
            every = [
                ((*chosen, step), held + step.held)
                for chosen, held in every
                for step in own
                if held + step.held <= self.memory
            ]
        for chosen, held in every:
            prompts = sum(step.prompt for step in chosen)
            tokens = prompts + sum(step.produced for step in chosen)
            end = now + self.server.round_ns(tokens, prompts, held) if tokens else later
            pairs = enumerate(zip(state, chosen, strict=True))
            after = tuple((d + step.prompt, g + step.produced) for _, ((d, g), step) in pairs)
            yield end, after, [i for i, step in enumerate(chosen) if step.produced]


def scoped_optimum(server: Server, memory: int, requests: Sequence[Triple], scope: str) -> int:
    """Return the least total latency in nanoseconds."""
    return _least(Timed(server, memory, requests, scope))


def timed_optimum(server: Server, memory: int, requests: Sequence[Triple]) -> int:
    """Return the least total latency of what neither pauses nor has prompts in pieces."""
    return _least(Timed(server, memory, requests, "runs", waits=True))


def _least(timed: Timed) -> int:
    @cache
    def after(now: int, state: State) -> int:
        """Return the least sum of completions less arrivals of what is not done."""
        if all(g == o for (_, g), (_, _, o) in zip(state, timed.requests, strict=True)):
            return 0
        values = []
        for end, following, produced in timed.rounds(now, state):
            if end is None:
                continue
            done = [i for i in produced if following[i][1] == timed.requests[i][2]]
            latency = sum(end - timed.requests[i][0] for i in done)
            values.append(latency + after(end, following))
        return min(values, default=10**15)

    return after(0, timed.nothing)

"""Least total latency in continuous time with pauses and with prompts in pieces, by trying all.

What is tried is at least as good as what a server can do: a request that returns brings its tokens
and its part of the prompt back for nothing.  So a bound that is never above this covers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

from oracle import Triple
from timed_oracle import Server

State = tuple[tuple[int, int], ...]
"""Of each request the prompt tokens that are processed, and the tokens produced."""


class Step(NamedTuple):
    """What a request does in a round: all 0 if it is not active."""

    prompt: int
    produced: int
    held: int


def steps(request: Triple, prompt: int, produced: int, scope: str) -> Iterator[Step]:
    """Yield what a request that is there can do in a round."""
    _, whole, output = request
    has_begun = prompt > 0 or produced > 0
    if produced == output or "pauses" in scope or not has_begun:
        yield Step(0, 0, 0)
    if produced < output:
        yield Step(whole - prompt, 1, whole + produced + 1)
        pieces = range(1, whole - prompt + 1) if "chunks" in scope else ()
        yield from (Step(piece, 0, prompt + piece) for piece in pieces)


def scoped_optimum(server: Server, memory: int, requests: Sequence[Triple], scope: str) -> int:
    """Return the least total latency in nanoseconds."""

    @cache
    def after(now: int, state: State) -> int:
        """Return the least sum of completions less arrivals of what is not done."""
        if all(g == o for (_, g), (_, _, o) in zip(state, requests, strict=True)):
            return 0
        choices = [
            list(steps(request, *each, scope)) if request[0] <= now else [Step(0, 0, 0)]
            for request, each in zip(requests, state, strict=True)
        ]
        later = min((a for a, _, _ in requests if a > now), default=None)
        values = []
        for chosen in product(*choices):
            work = sum(step.prompt + step.produced for step in chosen)
            if sum(step.held for step in chosen) > memory or (work == 0 and later is None):
                continue
            end = later if work == 0 else now + _lasts(server, chosen)
            assert end is not None
            following = tuple(
                (d + step.prompt, g + step.produced)
                for (d, g), step in zip(state, chosen, strict=True)
            )
            done = sum(
                end - a
                for (a, _, o), (_, g), step in zip(requests, following, chosen, strict=True)
                if step.produced and g == o
            )
            values.append(done + after(end, following))
        return min(values, default=10**15)

    return after(0, ((0, 0),) * len(requests))


def _lasts(server: Server, chosen: Sequence[Step]) -> int:
    prompts = sum(step.prompt for step in chosen)
    tokens = prompts + sum(step.produced for step in chosen)
    return server.round_ns(tokens, prompts, sum(step.held for step in chosen))

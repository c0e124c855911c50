"""Most requests that attain a deadline, by trying all schedules; shares no code with kvopt.

A request need not run at all here: what is left out can run when all others are done.  A server
whose rounds all last 1 gives the problem in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations, product

from oracle import Triple, optimum_within
from scoped_timed_oracle import Step, steps
from timed_oracle import Server

State = tuple[tuple[int, int], ...]
"""Of each request the prompt tokens that are processed, and the tokens produced."""

ROUNDS = Server([(1, 0)], 0, 0)
"""Every round lasts 1."""


def most_by_sets(memory: int, requests: Sequence[Triple], allowed: Sequence[int]) -> int:
    """Return how many runs can complete in time, in rounds: the largest set that fits."""
    for size in range(len(requests), 0, -1):
        for chosen in combinations(range(len(requests)), size):
            some = [requests[i] for i in chosen]
            pairs = zip(chosen, some, strict=True)
            windows = [range(a, a + allowed[i] - o + 1) for i, (a, _, o) in pairs]
            if optimum_within(memory, some, windows) is not None:
                return size
    return 0


def most_in_time(
    server: Server,
    memory: int,
    requests: Sequence[Triple],
    allowed: Sequence[int],
    scope: str,
    *,
    first: bool,
) -> int:
    """Return how many can complete, or have their first token, so long after their arrival."""

    @cache
    def after(now: int, state: State) -> int:
        """Return how many more attain, -1 if memory cannot hold what has to go on."""
        later = min((a for a, _, _ in requests if a > now), default=None)
        choices = []
        for request, (prompt, produced) in zip(requests, state, strict=True):
            can = request[0] <= now
            choices.append(
                list(steps(request, prompt, produced, scope)) if can else [Step(0, 0, 0)]
            )
        best = -1
        for chosen in product(*choices):
            tokens = sum(step.prompt + step.produced for step in chosen)
            if sum(step.held for step in chosen) > memory:
                continue
            if tokens == 0 and later is None:
                best = max(best, 0)
                continue
            prompts = sum(step.prompt for step in chosen)
            held = sum(step.held for step in chosen)
            end = now + server.round_ns(tokens, prompts, held) if tokens else later
            assert end is not None
            following = tuple(
                (d + step.prompt, g + step.produced)
                for (d, g), step in zip(state, chosen, strict=True)
            )
            gained = sum(
                bool(step.produced) and g == (1 if first else o) and end - a <= most
                for (a, _, o), (_, g), step, most in zip(
                    requests, following, chosen, allowed, strict=True
                )
            )
            rest = after(end, following)
            best = max(best, gained + rest if rest >= 0 else -1)
        return best

    return after(0, ((0, 0),) * len(requests))

"""Most requests that attain a deadline, by trying all schedules; shares no code with kvopt.

A request need not run at all here: what is left out can run when all others are done.  A server
whose rounds all last 1 gives the problem in rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

from oracle import Triple, optimum_within
from timed_oracle import Server, State, Timed

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
    waits: bool = False,
) -> int:
    """Return how many can complete, or have their first token, so long after their arrival."""
    timed = Timed(server, memory, requests, scope, waits)
    wanted = [1 if first else output for _, _, output in requests]
    due = [request[0] + most for request, most in zip(requests, allowed, strict=True)]

    @cache
    def after(now: int, state: State) -> int:
        """Return how many more attain, -1 if memory cannot hold what has to go on."""
        best = -1
        for end, following, produced in timed.rounds(now, state):
            if end is None:
                best = max(best, 0)
            elif (rest := after(end, following)) >= 0:
                gained = [i for i in produced if following[i][1] == wanted[i] and end <= due[i]]
                best = max(best, len(gained) + rest)
        return best

    return after(0, timed.nothing)

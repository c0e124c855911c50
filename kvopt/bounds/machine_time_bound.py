"""``machine_time_bound``: machine time of requests that attain, however often numbers change.

Let a unit of machine time at t cost u(t) <= 1.  A machine that is on for a while sells at most
the length of that while, so the time of all machines is at least what requests pay.  A request that
attains pays with u = 1 what it takes, X_i, and no price up to 1 lets it pay more: so u = 1 is best.
Of a window in which so many may miss those with the largest X_i may be the ones.

In rounds X_i is the volume of a request over the memory of a machine; in seconds its part of the
fluid, see `kvopt.bounds.seconds`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kvopt.bounds.prefix_shares import shared_out
from kvopt.bounds.relaxations import chain
from kvopt.bounds.seconds_evaluation import machine_times
from kvopt.incumbent.certificate import MachineTime
from kvopt.problem.problem import Problem
from kvopt.problem.requests import volume_of
from kvopt.problem.scopes import Scope


def machine_time_bound(problem: Problem, every: int, misses: Sequence[int]) -> MachineTime:
    """Return a time that the machines of any schedule are on together.

    Parameters
    ----------
    problem
        The problem; its number of machines is ignored.
    every, misses
        Length of the windows, and how many requests of each window may miss, from that of the first
        arrival on.

    Examples
    --------
    >>> from kvopt import Instance, Request
    >>> three = Problem(Instance(4, [Request(0, 2, 2)] * 3))
    >>> machine_time_bound(three, 10, [1]).value
    4
    """
    arrivals = problem.clock.arrivals(problem.instance)
    first, relaxations = min(arrivals) // every, chain(problem, "ceiling")
    best = 0, tuple[int, ...]()
    for memory, takes, lines in _machine_times(problem):
        windows = defaultdict[int, list[int]](list)
        for arrival, amount in zip(arrivals, takes, strict=True):
            windows[arrival // every - first].append(amount)
        kept = (sorted(row)[: max(len(row) - misses[k], 0)] for k, row in windows.items())
        best = max(best, (-(-sum(map(sum, kept)) // memory), lines))
    return MachineTime(best[0], every, tuple(misses), best[1], relaxations)


def _machine_times(problem: Problem) -> Iterator[tuple[int, Sequence[int], tuple[int, ...]]]:
    """Yield a memory, and times its size the machine times of all requests, by lines."""
    instance, model = problem.instance, problem.clock.model
    chunks = problem.scope.covers(Scope.CHUNKS)
    plain = shared_out(instance.in_tokens(), chunks=chunks)
    if model is None:
        yield plain.memory, [volume_of(r.prompt, r.output) for r in plain], ()
        return
    for lines, takes in machine_times(plain, model, instance.forest.private, chunks=chunks):
        yield plain.memory, takes.tolist(), lines

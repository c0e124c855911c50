"""Start windows: the start rounds that a program has to consider, with a proof.

A time-indexed model needs a last round.  A schedule can be optimal and finish later than a
worse one, so the makespan of a heuristic is no safe horizon.  But after the last arrival an
optimal schedule is never idle while a request is incomplete: otherwise every later start could
move one round earlier.  From then on each round has an active request, so everything completes by
``max a + sum o``.  Where no request arrives between that round and much later, this holds for
each part (`kvopt.problem.parts`) by itself.  Weights, a limit of active requests and shared
prefixes change nothing: all later starts move together.  `kvopt.bounds.start_windows` narrows these
windows.
"""

from __future__ import annotations

from kvopt.problem.instance import Instance
from kvopt.problem.parts import split

Windows = tuple[range, ...]
"""The start rounds to consider for each request."""


def latest_completions(instance: Instance) -> list[int]:
    """Return for each request the time by which an optimal schedule has completed it."""
    latest = [0] * len(instance)
    for part in split(instance):
        end = part.begin + part.instance.last_arrival + part.instance.total_output
        for i in part.members:
            latest[i] = end
    return latest


def windows_until(instance: Instance, latest: list[int]) -> Windows:
    """Return the start windows of completions up to the latest ones."""
    return tuple(range(r.arrival, c - r.output + 1) for r, c in zip(instance, latest, strict=True))


def largest_latency(instance: Instance, windows: Windows) -> int:
    """Return the largest total latency of starts in the windows, 0 without requests."""
    rows = zip(windows, instance, strict=True)
    return sum(r.weight * (w[-1] + r.output - r.arrival) for w, r in rows if w)


def horizon(instance: Instance, windows: Windows) -> int:
    """Return the last time at which a request can be active, 0 without requests."""
    last = (w[-1] + r.output for w, r in zip(windows, instance, strict=True) if w)
    return max(last, default=0)


def workers_allowed(instance: Instance) -> tuple[range, ...]:
    """Return for each request the workers to consider: the first i + 1 for request i.

    Workers are equal, so they can be numbered in the order of the first request of each.  This is
    compatible with requests of one shape in order of arrival, since it moves no start.
    """
    return tuple(range(min(i + 1, instance.workers)) for i in range(len(instance)))

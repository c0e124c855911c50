"""``tiny_optimum``: the optimum of a few requests by exhaustive search, in microseconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kvopt.errors import InvalidInput, TooLarge
from kvopt.problem.instance import Instance, refuse_blocks, refuse_extras, refuse_fleet
from kvopt.problem.problem import Problem, as_problem
from kvopt.search.exact.starts import best_below

MOST_REQUESTS = 12
"""Limit of the requests; beyond, a search takes more than milliseconds."""


def tiny_optimum(
    problem: Problem | Instance | str | Path,
    *,
    below: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> int | None:
    """Return the least total latency of up to twelve requests in rounds on one machine.

    It tries all schedules, and stores no proof: for one use `kvopt.certify`.

    Parameters
    ----------
    problem
        The problem, an instance, or a file of one; with a scope of pauses requests may pause.
    below
        Return None if no schedule has less than this total latency, which is quicker to see.
    should_stop
        Asked now and then; when it returns true, `kvopt.Stopped` is raised.

    Examples
    --------
    >>> from kvopt import Instance, Problem, Request, Scope, tiny_optimum
    >>> instance = Instance(memory=10, requests=[Request(0, 0, 10), Request(6, 5, 1)])
    >>> tiny_optimum(instance), tiny_optimum(instance, below=14)
    (14, None)
    >>> tiny_optimum(Problem(instance, scope=Scope.PAUSES))
    12
    """
    settled = as_problem(problem)
    instance, what = settled.instance, "tiny_optimum"
    refuse_extras(instance, what)
    refuse_blocks(instance, what)
    refuse_fleet(instance, what)
    if settled.in_seconds or settled.slo is not None:
        raise InvalidInput("counts total latency in rounds", field=what)
    if len(instance) > MOST_REQUESTS:
        raise TooLarge(f"{what} is for {MOST_REQUESTS} requests at most, got {len(instance)}")
    requests = [(r.arrival, r.prompt, r.output) for r in instance]
    cutoff = _one_by_one(requests) + 1 if below is None else below
    best = best_below(instance.memory, requests, cutoff, should_stop, pauses=settled.has_pauses)
    return None if best is None else best[0]


def _one_by_one(requests: list[tuple[int, int, int]]) -> int:
    """Return the total latency of serving one request after another."""
    now = total = 0
    for arrival, _, output in sorted(requests):
        now = max(now, arrival) + output
        total += now - arrival
    return total

"""The one eager schedule of whole prompts, where the cache never makes a request wait.

A schedule is *eager* if a round begins as soon as a request is there, holds every active request
and all that fit, and lasts what the model says; no request is evicted; one machine.  If all that
are there always fit, each choice is forced: there is one such schedule.  Total latency is
then gained only by holding requests back or by prompts in pieces.  Eager schedules are not
monotone, so no relaxation may be used within them, and nothing is called optimal among them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from functools import partial

from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.problem import Problem
from kvopt.timetable.schedule import Schedule


def eager_schedule(problem: Problem) -> Schedule | None:
    """Return the one eager schedule of whole prompts, None if a request would have to wait.

    Parameters
    ----------
    problem
        The problem, in seconds, on one machine; cached prefixes would make it depend on what the
        cache keeps, so there is none for them.

    Examples
    --------
    >>> from kvopt import BatchTime, Instance, Line, Problem, Request, Seconds
    >>> clock = Seconds(BatchTime([Line(40_000_000, 0)]))
    >>> pair = [Request(0, 2, 2), Request(0, 2, 1)]
    >>> eager_schedule(Problem(Instance(9, pair), clock)).objective
    120000000
    >>> eager_schedule(Problem(Instance(4, pair), clock)) is None
    True
    """
    instance, model = problem.instance, problem.clock.model
    if model is None or problem.is_fleet or "prefix" in instance.extras:
        return None
    arrivals = problem.clock.arrivals(instance)
    order = sorted(range(len(instance)), key=arrivals.__getitem__)
    starts, resumed = [0] * len(instance), dict[int, int]()
    leaving, left = Counter[int](), Counter[int]()  # requests, and their tokens, by last round
    number = now = active = held = place = 0
    while place < len(order) or active:
        if not active and arrivals[order[place]] > now:  # idle until the next request is there
            now = resumed[number] = arrivals[order[place]]
        prompts = 0
        while place < len(order) and arrivals[order[place]] <= now:
            i, place = order[place], place + 1
            request = instance.requests[i]
            starts[i], active = number, active + 1
            prompts, held = prompts + request.prompt, held + request.prompt
            leaving[number + request.output] += 1
            left[number + request.output] += request.prompt + request.output
        now += model.round_ns(active, prompts, held + active)
        # Then rounds in a row up to the first one that begins with an arrival, or a completion.
        due = arrivals[order[place]] - now if place < len(order) else math.inf
        lasting = partial(model.stretch_ns, active, held + 2 * active)
        rounds = 1 + _until(due, min(leaving) - number - 1, lasting)
        number, held, now = number + rounds, held + rounds * active, now + lasting(rounds - 1)
        if held > instance.memory:
            return None
        active, held = active - leaving.pop(number, 0), held - left.pop(number, 0)
    # Blocks, and a limit of active requests, are checked as for every schedule.
    schedule = Schedule(instance, starts, clock=problem.clock, resumed=[resumed])
    return None if schedule.violations() else schedule


def _until(due: float, limit: int, lasting: Callable[[int], int]) -> int:
    """Return the least number of rounds that last as long as until an arrival, or the limit."""
    return bisect_left(range(limit), due, key=lasting) if due < math.inf else limit


def eager_sentence(total_ns: int, count: int) -> str:
    """Return the claim about the one eager schedule of so many latencies, in words."""
    mean = total_ns / (max(count, 1) * NANOSECONDS)
    return (
        f"there is one eager schedule of whole prompts, with a mean latency of {mean:,.6f} s; what "
        "may be gained comes from holding requests back or from pieces"
    )

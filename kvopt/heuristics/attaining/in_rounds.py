"""Schedules in rounds in which many requests attain their service levels.

Requests are placed one by one, each at the first round at which it fits next to the placed ones.  A
request that would be late there is postponed until all others are done, which is always possible.
The order matters: requests that are cheap at the prices of the ceiling come first, by the time at
which they are due, then the others by volume.  The best order is improved by a move: remove a few
requests near a late one, and insert them again together with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from kvopt.bounds.slo_prices import Span
from kvopt.errors import TooLarge
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance
from kvopt.simulate.run_policy import run

if TYPE_CHECKING:
    from kvopt.heuristics.reinsertion import Placement

_ORDERS_IN_TIME = 0.3
"""Share of the time: orders by due times, before requests are exchanged."""
_LIMITS = (0.95, 1.0, 0.9, 1.05, 0.8, 1.2)
"""Limits of cost up to which requests are placed by due times, in the order of the attempts."""
_HURRIES = (0.0, 0.5, 0.75)
"""Shares of its length by which a due time is moved earlier: long requests cannot wait."""
_NOISE = 0.05
"""Relative variation of costs."""
_TRIALS = 60
"""Number of orders with varied costs."""
_STEPS = 2000
"""Steps of exchanges after which requests are sorted again."""
_IDLE = 200
"""Exchanges end after so many steps in a row, for each request, without an improvement."""


@dataclass(frozen=True, slots=True)
class AttainingSets:
    """A schedule with many requests in time.

    Parameters
    ----------
    count
        Number of requests that attain.
    starts, workers
        Those of each request; workers are empty for a single one.
    resumed
        In seconds, begins of work after idle times: round, time and worker.
    """

    count: int
    starts: tuple[int, ...]
    workers: tuple[int, ...] = ()
    resumed: tuple[tuple[int, int, int], ...] = ()


def attaining_in_rounds(
    instance: Instance,
    spans: Mapping[int, Span],
    costs: Floats,
    *,
    seed: int = 0,
    budget: Budget | None = None,
) -> AttainingSets | None:
    """Return the best schedule of some orders, None if there are too many rounds for a profile.

    Parameters
    ----------
    instance, spans
        The problem, and when the tokens of the requests that can attain are due.
    costs
        Payment of each request at the prices of the ceiling; infinite for a sure miss.
    seed
        Seed of varied costs.
    budget
        When to return the best so far.
    """
    empty = _empty(instance, spans)
    if empty is None:
        return None
    random, budget = np.random.default_rng(seed), budget or Budget()
    places, count = _filled(instance, empty, costs, random, budget.part(_ORDERS_IN_TIME))
    late = np.flatnonzero((places.starts < 0) & np.isfinite(costs))
    count += _exchanged(places, late, seed, budget)
    return _completed(instance, places, count)


def _empty(instance: Instance, spans: Mapping[int, Span]) -> Placement | None:
    """Return empty workers, None if there are too many rounds for a profile."""
    from kvopt.heuristics.reinsertion import nowhere  # it loads numba

    arrivals, _, outputs = columns_of(instance)
    arrivals -= instance.first_arrival
    span = int(arrivals.max(initial=0) + outputs.sum())
    latest = arrivals - 1  # never, for those that cannot attain
    # A start at k has its first token at k + 1, which is due at the arrival plus ``early``.
    for i, due in spans.items():
        latest[i] = min(latest[i] + due.early, span)
    rounds = int(latest.max(initial=0)) + 2 * int(outputs.max(initial=0)) + 2
    try:
        return nowhere(instance, rounds)._replace(latest=latest)
    except TooLarge:
        return None


def _filled(
    instance: Instance,
    empty: Placement,
    costs: Floats,
    random: np.random.Generator,
    budget: Budget,
) -> tuple[Placement, int]:
    """Return the best of some orders, and how many attain."""
    from kvopt.heuristics.reinsertion import fill

    best, most = empty, -1
    volumes = np.array([request.volume for request in instance], dtype=float)
    for order in _orders(empty, costs, volumes, random):
        places = deepcopy(empty)
        count = fill(places, order, np.array([1]))
        if count > most:
            best, most = places, int(count)
        if most == np.isfinite(costs).sum() or budget.over():
            break
    return best, most


def _exchanged(places: Placement, late: Integers, seed: int, budget: Budget) -> int:
    """Exchange requests until none is late or nothing improves; return how many more attain."""
    from kvopt.heuristics.reinsertion import reinsert, without_loads

    random, idle, before = np.array([seed]), 0, len(late)
    kept, starts = without_loads(places), places.starts
    while len(late) and idle < _IDLE * len(starts) and not budget.over():
        line = np.argsort(starts, kind="stable")
        line = line[starts[line] >= 0]
        left = reinsert(places, kept, line, late, random, (1.0, 1.0), _STEPS)
        idle = idle + _STEPS if left == len(late) else 0
        late = late[:left]
    return before - len(late)


def _orders(
    places: Placement, costs: Floats, volumes: Floats, random: np.random.Generator
) -> Iterator[Integers]:
    """Yield orders: without a limit, with each limit and hurry, then with varied costs."""
    yield np.argsort(volumes, kind="stable")
    for hurry, limit in product(_HURRIES, _LIMITS):
        yield _order(places, costs / limit, volumes, hurry)
    for _ in range(_TRIALS):
        limit = random.choice(_LIMITS) * np.exp(_NOISE * random.standard_normal(len(costs)))
        yield _order(places, costs / limit, volumes, random.random())


def _order(places: Placement, costs: Floats, volumes: Floats, hurry: float) -> Integers:
    """Return requests of cost below 1 by due time less a share of their length, then by volume."""
    late = costs >= 1.0
    due = places.latest + (1.0 - hurry) * places.outputs
    return np.lexsort((volumes, np.where(late, 0.0, due), late))


def _completed(instance: Instance, fleet: Placement, count: int) -> AttainingSets:
    """Return the schedule with the other requests after all of these, on the first worker."""
    first = instance.first_arrival
    starts = [start if start < 0 else start + first for start in fleet.starts.tolist()]
    rows = zip(starts, instance, strict=True)
    end = max((start + r.output for start, r in rows if start >= 0), default=0)
    left = [i for i, start in enumerate(starts) if start < 0]
    moved = [replace(r, arrival=max(r.arrival, end)) for r in (instance.requests[i] for i in left)]
    later = run(Instance(instance.memory, moved), "svf").starts
    for i, start in zip(left, later, strict=True):
        assert start is not None, "this scheduler completes everything"
        starts[i] = start
        fleet.workers[i] = 0
    workers = tuple(fleet.workers.tolist()) if instance.workers > 1 else ()
    return AttainingSets(count, tuple(starts), workers)

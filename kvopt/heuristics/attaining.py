"""Schedules in rounds in which many requests attain their deadlines.

Requests are placed one by one, each at the first round at which it fits beside those before it; one
that cannot attain there is left out.  What is left out runs when all others are done, which is
always possible.  The order decides: those that are cheap at the prices of the ceiling first, by
deadline, then the others by volume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kvopt.bounds.kinds import Floats, Integers
from kvopt.kernels.compiling import working_time
from kvopt.model.deadlines import Aim
from kvopt.model.instance import Instance
from kvopt.simulation.running import run

_LIMITS = (0.95, 1.0, 0.9, 1.05, 0.8, 1.2)
"""Costs up to which requests are placed by deadline, in the order in which they are tried."""
_NOISE = 0.05
"""By how much costs are varied, as a share."""
_TRIALS = 60
"""Orders that are tried with varied costs."""


@dataclass(frozen=True, slots=True)
class Attaining:
    """What a schedule with many requests in time is.

    Parameters
    ----------
    count
        How many attain.
    starts, workers
        Of each request; workers are empty where there is one.
    resumed
        When the server began to work after it was idle, by round; in seconds.
    """

    count: int
    starts: tuple[int, ...]
    workers: tuple[int, ...] = ()
    resumed: tuple[tuple[int, int], ...] = ()


def attaining_in_rounds(
    instance: Instance,
    allowed: Sequence[int],
    aim: Aim,
    costs: Floats,
    *,
    seed: int = 0,
    time_limit: float = math.inf,
    should_stop: Callable[[], bool] = lambda: False,
) -> Attaining | None:
    """Return the best schedule of some orders, None where rounds are too many for a profile.

    Parameters
    ----------
    instance, allowed, aim
        The problem, how long each request may take, and to what.
    costs
        What each request pays at the prices of the ceiling; infinite if it misses for sure.
    seed
        For varied costs.
    time_limit, should_stop
        When the best so far is enough.
    """
    from kvopt.heuristics.attaining_loops import LARGEST_HORIZON, fill  # it loads numba

    first = min((request.arrival for request in instance), default=0)
    arrivals, prompts, outputs = (
        np.array(column, dtype=np.int64).reshape(-1)
        for column in zip(*((r.arrival - first, r.prompt, r.output) for r in instance), strict=True)
    ) if len(instance) else (np.zeros(0, dtype=np.int64),) * 3  # fmt: skip
    span = int(arrivals.max(initial=0) + outputs.sum())
    due = np.minimum(arrivals + np.array([min(most, 2**60) for most in allowed]), 2 * span)
    latest = np.minimum(due - (outputs if aim is Aim.COMPLETION else 1), span)
    longest = int(outputs.max(initial=0))
    if span + longest > LARGEST_HORIZON:
        return None
    profiles = np.zeros((instance.workers, int(latest.max(initial=0)) + 2 * longest + 2), int)
    best, end = Attaining(-1, ()), working_time() + time_limit
    volumes = np.array([request.volume for request in instance], dtype=float)
    for order in _orders(costs, due, volumes, np.random.default_rng(seed)):
        starts, workers = (np.full(len(instance), -1, dtype=np.int64) for _ in range(2))
        profiles[:] = 0
        count = fill(
            order, arrivals, prompts, outputs, latest, instance.memory, profiles, starts, workers
        )
        if count > best.count:
            best = Attaining(int(count), tuple(starts.tolist()), tuple(workers.tolist()))
        if best.count == np.isfinite(costs).sum() or should_stop() or working_time() > end:
            break
    return _completed(instance, best, first)


def _orders(
    costs: Floats, due: Integers, volumes: Floats, random: np.random.Generator
) -> Iterator[Integers]:
    """Yield orders: without a limit, with each limit, then with varied costs."""
    yield np.argsort(volumes, kind="stable")
    for limit in _LIMITS:
        yield _order(costs / limit, due, volumes)
    for _ in range(_TRIALS):
        limit = random.choice(_LIMITS) * np.exp(_NOISE * random.standard_normal(len(costs)))
        yield _order(costs / limit, due, volumes)


def _order(costs: Floats, due: Integers, volumes: Floats) -> Integers:
    """Return those of a cost below 1 by deadline, then the others by volume."""
    late = costs >= 1.0
    return np.lexsort((volumes, np.where(late, 0, due), late))


def _completed(instance: Instance, best: Attaining, first: int) -> Attaining:
    """Return it with what is left out run after all others, on the first worker."""
    starts = [start if start < 0 else start + first for start in best.starts]
    rows = zip(starts, instance, strict=True)
    end = max((start + r.output for start, r in rows if start >= 0), default=0)
    left = [i for i, start in enumerate(starts) if start < 0]
    moved = [replace(r, arrival=max(r.arrival, end)) for r in (instance.requests[i] for i in left)]
    found = run(Instance(instance.memory, moved), "svf").starts
    for i, start in zip(left, found, strict=True):
        assert start is not None, "this scheduler completes everything"
        starts[i] = start
    several = instance.workers > 1
    workers = tuple(max(worker, 0) for worker in best.workers) if several else ()
    return Attaining(best.count, tuple(starts), workers)

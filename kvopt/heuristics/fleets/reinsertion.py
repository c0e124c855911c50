"""Moves and swaps between workers: a few requests are taken out and put back, many times.

Those taken out start near one another in time, on any worker.  They go back one by one, each to
the worker and the round where it starts earliest beside everything that stayed.  So one step
moves a request, swaps two, or changes the order of several.  Steps that make the sum of starts
worse are kept now and then, less often as it gets colder.

Nothing else is moved, so a step costs as much among 20,000 requests as among 20.  Loads are kept
densely, one integer for each worker and time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvopt.errors import TooLarge
from kvopt.heuristics.decode import earliest
from kvopt.heuristics.local_search import COLDEST
from kvopt.heuristics.scenes import Rows
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compile_clock import working_time
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import State, below, uniform
from kvopt.problem.arrays import Integers, columns_of
from kvopt.problem.instance import Instance

LARGEST_LOADS = 2**25
"""Limit of workers times rounds that are kept densely; 256 MB."""
_CHUNKS = 50
"""Parts of a cycle, between which limits are looked at and requests are lined up anew."""
_MOST_TAKEN = 12
"""Requests taken out at once, at most."""
_REACH = 3
"""Neighbours among which they are drawn, for each that is taken out and each worker."""
_BLINK = 0.02
"""Probability that a worker is passed over: it lets a request wait where that pays later."""
_STEPS_A_REQUEST = 50
"""Steps of the first cycle, for each request; each cycle has twice as many."""
_IDLE_CYCLES = 3
"""Cycles without improvement after which the search ends."""


class Fleet(NamedTuple):
    """An instance as arrays, and where its requests are; rounds count from the first arrival.

    Parameters
    ----------
    memory
        M, of each worker.
    arrivals, prompts, outputs
        Of each request.
    starts, workers
        Where each of them is.
    loads
        Tokens that each worker holds at each time.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    starts: Integers
    workers: Integers
    loads: Rows


def search_reinsertions(
    search: Search, seconds: float, seed: int = 0, most_cycles: int | None = None
) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more."""
    if search.schedule is None or len(search.instance) < 2:
        return
    end = working_time() + seconds
    steps, cycles, idle = _STEPS_A_REQUEST * len(search.instance), 0, 0
    while idle < _IDLE_CYCLES and cycles != most_cycles and not _is_over(search, end):
        before = search.schedule.objective
        try:
            _cycle(search, steps, seed + cycles, end)
        except TooLarge as error:
            search.note(f"no moves between workers: {error}")
            return
        idle = 0 if search.schedule.objective < before else idle + 1
        cycles += 1
        steps *= 2


def _is_over(search: Search, end: float) -> bool:
    return working_time() >= end or search.should_stop()


def _cycle(search: Search, steps: int, seed: int, end: float) -> None:
    """Cool down once, from the best schedule so far."""
    assert search.schedule is not None
    instance = search.instance
    fleet = fleet_of(instance, search.schedule.starts, search.schedule.workers)
    hot = max(2.0, instance.total_output / len(instance) / 4)
    cold, first = COLDEST, min(r.arrival for r in instance)
    random, least = np.array([seed]), sum(search.schedule.starts) - first * len(instance)
    for part in range(_CHUNKS):
        heats = hot * (cold / hot) ** (part / _CHUNKS), hot * (cold / hot) ** ((part + 1) / _CHUNKS)
        line = np.argsort(fleet.starts, kind="stable")
        reinsert(fleet, line, random, heats, max(1, steps // _CHUNKS))
        if (total := int(fleet.starts.sum())) < least:
            least = total
            starts = (fleet.starts + first).tolist()
            search.offer_starts(starts, "moves between workers", fleet.workers.tolist())
        if _is_over(search, end):
            return


def fleet_of(instance: Instance, starts: Sequence[int], workers: Sequence[int]) -> Fleet:
    """Return a schedule as arrays.

    Raises
    ------
    TooLarge
        If it spans too many rounds.
    """
    arrivals, prompts, outputs = columns_of(instance)
    first = int(arrivals.min())
    arrivals -= first
    begun = np.array(starts, dtype=np.int64) - first
    # Whatever is taken out fits after everything else.
    span = int((begun + outputs).max()) + _MOST_TAKEN * int(outputs.max()) + 2
    if span * instance.workers > LARGEST_LOADS:
        reason = f"{instance.workers} workers over {span:,} rounds; the limit is {LARGEST_LOADS:,}"
        raise TooLarge(reason)
    loads = np.zeros((instance.workers, span), dtype=np.int64)
    where = np.array(workers, dtype=np.int64)
    fleet = Fleet(instance.memory, arrivals, prompts, outputs, begun, where, loads)
    hold_all(fleet)
    return fleet


# ---- steps, compiled -----------------------------------------------------------------------


@compiled
def hold_all(fleet: Fleet) -> None:
    """Add every request to the loads of its worker."""
    for i in range(len(fleet.starts)):
        hold(fleet, i, 1)


@compiled
def hold(fleet: Fleet, i: int, sign: int) -> None:
    """Add a request to the loads of its worker, or take it away."""
    loads, begin, prompt = fleet.loads[fleet.workers[i]], fleet.starts[i] + 1, fleet.prompts[i]
    for grown in range(fleet.outputs[i]):
        loads[begin + grown] += sign * (prompt + 1 + grown)


@compiled
def reinsert(
    fleet: Fleet, line: Integers, random: State, heats: tuple[float, float], steps: int
) -> None:
    """Take so many steps while the heat falls from one value to the other.

    The schedule at the end need not be the best on the way: it is that where it is cold.
    """
    taken = np.zeros(_MOST_TAKEN, dtype=np.int64)
    starts, workers = np.zeros_like(taken), np.zeros_like(taken)
    hot, cold = heats
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        count = _take(fleet, line, random, taken)
        before = 0
        for x in range(count):
            i = taken[x]
            starts[x], workers[x] = fleet.starts[i], fleet.workers[i]
            before += starts[x]
        allowed = before - heat * math.log(uniform(random))
        if _put_back(fleet, random, taken[:count], allowed):
            continue
        for x in range(count):
            i = taken[x]
            fleet.starts[i], fleet.workers[i] = starts[x], workers[x]
            hold(fleet, i, 1)


@compiled
def _take(fleet: Fleet, line: Integers, random: State, taken: Integers) -> int:
    """Take some requests out that are near one another in the line; return how many.

    They are left in random order, in that of their starts or in that of their volumes.
    """
    count = min(2 + below(random, 1 + below(random, _MOST_TAKEN - 1)), len(line))
    reach = min(len(line), count * (1 + below(random, _REACH * len(fleet.loads))))
    first = below(random, len(line) - reach + 1)
    chosen = 0
    for place in range(reach):  # each as likely as any other
        if below(random, reach - place) < count - chosen:
            taken[chosen] = line[first + place]
            hold(fleet, taken[chosen], -1)
            chosen += 1
    way = below(random, 3)
    keys = np.empty(chosen)
    for x in range(chosen):
        i = taken[x]
        if way == 0:
            keys[x] = uniform(random)
        elif way == 1:
            keys[x] = fleet.outputs[i] * (2 * fleet.prompts[i] + fleet.outputs[i] + 1)
        else:
            keys[x] = -(fleet.prompts[i] + fleet.outputs[i])
    order = taken[:chosen][np.argsort(keys)]
    taken[:chosen] = order
    return chosen


@compiled
def _put_back(fleet: Fleet, random: State, taken: Integers, allowed: float) -> bool:
    """Put requests back, unless the sum of their starts passes what is allowed."""
    earliest_taken = fleet.starts[taken].min()
    for x in range(len(taken)):
        i = taken[x]
        # What was taken out frees nothing before that.
        begin = max(fleet.arrivals[i], earliest_taken - fleet.outputs[i])
        if not place(fleet, i, begin, math.floor(allowed), random, _BLINK):
            for y in range(x):
                hold(fleet, taken[y], -1)
            return False
        allowed -= fleet.starts[i]
    return True


@compiled
def place(fleet: Fleet, i: int, begin: int, latest: int, random: State, blink: float) -> bool:
    """Put a request where it starts earliest from a round on, if that is not too late.

    A worker is passed over with a probability, but for the last one.
    """
    best, count = latest + 1, len(fleet.loads)
    offset = below(random, count)
    for turn in range(count):
        worker = (offset + turn) % count
        if blink and turn + 1 < count and uniform(random) < blink:
            continue
        room = fleet.memory - fleet.prompts[i]
        start = earliest(fleet.loads[worker], room, fleet.outputs[i], begin)
        if start < best:
            best, fleet.workers[i] = start, worker
    if best > latest:
        return False
    fleet.starts[i] = best
    hold(fleet, i, 1)
    return True

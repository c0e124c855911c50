"""Local search that removes and reinserts a few requests at a time.

The removed requests are near one another in time, on any worker.  They are inserted one by one,
each on the worker and at the round where it starts earliest next to all placed ones.  So one step
moves a request, swaps two, or changes the order of several.  Simulated annealing accepts steps that
increase the sum of completions, less often as the temperature falls.

With pauses each request takes the first times with room, one token at each, like a scheduler that
fills each round in a fixed order of priority.  A step moves one request in this order, and
reinserts all later ones.  With service levels a step takes a late request and some near it, and may
leave one out; none may start too late.

Other steps change no further requests, so a step among 20,000 requests takes as long as among 20.
Loads are stored densely, one integer for each worker and time.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from copy import deepcopy
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from kvopt.errors import TooLarge
from kvopt.heuristics.nodes import forest_arrays
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget
from kvopt.kernels.compiled import borrowing, compiled
from kvopt.kernels.copying import copy_into, place_of
from kvopt.kernels.magnitudes import NEVER
from kvopt.kernels.random_numbers import State, below, uniform
from kvopt.problem.arrays import Floats, Integers, columns_of
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

LONGEST_CYCLE = 2_000_000
"""Default limit of the steps of a cycle: longer ones cool more slowly."""
LARGEST_LOADS = 2**25
"""Default limit of workers times rounds that are stored densely; 256 MB."""
_CHUNKS = 50
"""Parts of a cycle, between which limits are checked and requests are sorted again."""
_MOST_TAKEN = 12
"""Most requests that are removed at once."""
_REACH = 3
"""Neighbours among which they are drawn, for each removed one and each worker."""
_BLINK = 0.02
"""Probability that a worker is skipped: so a request may wait where that pays later."""
_HELD_BACK, _LONGEST_WAIT = 0.02, 3
"""Probability that a request waits for some rounds after its last start, and their number."""
_FIRST_STEPS, _STEPS_A_REQUEST = 20_000, 50
"""Least steps of the first cycle, and steps for each request; each cycle has twice as many."""
_IDLE_CYCLES = 3
"""Cycles without improvement after which the search ends."""
_COLDEST = 0.3
"""Temperature at the end of a cycle, in rounds of latency."""
_MOST_WALKED = 20_000_000
"""Times that requests with pauses may scan between two checks of limits: a tenth of a second."""
_SPARE = 4
"""Length of loads beyond a schedule, in longest outputs."""
_NONE_LEFT, _UNDONE = -1, -2
"""Results of a step other than the request that it left out."""


class Placement(NamedTuple):
    """An instance as arrays, with placed requests; rounds count from the first arrival.

    Parameters
    ----------
    memory
        Memory M of each worker.
    arrivals, prompts, outputs, latest
        Those of each request; ``latest`` is the last start at which it is in time.
    starts, workers
        Placement of each: the completion less the output, -1 if it is left out.
    loads
        Tokens that each worker holds at each time.
    times, offsets
        With pauses active times, and the position of the first of each request; else empty.
    paths, blocks, weights
        Blocks that requests share, ``blocks[paths[i]:paths[i + 1]]``, and tokens of each: a worker
        holds it once, and prompts are without it.
    users
        How many active requests use each block, of each worker at each time.
    """

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    latest: Integers
    starts: Integers
    workers: Integers
    loads: Integers
    times: Integers
    offsets: Integers
    paths: Integers
    blocks: Integers
    weights: Integers
    users: Integers


def search_reinsertions(
    search: Search,
    budget: Budget,
    seed: int = 0,
    most_passes: int | None = None,
    longest_cycle: int = LONGEST_CYCLE,
) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more."""
    if not budget.over():
        any(budget.over() for _ in islice(_passes(search, seed, longest_cycle), most_passes))


def search_with_pauses(search: Search, budget: Budget, longest_cycle: int = LONGEST_CYCLE) -> None:
    """Offer the schedules of good orders of priority, and improve the best for so long."""
    for order in usual_orders(search.instance):
        search.offer(schedule_by_order(search.instance, order), "orders with pauses")
    search_reinsertions(search, budget, search.limits.seed, longest_cycle=longest_cycle)


def _passes(search: Search, seed: int, longest_cycle: int) -> Iterator[None]:
    """Anneal in longer and longer cycles until nothing improves any more; yield after each part."""
    instance, cycles, idle = search.instance, 0, 0
    steps = min(max(_FIRST_STEPS, _STEPS_A_REQUEST * len(instance)), longest_cycle)
    order = np.array(usual_orders(instance)[0], dtype=np.int64)
    while idle < _IDLE_CYCLES and len(instance) > 1:
        before = search.objective
        try:
            if search.problem.has_pauses and instance.workers == 1:
                placement = _placed(instance, order)
            elif search.schedule is None:
                return
            else:
                placement = _placement_of(search.schedule)
            order = yield from _cool_down(search, placement, order, steps, seed + cycles)
        except TooLarge as error:
            search.note(f"no local search: {error}")
            return
        idle = 0 if search.objective != before else idle + 1
        cycles += 1
        steps = min(2 * steps, longest_cycle)


def _cool_down(
    search: Search, placement: Placement, order: Integers, steps: int, seed: int
) -> Generator[None, None, Integers]:
    """Anneal once, and return the order of priority of the best schedule with pauses."""
    instance, pauses, done, best = search.instance, len(placement.offsets) > 0, 0, order
    name = "moves between workers" if instance.workers > 1 else "local search"
    # A step with pauses scans about ``work`` times, so its parts of a cycle have fewer steps.
    work = int((placement.starts - placement.arrivals).sum()) if pauses else 0
    chunk = max(1, min(steps // _CHUNKS, _MOST_WALKED // (work + 1)))
    hot = max(2.0, instance.total_output / len(instance) / (8 if pauses else 4))
    kept, random, lowest = without_loads(placement), np.array([seed]), placement.starts.sum()
    line, no_late = order.copy(), order[:0]
    while done < steps:
        first, last = (hot * (_COLDEST / hot) ** (at / steps) for at in (done, done + chunk))
        if not pauses:
            line = np.argsort(placement.starts, kind="stable")
        reinsert(placement, kept, line, no_late, random, (first, last), chunk)
        done += chunk
        if (total := placement.starts.sum()) < lowest:
            lowest, best = total, line.copy()
            search.offer(_schedule_of(instance, placement), name)
        yield
    return best


# ---- schedules as arrays -------------------------------------------------------------------


def usual_orders(instance: Instance) -> list[list[int]]:
    """Return usually good orders, the best one first: by volume, by output."""
    keys = ([r.volume for r in instance], [r.output for r in instance])
    return [sorted(range(len(key)), key=key.__getitem__) for key in keys]


def schedule_by_order(instance: Instance, order: Sequence[int]) -> Schedule:
    """Return the schedule with pauses that places requests in order into the free memory."""
    return _schedule_of(instance, _placed(instance, np.array(order, dtype=np.int64)))


def _placed(instance: Instance, order: Integers) -> Placement:
    """Place requests, which may pause, in an order."""
    longest = max((request.output for request in instance), default=0)
    span = instance.last_arrival - instance.first_arrival + instance.total_output
    placement = nowhere(instance, span + 2 * longest + 2, pauses=True)
    fill(placement, order, np.array([1]))
    return placement


def nowhere(instance: Instance, span: int, *, pauses: bool = False) -> Placement:
    """Return an instance with nothing placed, and loads of so many rounds.

    Raises
    ------
    TooLarge
        If these are too many for the workers.
    """
    instance = instance.without_common_prefix()
    prompts, paths, blocks, weights = forest_arrays(instance.forest)
    refuse_too_long(instance.workers * (1 + len(weights)), span)
    arrivals, _, outputs = columns_of(instance)
    arrivals -= instance.first_arrival
    count, tokens = len(arrivals), instance.total_output if pauses else 0
    # Nothing starts so late that another one would not fit after it.
    latest = span - 2 * int(outputs.max(initial=0)) - 2
    return Placement(
        instance.memory,
        arrivals,
        prompts,
        outputs,
        np.full(count, latest),
        np.full(count, -1),
        np.zeros(count, dtype=np.int64),
        np.zeros((instance.workers, span), dtype=np.int64),
        np.zeros(tokens, dtype=np.int64),
        np.concatenate(([0], outputs.cumsum())) if pauses else np.zeros(0, dtype=np.int64),
        paths,
        blocks,
        weights,
        np.zeros((instance.workers, len(weights), span), dtype=np.int32),
    )


def without_loads(placement: Placement) -> Placement:
    """Return a copy of the placement, from which steps are undone."""
    loads, users = placement.loads[:, :0], placement.users[:, :, :0]
    return deepcopy(placement._replace(loads=loads, users=users))


def refuse_too_long(workers: int, span: int, limit: int = LARGEST_LOADS) -> None:
    """Raise `TooLarge` if loads of so many rounds would be too large."""
    if workers * span > limit:
        raise TooLarge(f"{span:,} rounds of {workers} workers are more than the limit of {limit:,}")


def _placement_of(schedule: Schedule) -> Placement:
    """Return a schedule without pauses as arrays, with free rounds after its end."""
    instance, first = schedule.instance, schedule.instance.first_arrival
    longest = max(request.output for request in instance)
    placement = nowhere(instance, schedule.makespan - first + _SPARE * longest + 2)
    placement.starts[:] = np.array(schedule.starts) - first
    placement.workers[:] = schedule.workers
    fill(placement, np.arange(len(instance)), np.array([1]))
    return placement


def _schedule_of(instance: Instance, placement: Placement) -> Schedule:
    """Return the schedule of a placement; with pauses active times in a row become a segment."""
    first, times = instance.first_arrival, placement.times
    if not len(placement.offsets):
        starts = (placement.starts + first).tolist()
        return Schedule(instance, starts, placement.workers.tolist())
    begins = np.diff(times, prepend=-1) != 1
    begins[placement.offsets[:-1]] = True
    (begun,) = begins.nonzero()
    ends = np.append(begun, len(times))[1:] - 1
    pairs = list(zip((times[begun] + first).tolist(), (times[ends] + first).tolist(), strict=True))
    edges = np.searchsorted(begun, placement.offsets).tolist()
    return Schedule(instance, segments=[pairs[a:b] for a, b in pairwise(edges)])


# ---- placing one request, compiled -----------------------------------------------------------


@borrowing
def earliest(placement: Placement, worker: int, i: int, start: int) -> int:
    """Return the first round from ``start`` on at which a request fits on a worker.

    A time t at which the request would hold ``excess`` tokens too many stays too full until it
    starts ``excess`` rounds later, or at t itself.  After the last load everything fits.
    """
    begin, end = start, start  # begin + 1 .. end were seen to fit
    output, prompt = placement.outputs[i], placement.prompts[i]
    paths, blocks, weights = placement.paths, placement.blocks, placement.weights
    loads, users, memory = placement.loads[worker], placement.users[worker], placement.memory
    while True:
        # The last time that is too full: after ``end`` first, else up to ``begin``.  A later start
        # holds less at each time, so that times seen to fit need no second look.
        time, excess = start + output, 0
        while True:
            if time == end:
                time = begin
            if time <= start:
                return start
            excess = loads[time] + prompt - memory
            for place in range(paths[i], paths[i + 1]):
                if users[blocks[place], time] == 0:
                    excess += weights[blocks[place]]
            if excess > start - time:
                break
            time -= 1
        begin, end = time, start + output
        start += min(excess + time - start, time - start)


@borrowing
def hold(placement: Placement, i: int, sign: int) -> None:
    """Add a request to the loads of its worker, or remove it."""
    worker, held = placement.workers[i], placement.prompts[i]
    loads, before = placement.loads[worker], 0 if sign > 0 else 1
    if len(placement.offsets) == 0:
        begin, end = placement.starts[i] + 1, placement.starts[i] + placement.outputs[i] + 1
        for time in range(begin, end):
            held += 1
            loads[time] += sign * held
        # The first user of a block brings its tokens, and the last one takes them along.
        for place in range(placement.paths[i], placement.paths[i + 1]):
            block = placement.blocks[place]
            for time in range(begin, end):
                if placement.users[worker, block, time] == before:
                    loads[time] += sign * placement.weights[block]
                placement.users[worker, block, time] += sign
        return
    for place in range(placement.offsets[i], placement.offsets[i + 1]):
        held += 1
        loads[placement.times[place]] += sign * held


@borrowing
def place(
    placement: Placement, i: int, begin: int, latest: int, random: State, blink: float
) -> bool:
    """Place a request where it starts earliest from a round on, unless this is too late.

    Each worker except the last one is skipped with a probability.
    """
    if begin > latest:
        return False
    best, count = latest + 1, len(placement.loads)
    offset = below(random, count)
    for turn in range(count):
        worker = (offset + turn) % count
        if blink and turn + 1 < count and uniform(random) < blink:
            continue
        if len(placement.offsets) == 0:
            start = earliest(placement, worker, i, begin)
        else:
            # With pauses it takes the first times with room, and gives up if it would be late.
            time, held = begin, placement.prompts[i]
            last = min(latest + placement.outputs[i], placement.loads.shape[1] - 1)
            for token in range(placement.offsets[i], placement.offsets[i + 1]):
                time, held = time + 1, held + 1
                while time <= last and placement.loads[worker, time] + held > placement.memory:
                    time += 1
                if time > last:
                    break
                placement.times[token] = time
            start = time - placement.outputs[i]
        if start < best:
            best, placement.workers[i] = start, worker
    if best > latest:
        return False
    placement.starts[i] = best
    hold(placement, i, 1)
    return True


@borrowing
def fill(placement: Placement, order: Integers, random: State) -> int:
    """Place requests in an order, at their starts or as early as may be; return how many are."""
    count = 0
    for i in order:
        if placement.starts[i] >= 0:
            hold(placement, i, 1)
            count += 1
        else:
            count += place(placement, i, placement.arrivals[i], placement.latest[i], random, 0.0)
    return count


# ---- steps, compiled -----------------------------------------------------------------------


@compiled
def reinsert(
    placement: Placement,
    kept: Placement,
    line: Integers,
    late: Integers,
    random: State,
    heats: tuple[float, float],
    steps: int,
) -> int:
    """Take so many steps while the temperature falls from one value to the other.

    The last schedule need not be the best one, except at a low temperature.

    Parameters
    ----------
    placement, kept
        The placement, twice: the second one restores it after a rejected step.
    line
        Requests by their starts; with pauses by priority, which steps change.
    late
        Late requests: if there are any, each step tries to place one, at any temperature.
    random
        State of the random numbers.
    heats, steps
        First and last temperature, and the number of steps.

    Returns
    -------
    int
        How many requests are still late; they are the first of their array.
    """
    (hot, cold), count = heats, len(line)
    room, keys = np.zeros(max(count, _MOST_TAKEN + 1), dtype=np.int64), np.zeros(_MOST_TAKEN + 1)
    left, begins, workers = len(late), placement.starts[line], len(placement.loads)
    for step in range(steps):
        which = 0
        if len(placement.offsets):
            # One request gets another priority.  Those before the first changed one keep their
            # times, which do not depend on lower priorities; all others are removed.  The line
            # follows once they are placed again.
            p = below(random, count)
            far = 1 + below(random, 1 + below(random, 1 + below(random, count)))
            q = min(max(p + far if below(random, 2) else p - far, 0), count - 1)
            low, way = min(p, q), 1 if p < q else -1
            taken = room[: count - low]
            for x in range(low, count):
                taken[x - low] = line[x]
                hold(placement, line[x], -1)
            for x in range(p, q, way):
                taken[x - low] = line[x + way]
            taken[q - low] = line[p]
        elif len(late):
            # A late request, and some that start near a time at which it could start.
            if left == 0:
                break
            which = below(random, left)
            i = room[0] = late[which]
            time = placement.arrivals[i]
            time += below(random, placement.latest[i] - time + 1)
            reach = 1 + below(random, _REACH * _MOST_TAKEN * workers)
            first = max(0, place_of(time, begins, 0, count) - below(random, reach + 1))
            few = 2 + below(random, _MOST_TAKEN)
            window = line[first : first + reach]
            taken = room[: _take(placement, window, random, room, keys, few, True)]
        else:
            # Some requests that start near one another.
            few = min(2 + below(random, 1 + below(random, _MOST_TAKEN - 1)), count)
            reach = min(count, few * (1 + below(random, _REACH * workers)))
            first = below(random, count - reach + 1)
            window = line[first : first + reach]
            taken = room[: _take(placement, window, random, room, keys, few, False)]
        # Annealing accepts an increase d of the sum with probability exp(-d / heat).
        allowed = 2.0**60
        if not len(late):
            heat, total = hot * (cold / hot) ** (step / steps), 0
            for i in taken:
                total += placement.starts[i]
            allowed = total - heat * math.log(uniform(random))
        out = _put_back(placement, kept, taken, random, allowed, len(late) > 0)
        if out == _UNDONE:
            continue
        if len(placement.offsets):
            copy_into(line[count - len(taken) :], taken, len(taken))
        elif out >= 0:
            late[which] = out
        elif len(late):
            left -= 1
            late[which] = late[left]
    return left


@borrowing
def _take(
    placement: Placement,
    window: Integers,
    random: State,
    taken: Integers,
    keys: Floats,
    limit: int,
    is_late: bool,
) -> int:
    """Remove some requests of a window, all with the same probability; return how many are taken.

    They join a late one that is there already.  All are then sorted: by volume, by peak, or at
    random, with a late one also by latest start, or at random behind it.
    """
    count = 1 if is_late else 0
    # A place is taken with the share of places that are wanted among those left: all are alike.
    for place in range(len(window)):
        if below(random, len(window) - place) < limit - count:
            i = window[place]
            if placement.starts[i] >= 0:
                taken[count] = i
                hold(placement, i, -1)
                count += 1
    way = below(random, 5 if is_late else 3)
    for x in range(count):
        i, spot = taken[x], x
        prompt, output = placement.prompts[i], placement.outputs[i]
        if way == 0:
            key = output * (2.0 * prompt + output + 1)
        elif way == 1:
            key = -1.0 * (prompt + output)
        elif way == 3:
            key = 1.0 * placement.latest[i]
        else:
            key = uniform(random)
        if way == 4 and x == 0:
            key = -1.0
        while spot > 0 and keys[spot - 1] > key:
            taken[spot], keys[spot] = taken[spot - 1], keys[spot - 1]
            spot -= 1
        taken[spot], keys[spot] = i, key
    return count


@borrowing
def _put_back(
    placement: Placement,
    kept: Placement,
    taken: Integers,
    random: State,
    allowed: float,
    may_leave: bool,
) -> int:
    """Reinsert requests, unless the sum of their starts exceeds the limit.

    Returns the request that is left out, if one may be, or `_NONE_LEFT`; and `_UNDONE` if all are
    as before.
    """
    freed, left, pauses = NEVER, _NONE_LEFT, len(placement.offsets) > 0
    for i in taken:
        start = placement.starts[i]
        freed = min(freed, placement.times[placement.offsets[i]] - 1 if pauses else start)
        placement.starts[i] = -1
    for i in taken:
        # A request that starts earlier ends before ``freed``: nothing has changed for it.
        begin = max(placement.arrivals[i], freed - placement.outputs[i])
        if not pauses and uniform(random) < _HELD_BACK:
            begin = max(begin, kept.starts[i]) + 1 + below(random, _LONGEST_WAIT)
        latest = min(placement.latest[i], math.floor(allowed))
        if place(placement, i, begin, latest, random, _BLINK):
            allowed -= placement.starts[i]
        elif may_leave and left == _NONE_LEFT:
            left = i
        else:
            left = _UNDONE
            break
    # The new places are kept, or the old ones restored.
    is_undone = left == _UNDONE
    source, target = (kept, placement) if is_undone else (placement, kept)
    for i in taken:
        if is_undone and placement.starts[i] >= 0:
            hold(placement, i, -1)
        target.starts[i], target.workers[i] = source.starts[i], source.workers[i]
        if pauses:
            for token in range(source.offsets[i], source.offsets[i + 1]):
                target.times[token] = source.times[token]
        if is_undone and placement.starts[i] >= 0:
            hold(placement, i, 1)
    return left

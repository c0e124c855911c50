"""Schedules with pauses from orders: each request takes the first times that still have room.

Requests are placed one by one.  Each walks on from its arrival and is active at every time at
which its next token fits beside all that was placed before it.  That is what a scheduler does that
fills each round in a fixed order of priority, skips what does not fit, and lets a request that has
to make room keep its tokens.  A pause wastes no memory: the token-rounds of a request are the same
however it is cut, so few rounds are filled badly.

Simulated annealing over orders makes them better: a step moves a request in the order, or swaps
two, and places again all that comes after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kvopt.errors import TooLarge
from kvopt.heuristics.decode import LARGEST_HORIZON
from kvopt.kernels.compile_clock import working_time
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import State, below, uniform
from kvopt.problem.arrays import Integers, columns_of
from kvopt.problem.instance import Instance
from kvopt.timetable.schedule import Schedule

_CHUNK = 20_000_000
"""Times that steps may walk between two looks at the limits: a tenth of a second."""
_REACH = 30
"""Places by which a step moves a request at most."""
_CYCLES = 6
"""Times that the heat falls, each time from the best order so far."""


class PausedProblem(NamedTuple):
    """An instance as arrays; the times of request i are those from ``offsets[i]`` on."""

    memory: int
    arrivals: Integers
    prompts: Integers
    outputs: Integers
    offsets: Integers


class Placed(NamedTuple):
    """What an order leads to.

    Parameters
    ----------
    order
        Requests by priority.
    times
        Their active times, see `PausedProblem`.
    ends
        Completions.
    load
        Tokens held at each time.
    """

    order: Integers
    times: Integers
    ends: Integers
    load: Integers


def schedule_by_order(instance: Instance, order: Sequence[int]) -> Schedule:
    """Return the schedule of an order."""
    problem = _problem(instance)
    return _schedule(instance, problem, _placed(instance, problem, order))


def usual_orders(instance: Instance) -> Iterator[list[int]]:
    """Yield orders that are good as a rule, the usually best one first: by volume, by output."""
    for key in ("volume", "output"):
        yield sorted(range(len(instance)), key=lambda i: (getattr(instance.requests[i], key), i))


def search_paused_orders(
    instance: Instance,
    seconds: float = math.inf,
    *,
    seed: int = 0,
    steps: int = 20_000,
    should_stop: Callable[[], bool] = lambda: False,
) -> Schedule:
    """Return the best schedule that was found within so many seconds, and steps in a cycle."""
    end = working_time() + seconds
    problem = _problem(instance)
    best = min((_placed(instance, problem, order) for order in usual_orders(instance)), key=_value)
    random = np.array([seed])
    count = len(instance)

    def is_over() -> bool:
        return working_time() >= end or should_stop()

    for _ in range(_CYCLES if count > 1 else 0):
        trial = Placed(*(part.copy() for part in best))
        hot, cold = max(2.0, instance.total_output / count / 8), 0.2
        done = 0
        while done < steps and not is_over():
            done += _anneal(problem, trial, best, random, (hot, cold), (done, steps), _CHUNK)
    return _schedule(instance, problem, best)


def _value(placed: Placed) -> int:
    return int(placed.ends.sum())


def _problem(instance: Instance) -> PausedProblem:
    if instance.last_arrival + instance.total_output > LARGEST_HORIZON:
        rounds = instance.last_arrival + instance.total_output
        raise TooLarge(f"{rounds:,} rounds are more than the limit of {LARGEST_HORIZON:,}")
    arrivals, prompts, outputs = columns_of(instance)
    offsets = np.concatenate(([0], outputs.cumsum()))
    return PausedProblem(instance.memory, arrivals, prompts, outputs, offsets)


def _placed(instance: Instance, problem: PausedProblem, order: Sequence[int]) -> Placed:
    """Place all requests.  A time without load has room, so all end by the last arrival + work."""
    placed = Placed(
        np.array(order, dtype=np.int64),
        np.zeros(instance.total_output, dtype=np.int64),
        np.zeros(len(instance), dtype=np.int64),
        np.zeros(instance.last_arrival + instance.total_output + 2, dtype=np.int64),
    )
    _place_from(problem, placed, 0, 2**62)
    return placed


def _schedule(instance: Instance, problem: PausedProblem, placed: Placed) -> Schedule:
    begins = np.diff(placed.times, prepend=-1) != 1
    begins[problem.offsets[:-1]] = True
    (first,) = begins.nonzero()
    ends = np.append(first, len(placed.times))[1:] - 1
    pairs = list(zip(placed.times[first].tolist(), placed.times[ends].tolist(), strict=True))
    edges = np.searchsorted(first, problem.offsets).tolist()
    return Schedule(instance, segments=[pairs[a:b] for a, b in pairwise(edges)])


@compiled
def _place(problem: PausedProblem, placed: Placed, i: int) -> int:
    """Place a request after all that the load holds; return its completion."""
    memory, load, times = problem.memory, placed.load, placed.times
    offset, needed = problem.offsets[i], problem.prompts[i] + 1
    time = problem.arrivals[i]
    for j in range(problem.outputs[i]):
        time += 1
        while load[time] + needed > memory:
            time += 1
        load[time] += needed
        times[offset + j] = time
        needed += 1
    placed.ends[i] = time
    return int(time)


@compiled
def _remove(problem: PausedProblem, placed: Placed, i: int) -> None:
    """Take the tokens of a request out of the load."""
    held = problem.prompts[i]
    for place in range(problem.offsets[i], problem.offsets[i + 1]):
        held += 1
        placed.load[placed.times[place]] -= held


@compiled
def _place_from(problem: PausedProblem, placed: Placed, first: int, bar: int) -> tuple[int, int]:
    """Place all from a position on; return the sum of completions and how far it came.

    It ends early where the sum passes a bar.
    """
    total = 0
    for position in range(first, len(placed.order)):
        total += _place(problem, placed, placed.order[position])
        if total > bar:
            return total, position + 1
    return total, len(placed.order)


@compiled
def _move(order: Integers, p: int, q: int) -> None:
    """Move what is at a position to another one."""
    i = order[p]
    step = 1 if p < q else -1
    for position in range(p, q, step):
        order[position] = order[position + step]
    order[q] = i


@compiled
def _anneal(
    problem: PausedProblem, trial: Placed, best: Placed, random: State,
    heats: tuple[float, float], steps: tuple[int, int], most: int,
) -> int:  # fmt: skip
    """Take steps, from a number of them on, until so many times were walked; return how many."""
    count, walked, done = len(trial.order), 0, 0
    hot, cold = heats
    begin, end = steps
    value, least = trial.ends.sum(), best.ends.sum()
    ends, times = trial.ends.copy(), trial.times.copy()
    while walked < most and begin + done < end:
        heat = hot * (cold / hot) ** ((begin + done) / end)
        done += 1
        p = below(random, count)
        q = (
            p + 1 + below(random, _REACH)
            if below(random, 2) == 0
            else p - 1 - below(random, _REACH)
        )
        q = min(max(q, 0), count - 1)
        if p == q:
            continue
        first = min(p, q)
        before = 0
        for position in range(first, count):
            _remove(problem, trial, trial.order[position])
            before += trial.ends[trial.order[position]]
        _move(trial.order, p, q)
        bar = before - int(heat * math.log(uniform(random)))
        total, until = _place_from(problem, trial, first, bar)
        walked += 2 * before
        if total <= bar:
            for position in range(first, count):
                i = trial.order[position]
                ends[i] = trial.ends[i]
                for place in range(problem.offsets[i], problem.offsets[i + 1]):
                    times[place] = trial.times[place]
            value += total - before
            if value < least:
                least = value
                best.order[:] = trial.order
                best.times[:] = trial.times
                best.ends[:] = trial.ends
                best.load[:] = trial.load
            continue
        for position in range(first, until):
            _remove(problem, trial, trial.order[position])
        _move(trial.order, q, p)
        for position in range(first, count):
            i = trial.order[position]
            trial.ends[i] = ends[i]
            held = problem.prompts[i]
            for place in range(problem.offsets[i], problem.offsets[i + 1]):
                held += 1
                trial.times[place] = times[place]
                trial.load[times[place]] += held
    return done

"""Local search over orders: simulated annealing in cycles that get longer.

A schedule is an order and a release for each request (`kvopt.heuristics.decode`).  A step moves
one request in the order, swaps two or holds one back, decodes again from the change on, and keeps
or drops it.  Each cycle starts from the best schedule so far and cools down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kvopt.errors import TooLarge
from kvopt.heuristics.decode import (
    Line,
    Problem,
    first_arrival,
    hold,
    keep,
    line_of,
    place,
    problem_of,
    recall,
)
from kvopt.heuristics.turns import Passes, Turn, take_one
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compiled import compiled
from kvopt.kernels.random_numbers import State, below, uniform
from kvopt.problem.arrays import Integers

_FIRST_CYCLE, IDLE_CYCLES = 20_000, 4
"""Steps of the first cycle; cycles without improvement after which they end."""
COLDEST = 0.3
"""Temperature at the end of a cycle, in rounds of latency."""
_CHUNKS = 40
"""Parts of a cycle, between which limits are looked at."""

_OBJECTIVE, _BEST, _DIRTY = range(3)  # entries of `Trial.state`


def search_orders(
    search: Search, seconds: float, seed: int = 0, most_cycles: int | None = None
) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more."""
    take_one(search, anneal_orders, seconds, seed, most_cycles)


def anneal_orders(turn: Turn, seed: int = 0) -> Passes:
    """Cool down again and again, in longer and longer cycles, until nothing improves any more."""
    search = turn.search
    if search.schedule is None or len(search.instance) < 2:
        return
    try:
        problem = problem_of(search.instance)
    except TooLarge as error:
        search.note(f"no local search: {error}")
        return
    longest, cycles, idle = search.params.improve.longest_cycle, 0, 0
    steps = min(_FIRST_CYCLE, longest)
    while idle < IDLE_CYCLES:
        before = search.schedule.objective
        _cycle(turn, problem, steps, seed + cycles)
        idle = 0 if search.schedule.objective < before else idle + 1
        cycles += 1
        steps = min(2 * steps, longest)
        yield


def _cycle(turn: Turn, problem: Problem, steps: int, seed: int) -> None:
    """Cool down once, from the best schedule so far."""
    search = turn.search
    assert search.schedule is not None
    line = _line(search, problem, search.schedule.starts)
    trial = trial_of(problem, line, seed)
    count = len(search.instance)
    reach = max(1, min(count - 1, 20 if count > 200 else count))
    hot = max(2.0, search.instance.total_output / count / 2)
    for part in range(_CHUNKS):
        heats = tuple(hot * (COLDEST / hot) ** (step / _CHUNKS) for step in (part, part + 1))
        anneal(problem, line, trial, heats, max(1, steps // _CHUNKS), reach)
        _offer(search, trial)
        if turn.is_late():
            return


def _line(search: Search, problem: Problem, starts: Sequence[int]) -> Line:
    """Return the schedule as a line: its order, and its starts as releases where it needs them."""
    first = first_arrival(search.instance)
    order = sorted(range(len(starts)), key=lambda i: (starts[i], i))
    line = line_of(problem, order)
    if int(line.starts.sum()) + first * len(starts) > sum(starts):
        line = line_of(problem, order, [start - first for start in starts])
    return line


def _offer(search: Search, trial: Trial) -> None:
    assert search.schedule is not None
    first = first_arrival(search.instance)
    if int(trial.best.sum()) + first * len(trial.best) < sum(search.schedule.starts):
        search.offer_starts([int(start) + first for start in trial.best], "local search")


# ---- one step, compiled --------------------------------------------------------------------


class Trial(NamedTuple):
    """A line that is being changed, beside the one that is kept.

    Parameters
    ----------
    order, releases, starts
        As in `Line`; they differ from the line's from the change on.
    profile
        Tokens held at every time.
    state
        Sum of starts of the line and the least so far, and the last time with tokens in the
        profile.
    random
        State of the random numbers.
    best
        The starts of the least sum.
    """

    order: Integers
    releases: Integers
    starts: Integers
    profile: Integers
    state: Integers
    random: State
    best: Integers


def trial_of(problem: Problem, line: Line, seed: int) -> Trial:
    """Return a trial that agrees with the line."""
    total = int(line.starts.sum())
    state, random = np.array([total, total, 0]), np.array([seed])
    copies = line.order.copy(), line.releases.copy(), line.starts.copy()
    return Trial(*copies, problem.held.copy(), state, random, line.starts.copy())


@compiled
def _evaluate(
    problem: Problem, line: Line, trial: Trial, first: int, last: int, bar: int
) -> tuple[int, int]:
    """Decode the trial from a change at the positions ``first .. last`` on.

    Returned are the change of the sum of starts and where decoding ended: early when
    everything is as before, or when it is so much worse that it will not be kept.
    """
    latest, end = recall(problem, line, first, trial.profile, trial.state[_DIRTY])
    delta = 0
    same = True
    until = len(trial.order)
    for position in range(first, len(trial.order)):
        i = trial.order[position]
        start = place(problem, trial.profile, i, trial.releases[i], latest)
        latest, end = max(latest, start), max(end, start + problem.outputs[i])
        trial.starts[i] = start
        delta += start - line.starts[i]
        same = same and start == line.starts[i]
        if position >= last and (same or (position >= last + 10 and delta > bar)):
            until = position + 1
            break
    trial.state[_DIRTY] = max(end, 0)
    return delta, until


@compiled
def _commit(problem: Problem, line: Line, trial: Trial, first: int, until: int) -> None:
    """Take the trial over into the line, and keep its prefixes again."""
    for position in range(first, until):
        i = trial.order[position]
        line.order[position] = i
        line.starts[i] = trial.starts[i]
        line.releases[i] = trial.releases[i]
    top = min(len(line.ends) - 1, (until - 1) // line.stride)
    if first // line.stride + 1 > top:
        return
    latest, end = recall(problem, line, first, trial.profile, trial.state[_DIRTY])
    for position in range(first, top * line.stride + 1):
        if position % line.stride == 0 and position > first:
            keep(problem, line, position // line.stride, trial.profile, latest, end)
        i = line.order[position]
        hold(problem, trial.profile, i, line.starts[i])
        latest = max(latest, line.starts[i])
        end = max(end, line.starts[i] + problem.outputs[i])
    trial.state[_DIRTY] = end


@compiled
def _rollback(line: Line, trial: Trial, first: int, until: int) -> None:
    """Take the line over into the trial."""
    for position in range(first, until):
        i = line.order[position]
        trial.order[position] = i
        trial.starts[i] = line.starts[i]
        trial.releases[i] = line.releases[i]


@compiled
def _propose(problem: Problem, line: Line, trial: Trial, reach: int) -> tuple[int, int]:
    """Change a release, swap two positions or move one; return the first and last changed."""
    count = len(line.order)
    kind = below(trial.random, 100)
    p = below(trial.random, count)
    if kind < 3:
        i = line.order[p]
        if line.releases[i] > problem.arrivals[i]:
            trial.releases[i] = problem.arrivals[i]
        else:
            later = line.starts[i] + 1 + below(trial.random, 3)
            trial.releases[i] = min(later, problem.last)
        return p, p
    step = 1 + below(trial.random, 1 + below(trial.random, reach))  # short steps more often
    q = p + step if below(trial.random, 2) == 0 else p - step
    q = min(max(q, 0), count - 1)
    if kind < 50:
        trial.order[p], trial.order[q] = trial.order[q], trial.order[p]
    else:
        i = trial.order[p]
        direction = 1 if p < q else -1
        for position in range(p, q, direction):
            trial.order[position] = trial.order[position + direction]
        trial.order[q] = i
    return min(p, q), max(p, q)


@compiled
def anneal(
    problem: Problem, line: Line, trial: Trial, heats: tuple[float, float], steps: int, reach: int
) -> None:
    """Take so many steps while the heat falls from one value to the other.

    A change that makes the sum of starts worse by d is kept with probability
    ``exp(-d / heat)``.
    """
    state = trial.state
    hot, cold = heats
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        allowed = -heat * math.log(uniform(trial.random))
        first, last = _propose(problem, line, trial, reach)
        delta, until = _evaluate(problem, line, trial, first, last, int(allowed) + 20)
        if delta > allowed:
            _rollback(line, trial, first, until)
            continue
        _commit(problem, line, trial, first, until)
        state[_OBJECTIVE] += delta
        if state[_OBJECTIVE] < state[_BEST]:
            state[_BEST] = state[_OBJECTIVE]
            trial.best[:] = line.starts

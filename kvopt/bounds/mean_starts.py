"""Mean starts of requests in the LP relaxation: which it would rather start early.

``y_i = sum_k k x[i, k]`` for a solution x of the relaxed time-indexed program (wang-2025
section 6).  They order requests and prove nothing, so the horizon may be that of any feasible
schedule.

Requests of one kind are interchangeable, and the LP says only how much of a kind starts when.
The starts of a kind are dealt out in ascending order: the first request gets the earliest unit
of them, the second the next.  That is an optimal solution if the LP's is.

Where the LP is too large, averages of Lagrangian minimisers take the place of its solution.  With
a price on memory every request has a cheapest start of its own (`kvopt.bounds.prices`).  At prices
near the best ones, these starts averaged over the steps that led there approach an optimal
solution of the LP: the volume algorithm of Barahona and Anbil (2000).  It needs no matrix, so it
runs where the LP has millions of columns.  The fluid prices that it begins with are nearly the
best ones already, so few steps do: fewer the larger the instance is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import eq
from typing import NamedTuple

import numpy as np

from kvopt.bounds.columns import lp_vertex
from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.kinds import Kind, Kinds
from kvopt.bounds.lagrangian import first_prices
from kvopt.errors import TooLarge
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.problem.parts import split
from kvopt.timetable.schedule import Schedule

MOST_STEPS, LEAST_STEPS = 100, 10
"""Steps along the averaged excess of memory, at most and at least; more hardly move the order."""
_COSTS = 10_000_000
"""Costs that all steps look at together, unless the least steps look at more."""
_WEIGHT = 0.1
"""Share of the newest minimisers in the average."""
_STEP = 0.002
"""First step, as a share of the bound; longer after successes, shorter after failures."""
_LAST_TIME = 20_000_000
"""Last time that may have a price; beyond, the tables take too much memory."""


def lp_mean_starts(instance: Instance, starts: Sequence[int]) -> list[float]:
    """Return the mean start of each request in the LP; raise `TooLarge` if it is for HiGHS.

    Parameters
    ----------
    instance
        The problem.
    starts
        A feasible schedule; the LP ends with it.
    """
    return _by_parts(instance, starts, _lp_mean_starts)


def _lp_mean_starts(instance: Instance, starts: Sequence[int]) -> Floats:
    members, means = _kinds(instance), np.empty(len(instance))
    averaged, end = averaged_minimisers(instance), Schedule(instance, starts).makespan
    latest = end - averaged.kinds.outputs
    columns = [
        (place, starts[i])
        for place, kind in enumerate(averaged.kinds.rows())
        for i in members[kind]
    ]
    for each in averaged.starts:
        columns += enumerate(np.minimum(each, latest).tolist())
    places, begins, mass = lp_vertex(instance, end, columns)
    for place, kind in enumerate(averaged.kinds.rows()):
        own = places == place
        means[members[kind]] = dealt(begins[own], mass[own], len(members[kind]))
    return means


def _by_parts(
    instance: Instance,
    starts: Sequence[int] | None,
    means_of: Callable[[Instance, Sequence[int]], Floats],
) -> list[float]:
    """Return the means of each part by itself, with its starts if there are any."""
    means = np.empty(len(instance))
    if starts is not None and all(map(eq, starts, (request.arrival for request in instance))):
        means[:] = starts  # no other solution of the LP is optimal
    else:
        for part in split(instance):
            found = means_of(part.instance, part.starts_of(starts) if starts else ())
            means[list(part.members)] = part.begin + found
    return [float(mean) for mean in means]


def lp_nonzeros(instance: Instance, starts: Sequence[int]) -> int:
    """Return how many nonzeros the LP of `lp_mean_starts` has."""
    return _nonzeros(_kinds(instance), Schedule(instance, starts).makespan)


def lp_nonzeros_at_least(instance: Instance) -> int:
    """Return a number that `lp_nonzeros` is not below, whatever the schedule is.

    No schedule of a backlog ends before its volume has gone through the memory.
    """
    return 0 if instance.last_arrival else _nonzeros(_kinds(instance), fluid_end(instance))


def _nonzeros(kinds: Iterable[Kind], end: int) -> int:
    return sum(max(end - arrival - output + 1, 0) * (output + 1) for arrival, _, output in kinds)


def lagrangian_mean_starts(instance: Instance, starts: Sequence[int] | None = None) -> list[float]:
    """Return the mean start of each request in averaged minimisers of the Lagrangian.

    A feasible schedule is needed only to see whether all requests can start on arrival.
    """
    return _by_parts(instance, starts, _lagrangian_mean_starts)


def _lagrangian_mean_starts(instance: Instance, _: Sequence[int]) -> Floats:
    averaged = averaged_minimisers(instance)
    kinds, means = _kinds(instance), np.empty(len(instance))
    alone = _dealt_to_one(averaged.starts, averaged.weights)
    for place, kind in enumerate(averaged.kinds.rows()):
        members = kinds[kind]
        if len(members) == 1:
            means[members[0]] = alone[place]
        else:
            means[members] = dealt(averaged.starts[:, place], averaged.weights, len(members))
    return means


class Averaged(NamedTuple):
    """Minimisers of a sequence of Lagrangian subproblems.

    Starts have a row for each step and a column for each kind; the weights of the steps sum to 1.
    """

    kinds: Kinds
    starts: Integers
    weights: Floats


def averaged_minimisers(instance: Instance) -> Averaged:
    """Return minimisers of subproblems from the fluid prices on."""
    from kvopt.bounds.scan import Scanner  # it loads numba

    if (end := fluid_end(instance)) > _LAST_TIME:
        raise TooLarge(f"schedules span {end:,} rounds; the limit is {_LAST_TIME:,}")
    prices, scanner = first_prices(instance), Scanner(Kinds.of(instance))
    best, starts, average = scanner.lagrangian(prices, instance.memory)
    minimisers, weights = [starts], np.ones(1)
    step, failures = _STEP, 0
    costs = len(scanner.kinds) * len(prices)
    for _ in range(max(LEAST_STEPS, min(MOST_STEPS, _COSTS // costs))):
        steepness = float(average @ average)
        if steepness == 0:
            break
        trial = np.maximum(prices + step * max(best, 1.0) / steepness * average, 0.0)
        value, starts, excess = scanner.lagrangian(trial, instance.memory)
        minimisers.append(starts)
        weights = np.append((1 - _WEIGHT) * weights, _WEIGHT)
        average = (1 - _WEIGHT) * average + _WEIGHT * excess
        if value > best:
            prices, best, step, failures = trial, value, 1.1 * step, 0
        else:
            failures += 1
            step = step / 1.5 if failures % 10 == 0 else step
    return Averaged(scanner.kinds, np.array(minimisers), weights)


def dealt(starts: Integers, mass: Floats, count: int) -> Floats:
    """Deal mass at starts out to so many requests, earliest first, and return their means."""
    order = starts.argsort(kind="stable")
    held = np.concatenate(([0.0], mass[order].cumsum()))
    moment = np.concatenate(([0.0], (mass[order] * starts[order]).cumsum()))
    cuts = np.interp(np.linspace(0.0, held[-1], count + 1), held, moment)
    return np.asarray(np.diff(cuts) * count / held[-1])


def _dealt_to_one(starts: Integers, mass: Floats) -> Floats:
    """Return what `dealt` has for a single request, for every column of starts.

    Sums are taken in the same order, so that not one bit differs.
    """
    order = starts.argsort(axis=0, kind="stable")
    held = mass[order].cumsum(axis=0)[-1]
    moment = (mass[order] * np.take_along_axis(starts, order, 0)).cumsum(axis=0)[-1]
    return np.asarray(moment / held)


def _kinds(instance: Instance) -> dict[Kind, list[int]]:
    """Return the requests of each kind."""
    members: dict[Kind, list[int]] = defaultdict(list)
    for i, request in enumerate(instance):
        members[request.kind].append(i)
    return members

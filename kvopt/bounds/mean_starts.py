"""Mean starts of requests in the LP relaxation, an order in which to start them.

``y_i = sum_k k x[i, k]`` for a solution x of the relaxed time-indexed program (wang-2025
section 6).

Requests of one kind are interchangeable, and the LP gives only the mass of a kind at each start.
The starts of a kind are dealt out in ascending order: the first request gets the earliest unit
of them, the second the next.  That is an optimal solution if the LP's is.

Where the LP is too large, averages of Lagrangian minimisers replace its solution.  With
a price on memory every request has a cheapest start of its own (`kvopt.bounds.prices`).  At prices
near the best ones, these starts averaged over the steps that led there approach an optimal
solution of the LP: the volume algorithm of Barahona and Anbil (2000).  It needs no matrix, so it
runs where the LP has millions of columns.  The fluid prices that it begins with are nearly the
best ones already, so few steps suffice, fewer for larger instances.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.kinds import Kind, Kinds
from kvopt.bounds.lp import averaged_minimisers, lp_vertices
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget
from kvopt.problem.arrays import Floats, Integers
from kvopt.problem.instance import Instance
from kvopt.problem.parts import split
from kvopt.timetable.schedule import Schedule


def lp_mean_starts(instance: Instance) -> list[float]:
    """Return the mean start of each request in the LP; raise `TooLarge` if it is for HiGHS."""
    return _by_parts(instance, _lp_mean_starts)


def lagrangian_mean_starts(instance: Instance) -> list[float]:
    """Return the mean start of each request in averaged minimisers of the Lagrangian."""
    return _by_parts(instance, _lagrangian_mean_starts)


def _lp_mean_starts(instance: Instance) -> Floats:
    *_, vertex = lp_vertices(instance, Budget(), Limits())
    owns = (vertex.places == place for place in range(len(Kinds.of(instance))))
    return _all_dealt(
        instance, ((vertex.starts[of_kind], vertex.mass[of_kind]) for of_kind in owns)
    )


def _lagrangian_mean_starts(instance: Instance) -> Floats:
    averaged = averaged_minimisers(instance)
    return _all_dealt(instance, ((starts, averaged.weights) for starts in averaged.starts.T))


def _all_dealt(instance: Instance, columns: Iterable[tuple[Integers, Floats]]) -> Floats:
    """Return the means of all requests, from the starts of each of the `Kinds` and their mass."""
    members, means = _kinds(instance), np.empty(len(instance))
    for kind, (starts, mass) in zip(sorted(members), columns, strict=True):
        means[members[kind]] = dealt(starts, mass, len(members[kind]))
    return means


def _by_parts(instance: Instance, means_of: Callable[[Instance], Floats]) -> list[float]:
    """Return the means of each part by itself, arrivals if all requests can start then."""
    arrivals = [request.arrival for request in instance]
    if Schedule(instance, arrivals).peak_memory <= instance.memory:
        return [float(arrival) for arrival in arrivals]
    means = np.empty(len(instance))
    for part in split(instance):
        means[list(part.members)] = part.begin + means_of(part.instance)
    return [float(mean) for mean in means]


def lp_nonzeros(instance: Instance) -> int:
    """Return how many nonzeros the LP of `lp_mean_starts` has up to the end of the fluid."""
    end, nonzeros = fluid_end(instance), 0
    for arrival, _, output in _kinds(instance):
        rounds = end - arrival
        rows = min(output, rounds)
        nonzeros += rounds + 1 + rows * (rows + 1) // 2 + (rounds - rows) * rows
    return nonzeros


def dealt(starts: Integers, mass: Floats, count: int) -> Floats:
    """Deal mass at starts out to so many requests, earliest first, and return their means."""
    order = starts.argsort(kind="stable")
    held = np.concatenate(([0.0], mass[order].cumsum()))
    moment = np.concatenate(([0.0], (mass[order] * starts[order]).cumsum()))
    cuts = np.interp(np.linspace(0.0, held[-1], count + 1), held, moment)
    return np.asarray(np.diff(cuts) * count / held[-1])


def _kinds(instance: Instance) -> dict[Kind, list[int]]:
    """Return the requests of each kind."""
    members: dict[Kind, list[int]] = defaultdict(list)
    for i, request in enumerate(instance):
        members[request.kind].append(i)
    return members

"""Mean starts of requests in the LP relaxation: which it would rather start early.

``y_i = sum_k k x[i, k]`` for a solution x of the relaxed time-indexed program (wang-2025
section 6).  They order requests and prove nothing, so the horizon may be that of any feasible
schedule.  Where the LP is too large, averaged minimisers of the Lagrangian take the place of
its solution (`kvopt.bounds.averaged`).

Requests of one kind are interchangeable, and the LP says only how much of a kind starts when.
The starts of a kind are dealt out in ascending order: the first request gets the earliest unit
of them, the second the next.  That is an optimal solution if the LP's is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from kvopt.bounds.kinds import Floats, Integers
from kvopt.bounds.lp import windows_around
from kvopt.errors import TooLarge
from kvopt.formulations.arrays import ArrayModel, time_indexed_arrays
from kvopt.formulations.highs import solved_relaxation
from kvopt.formulations.windows import Windows
from kvopt.kernels.dependencies import load_highspy
from kvopt.model.instance import Instance, Request
from kvopt.model.parts import split
from kvopt.search.incumbent import Search

Kind = tuple[int, int, int]
"""Arrival, prompt and output: what requests of one kind have in common."""


def lp_mean_starts(instance: Instance, starts: Sequence[int]) -> list[float]:
    """Return the mean start of each request in the LP; raise `TooLarge` if it is for HiGHS.

    Parameters
    ----------
    instance
        The problem.
    starts
        A feasible schedule; the LP ends with it.
    """
    if _all_at_once(instance, starts):
        return [float(start) for start in starts]
    return _by_parts(instance, starts, _lp_mean_starts)


def _lp_mean_starts(instance: Instance, starts: Sequence[int]) -> list[float]:
    kinds = _kinds(instance)
    model = _model(instance, kinds, _windows(instance, starts, kinds))
    solution = _solved(model)
    means = np.empty(len(instance))
    for members, window, begin in zip(
        kinds.values(), model.layout.windows, model.begins[:-1], strict=True
    ):
        mass = np.maximum(solution[begin : begin + len(window)], 0.0)
        means[members] = dealt(np.array(window), mass, len(members))
    return [float(mean) for mean in means]


def _by_parts(
    instance: Instance,
    starts: Sequence[int],
    means_of: Callable[[Instance, Sequence[int]], list[float]],
) -> list[float]:
    """Return the means of each part by itself, with its starts if there are any."""
    means = [0.0] * len(instance)
    for part in split(instance):
        found = means_of(part.instance, part.starts_of(starts) if starts else ())
        for i, mean in zip(part.members, found, strict=True):
            means[i] = part.begin + mean
    return means


def lp_nonzeros(instance: Instance, starts: Sequence[int]) -> int:
    """Return how many nonzeros the LP of `lp_mean_starts` has."""
    kinds = _kinds(instance)
    windows = _windows(instance, starts, kinds)
    return sum(len(window) * (kind[2] + 1) for kind, window in zip(kinds, windows, strict=True))


def lp_nonzeros_at_least(instance: Instance) -> int:
    """Return a number that `lp_nonzeros` is not below, whatever the schedule is.

    No schedule of a backlog ends before its volume has gone through the memory.
    """
    if instance.last_arrival:
        return 0
    end = -(-sum(request.volume for request in instance) // instance.memory)
    return sum(max(end - kind[2] + 1, 0) * (kind[2] + 1) for kind in _kinds(instance))


def lagrangian_mean_starts(instance: Instance, starts: Sequence[int] | None = None) -> list[float]:
    """Return the mean start of each request in averaged minimisers of the Lagrangian.

    A feasible schedule is needed only to see whether all requests can start on arrival.
    """
    if starts is not None and _all_at_once(instance, starts):
        return [float(start) for start in starts]
    return _by_parts(instance, (), lambda part, _: _lagrangian_mean_starts(part))


def _lagrangian_mean_starts(instance: Instance) -> list[float]:
    from kvopt.bounds.averaged import averaged_minimisers  # it loads numba

    averaged = averaged_minimisers(instance)
    kinds, means = _kinds(instance), np.empty(len(instance))
    found = averaged.kinds
    columns = zip(
        found.arrivals.tolist(), found.prompts.tolist(), found.outputs.tolist(), strict=True
    )
    alone = _dealt_to_one(averaged.starts, averaged.weights)
    for place, kind in enumerate(columns):
        members = kinds[kind]
        if len(members) == 1:
            means[members[0]] = alone[place]
        else:
            means[members] = dealt(averaged.starts[:, place], averaged.weights, len(members))
    return [float(mean) for mean in means]


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


def _all_at_once(instance: Instance, starts: Sequence[int]) -> bool:
    """Whether every request starts on arrival: then no other solution of the LP is optimal."""
    return all(start == request.arrival for start, request in zip(starts, instance, strict=True))


def _kinds(instance: Instance) -> dict[Kind, list[int]]:
    """Return the requests of each kind."""
    members: dict[Kind, list[int]] = defaultdict(list)
    for i, r in enumerate(instance):
        members[r.arrival, r.prompt, r.output].append(i)
    return members


def _windows(instance: Instance, starts: Sequence[int], kinds: dict[Kind, list[int]]) -> Windows:
    """Return the start window of each kind up to the end of a schedule."""
    windows = windows_around(instance, starts)
    return tuple(windows[members[0]] for members in kinds.values())


def _model(instance: Instance, kinds: dict[Kind, list[int]], windows: Windows) -> ArrayModel:
    """Return the program with one request for each kind, which has to start as often as it does."""
    each = Instance(instance.memory, [Request(*kind) for kind in kinds])
    model = time_indexed_arrays(each, windows, order_identical=False)
    lower, upper = model.row_lower.copy(), model.row_upper.copy()
    lower[: len(kinds)] = upper[: len(kinds)] = [len(members) for members in kinds.values()]
    return replace(model, row_lower=lower, row_upper=upper)


def _solved(model: ArrayModel) -> Floats:
    """Return a solution of the relaxation; Ctrl-C ends the solver too."""
    highs = solved_relaxation(model, Search(model.instance))
    optimal = load_highspy().HighsModelStatus.kOptimal
    if highs is None or highs.getModelStatus() != optimal:
        raise TooLarge(f"HiGHS found no optimum of an LP of {model.num_columns:,} columns")
    return np.array(highs.getSolution().col_value)

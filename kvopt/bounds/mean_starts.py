"""Mean starts of requests in the LP relaxation: which it would rather start early.

``y_i = sum_k k x[i, k]`` for a solution x of the relaxed time-indexed program (wang-2025
section 6).  They order requests and prove nothing, so the horizon may be that of any feasible
schedule.  Where the LP is too large, averaged minimisers of the Lagrangian take the place of
its solution (`kvopt.bounds.averaged`).

Requests of one kind are interchangeable, and an LP may spread their starts among them in any
way.  Here the starts of a kind are dealt out in ascending order: the first request gets the
earliest unit of them, the second the next.  That is an optimal solution if the LP's is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kvopt.bounds.averaged import Floats, Kind, averaged_minimisers
from kvopt.bounds.lp import windows_around
from kvopt.dependencies import load_highspy
from kvopt.engines.threads import run_in_thread
from kvopt.formulations.arrays import ArrayModel, time_indexed_arrays, to_highs
from kvopt.instance import Instance
from kvopt.search import Search

_SIMPLEX_COLUMNS = 30_000
"""Up to here the dual simplex method is the faster one."""


def lp_mean_starts(instance: Instance, starts: Sequence[int]) -> list[float] | None:
    """Return the mean start of each request in the LP, None if HiGHS could not solve it.

    Parameters
    ----------
    instance
        The problem.
    starts
        A feasible schedule; the LP ends with it.
    """
    if _all_at_once(instance, starts):
        return [float(start) for start in starts]
    windows = windows_around(instance, starts)
    model = time_indexed_arrays(instance, windows, order_identical=False)
    solution = _solved(model)
    if solution is None:
        return None
    means = np.empty(len(instance))
    for members in _members(instance).values():
        window = model.layout.windows[members[0]]
        begins = model.begins[members]
        mass = sum(solution[begin : begin + len(window)] for begin in begins)
        means[members] = dealt(np.array(window), np.maximum(mass, 0.0), len(members))
    return [float(mean) for mean in means]


def lp_nonzeros(instance: Instance, starts: Sequence[int]) -> int:
    """Return how many nonzeros the LP of `lp_mean_starts` has."""
    windows = windows_around(instance, starts)
    return sum(len(window) * (r.output + 1) for window, r in zip(windows, instance, strict=True))


def lagrangian_mean_starts(instance: Instance, starts: Sequence[int]) -> list[float]:
    """Return the mean start of each request in averaged minimisers of the Lagrangian.

    The horizon is that of the given feasible schedule.
    """
    if _all_at_once(instance, starts):
        return [float(start) for start in starts]
    end = max(k + r.output for k, r in zip(starts, instance, strict=True))
    averaged = averaged_minimisers(instance, end)
    members, means = _members(instance), np.empty(len(instance))
    for kind, found in zip(averaged.kinds, averaged.starts.T, strict=True):
        means[members[kind]] = dealt(found, averaged.weights, len(members[kind]))
    return [float(mean) for mean in means]


def dealt(starts: npt.NDArray[np.int64], mass: Floats, count: int) -> Floats:
    """Deal mass at starts out to so many requests, earliest first, and return their means."""
    order = starts.argsort(kind="stable")
    held = np.concatenate(([0.0], mass[order].cumsum()))
    moment = np.concatenate(([0.0], (mass[order] * starts[order]).cumsum()))
    cuts = np.interp(np.linspace(0.0, held[-1], count + 1), held, moment)
    return np.asarray(np.diff(cuts) * count / held[-1])


def _all_at_once(instance: Instance, starts: Sequence[int]) -> bool:
    """Whether everybody starts on arrival: then no other solution of the LP is optimal."""
    return all(start == request.arrival for start, request in zip(starts, instance, strict=True))


def _members(instance: Instance) -> dict[Kind, list[int]]:
    """Return the requests of each kind."""
    members: dict[Kind, list[int]] = defaultdict(list)
    for i, r in enumerate(instance):
        members[r.arrival, r.prompt, r.output].append(i)
    return members


def _solved(model: ArrayModel) -> Floats | None:
    """Return a solution of the relaxation; Ctrl-C ends the solver too."""
    highspy = load_highspy()
    highspy.Highs.resetGlobalScheduler(True)
    highs = to_highs(model, relax=True)
    highs.setOptionValue("threads", 1)
    small = model.num_columns <= _SIMPLEX_COLUMNS
    highs.setOptionValue("solver", "simplex" if small else "ipm")
    highs.setOptionValue("run_crossover", "off")
    asked = [False]
    highs.cbSimplexInterrupt += lambda event: event.interrupt() if asked[0] else None
    highs.cbIpmInterrupt += lambda event: event.interrupt() if asked[0] else None
    try:
        run_in_thread(Search(model.instance), highs.run, cancel=lambda: None)
    except BaseException:
        asked[0] = True
        raise
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)

"""HiGHS on the time-indexed integer program, built from sparse arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kvopt.bounds.windows import start_windows
from kvopt.engines.registry import register
from kvopt.formulations.arrays import ArrayModel, time_indexed_arrays, to_highs
from kvopt.formulations.highs import interrupt_of, set_options
from kvopt.formulations.layout import nonzeros
from kvopt.kernels.dependencies import load_highspy
from kvopt.search.incumbent import Search
from kvopt.search.threads import run_in_thread

_BYTES = 250
"""Bytes that HiGHS takes for each coefficient of an integer program, presolved and factored."""


@register("highs")
def run(search: Search, *, presolve: bool = True) -> None:
    """Work on a search with HiGHS until it has a proof or must stop."""
    highspy = load_highspy()
    upper = None if search.schedule is None else search.schedule.objective
    with search.timing("build"):
        windows = start_windows(search.instance, upper)
        search.refuse_beyond_budget(_BYTES * nonzeros(search.instance, windows))
        model = time_indexed_arrays(search.instance, windows)
        highs = to_highs(model)
    if search.should_stop():
        return
    set_options(
        highs,
        search,
        output_flag=False,
        presolve="on" if presolve else "off",
        # Objectives are integers: a gap below 1 is a proof, the default 1e-4 of a large
        # objective is not.
        mip_rel_gap=0.0,
        mip_abs_gap=0.5,
        time_limit=search.remaining,
    )
    _set_start(highspy, highs, model, search)
    ask = interrupt_of(highs)
    _watch(highs, model, search)
    with search.timing("solve"):
        ended = run_in_thread(search, highs.run, cancel=ask)
    if ended:
        _conclude(highspy, highs, model, search)
    else:
        search.note("HiGHS did not return in time and was left behind")


def _set_start(highspy: Any, highs: Any, model: ArrayModel, search: Search) -> None:
    if search.schedule is None:
        return
    columns = model.columns_of(search.schedule.starts, search.schedule.workers)
    if columns is None:  # it starts later than the model's windows allow
        return
    solution = highspy.HighsSolution()
    values = np.zeros(model.num_columns)
    values[columns] = 1.0
    solution.col_value = values
    highs.setSolution(solution)


def _watch(highs: Any, model: ArrayModel, search: Search) -> None:
    def improved(event: Any) -> None:
        _offer(model, search, np.array(event.data_out.mip_solution))

    def logged(event: Any) -> None:
        _offer_bound(search, event.data_out.mip_dual_bound)

    highs.cbMipImprovingSolution += improved
    highs.cbMipLogging += logged


def _conclude(highspy: Any, highs: Any, model: ArrayModel, search: Search) -> None:
    status = highs.getModelStatus()
    known = highspy.HighsModelStatus
    if status == known.kInfeasible:
        search.fault("HiGHS claimed that no schedule exists")
        return
    if status in (known.kNotset, known.kLoadError, known.kModelError, known.kSolveError):
        search.fault(f"HiGHS ended with status {highs.modelStatusToString(status)}")
        return
    info = highs.getInfo()
    if info.primal_solution_status == 2:
        _offer(model, search, np.array(highs.getSolution().col_value))
    _offer_bound(search, info.mip_dual_bound)
    if status == known.kTimeLimit:
        search.ran_out_of_time()
    optimal = status == known.kOptimal
    if optimal and search.schedule is not None:
        claimed = round(info.objective_function_value)
        if claimed != search.schedule.objective and not search.proved:
            search.fault(f"HiGHS claimed an optimum of {claimed} and did not show it")


def _offer(model: ArrayModel, search: Search, values: Any) -> None:
    places = model.places_of(values)
    if places is None:
        search.fault("HiGHS offered a solution that is not integral")
    else:
        search.offer_starts(places[0], "HiGHS", places[1])


def _offer_bound(search: Search, bound: float) -> None:
    """Round a float bound up, with a margin for the tolerances of the solver."""
    if math.isfinite(bound) and abs(bound) < 2**52:
        margin = 1e-4 + 1e-9 * abs(bound)
        search.offer_claimed(math.ceil(bound - margin), "HiGHS")

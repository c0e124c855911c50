"""HiGHS on the time-indexed integer programs, built from sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kvopt.bounds.windows import start_windows
from kvopt.formulations.arrays import Program, time_indexed_arrays, to_highs
from kvopt.formulations.highs import interrupt_of, set_options
from kvopt.formulations.layout import nonzeros
from kvopt.formulations.paused import CELLS_OF_A_COLUMN, paused_arrays
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.dependencies import load_highspy
from kvopt.search.registry import PAUSED_ENGINES, register

_BYTES = 250
"""Bytes that HiGHS takes for each coefficient of an integer program, presolved and factored."""


@register("highs")
def run(search: Search, *, presolve: bool = True) -> None:
    """Work on a search with HiGHS until it has a proof or must stop."""
    with search.timing("build"):
        windows = start_windows(search.instance, search.objective)
        search.refuse_beyond_budget(_BYTES * nonzeros(search.instance, windows))
        model = time_indexed_arrays(search.instance, windows)
    best = search.schedule
    known = None if best is None else model.columns_of(best.starts, best.workers)

    def offer(values: Any) -> bool:
        places = model.places_of(values)
        if places is not None:
            search.offer_starts(places[0], "HiGHS", places[1])
        return places is not None

    work_on(search, model, known, offer, presolve=presolve)


@PAUSED_ENGINES.register("highs")
def run_with_pauses(search: Search, *, presolve: bool = True) -> None:
    """Work on a search of schedules with pauses until it has a proof or must stop."""
    with search.timing("build"):
        windows = start_windows(search.instance, search.objective)
        cells = CELLS_OF_A_COLUMN * nonzeros(search.instance, windows)
        search.refuse_beyond_budget(_BYTES * cells)
        model = paused_arrays(search.instance, windows)
    known = None if search.best is None else model.columns_of(search.best)

    def offer(values: Any) -> bool:
        schedule = model.schedule_of(values)
        if schedule is not None:
            search.offer(schedule, "HiGHS")
        return schedule is not None

    work_on(search, model, known, offer, presolve=presolve)


def work_on(
    search: Search,
    model: Program,
    known: list[int] | None,
    offer: Callable[[Any], bool],
    *,
    presolve: bool,
) -> None:
    """Let HiGHS work on a program.

    Parameters
    ----------
    search
        Both sides and the limits.
    model
        The program; its value is total latency.
    known
        Columns that are 1 in a schedule to begin from.
    offer
        Offers the schedule that column values say; returns False where they say none.
    presolve
        Let HiGHS simplify the model first.
    """
    with search.timing("build"):
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
    if known is not None:
        _set_start(highs, model, known)

    def offered(values: Any) -> None:
        if not offer(np.array(values)):
            search.fault("HiGHS offered a solution that is not integral")

    ask = interrupt_of(highs)
    highs.cbMipImprovingSolution += lambda event: offered(event.data_out.mip_solution)
    highs.cbMipLogging += lambda event: _offer_bound(search, event.data_out.mip_dual_bound)
    with search.timing("solve"):
        ended = run_in_thread(search, highs.run, cancel=ask)
    if ended:
        _conclude(highs, search, offered)
    else:
        search.note("HiGHS did not return in time and was left behind")


def _set_start(highs: Any, model: Program, columns: list[int]) -> None:
    values = np.zeros(model.num_columns)
    values[columns] = 1.0
    solution = load_highspy().HighsSolution()
    solution.col_value = values
    highs.setSolution(solution)


def _conclude(highs: Any, search: Search, offered: Callable[[Any], None]) -> None:
    status = highs.getModelStatus()
    known = load_highspy().HighsModelStatus
    if status == known.kInfeasible:
        search.fault("HiGHS claimed that no schedule exists")
        return
    if status in (known.kNotset, known.kLoadError, known.kModelError, known.kSolveError):
        search.fault(f"HiGHS ended with status {highs.modelStatusToString(status)}")
        return
    info = highs.getInfo()
    if info.primal_solution_status == 2:
        offered(highs.getSolution().col_value)
    _offer_bound(search, info.mip_dual_bound)
    if status == known.kTimeLimit:
        search.ran_out_of_time()
    if status == known.kOptimal and search.objective is not None:
        claimed = round(info.objective_function_value)
        if claimed != search.objective and not search.proved:
            search.fault(f"HiGHS claimed an optimum of {claimed} and did not show it")


def _offer_bound(search: Search, bound: float) -> None:
    """Round a float bound up, with a margin for the tolerances of the solver."""
    if math.isfinite(bound) and abs(bound) < 2**52:
        margin = 1e-4 + 1e-9 * abs(bound)
        search.offer_claimed(math.ceil(bound - margin), "HiGHS")

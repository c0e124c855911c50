"""HiGHS on the time-indexed integer program, built from sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kvopt.bounds.start_windows import start_windows
from kvopt.errors import TooLarge
from kvopt.formulations.highs import end_with, set_options
from kvopt.formulations.time_indexed import nonzeros, time_indexed_arrays, to_highs
from kvopt.formulations.windows import Windows, largest_latency
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.solver_versions import load_highspy

_LARGEST_LATENCY, _LARGEST_MEMORY = 2**40, 2**20
"""Limits for programs in floats: tolerances of 10^-6 and more must not hide a round or a token."""
_BYTES = 250
"""Bytes of HiGHS for each coefficient of an integer program, presolved and factored."""


def run(search: Search) -> None:
    """Work on a search with HiGHS until it has a proof or must stop."""
    with search.timing("build"):
        windows = windows_for_floats(search, _BYTES)
        model = time_indexed_arrays(search.instance, windows)
        highs = to_highs(model)
    if search.budget.over():
        return
    set_options(
        highs,
        search.limits,
        output_flag=False,
        presolve="on" if search.limits.presolve else "off",
        # Objectives are integers: a gap below 1 is a proof, the default 1e-4 of a large
        # objective is not.
        mip_rel_gap=0.0,
        mip_abs_gap=0.5,
        time_limit=search.budget.left,
    )
    initial = search.schedule
    if initial is not None and (columns := model.columns_of(initial)) is not None:
        solution = load_highspy().HighsSolution()
        solution.col_value = np.isin(np.arange(model.num_columns), columns).astype(float)
        highs.setSolution(solution)

    def offer(values: Any) -> None:
        if (schedule := model.schedule_of(np.array(values))) is not None:
            search.offer(schedule, "HiGHS")
        else:
            search.fault("HiGHS offered a solution that is not integral")

    end_with(highs, search.budget)
    highs.cbMipImprovingSolution += lambda event: offer(event.data_out.mip_solution)
    highs.cbMipLogging += lambda event: offer_bound(search, event.data_out.mip_dual_bound, "HiGHS")
    with search.timing("solve"):
        # It looks at the budget itself, also while others wait for the compiler.
        ended = run_in_thread(search, highs.run, cancel=lambda: None)
    if ended:
        _conclude(highs, search, offer)
    else:
        search.note("HiGHS did not return in time and was left behind")


def _conclude(highs: Any, search: Search, offer: Callable[[Any], None]) -> None:
    """Offer what HiGHS ended with; a claim that contradicts what is known is a fault.

    Windows keep an optimal schedule, also if none is better than the known one: so no program is
    infeasible.  Schedules are checked when offered, so a claimed optimum must be the best known.
    """
    status = highs.getModelStatus()
    names = load_highspy().HighsModelStatus
    if status == names.kInfeasible:
        search.fault("HiGHS claimed that no schedule exists")
        return
    if status in (names.kNotset, names.kLoadError, names.kModelError, names.kSolveError):
        search.fault(f"HiGHS ended with status {highs.modelStatusToString(status)}")
        return
    info = highs.getInfo()
    if info.primal_solution_status == 2:  # feasible
        offer(highs.getSolution().col_value)
    offer_bound(search, info.mip_dual_bound, "HiGHS")
    if status == names.kTimeLimit:
        search.granted.expire()
    if status == names.kOptimal and search.objective is not None:
        claimed = round(info.objective_function_value)
        if claimed != search.objective and not search.proved:
            search.fault(f"HiGHS claimed an optimum of {claimed} and did not show it")


def windows_for_floats(search: Search, coefficient_bytes: int) -> Windows:
    """Return start windows, or raise `TooLarge`.

    So it is if tolerances of a solver in floats may hide a token or a round, or if memory does not
    suffice for the coefficients of the program.
    """
    instance = search.instance
    windows = start_windows(instance, search.objective)
    if instance.memory > _LARGEST_MEMORY:
        raise TooLarge("a memory above 2^20 tokens is too large for a program in floats")
    if largest_latency(instance, windows) > _LARGEST_LATENCY:
        raise TooLarge("latencies above 2^40 are too large for a program in floats")
    search.budget.refuse(coefficient_bytes * nonzeros(instance, windows))
    return windows


def offer_bound(search: Search, bound: float, solver: str) -> None:
    """Round a float bound up, with a margin for the tolerances of the solver."""
    if math.isfinite(bound):
        margin = 1e-4 + 1e-9 * abs(bound)
        search.offer_claimed(math.ceil(bound - margin), solver)

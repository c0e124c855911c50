"""HiGHS on a model: options, the relaxation, and how to stop it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kvopt.formulations.time_indexed import Program, to_highs
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.budget import Budget
from kvopt.kernels.solver_versions import load_highspy

if TYPE_CHECKING:
    from highspy import Highs

_SIMPLEX_COLUMNS = 20_000
"""Up to so many columns the dual simplex method solves a relaxation faster than interior points."""


def set_options(highs: Highs, search: Search, **options: object) -> None:
    """Set the options of a search and some more; raise if HiGHS refuses one.

    The thread pool belongs to the process: without a reset a later run with another number of
    threads ends at once with the model status Notset.
    """
    highspy = load_highspy()
    highspy.Highs.resetGlobalScheduler(True)
    common = {"threads": search.limits.threads, "random_seed": search.limits.seed % 2**31}
    for name, value in {**common, **options}.items():
        if value != math.inf and highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise RuntimeError(f"HiGHS refused the option {name} = {value}")


def solved_relaxation(search: Search, model: Program, budget: Budget) -> Highs | None:
    """Return HiGHS after it has solved the relaxation, in which several of a kind may start.

    None if it did not return in time; within the limit it may have ended without an optimum.
    """
    highs = to_highs(model, relax=True)
    columns = np.arange(model.num_columns, dtype=np.int32)
    zeros, many = np.zeros(model.num_columns), np.full(model.num_columns, highs.inf)
    highs.changeColsBounds(model.num_columns, columns, zeros, many)
    small = model.num_columns <= _SIMPLEX_COLUMNS
    set_options(
        highs,
        search,
        solver="simplex" if small else "ipm",
        run_crossover="off",
        time_limit=budget.left,
    )
    return highs if interruptible(highs, search)() else None


def interruptible(highs: Highs, search: Search) -> Callable[[], bool]:
    """Return a function that runs HiGHS in a thread, which Ctrl-C and the search can end.

    It returns False if HiGHS did not return in time.
    """
    is_asked = threading.Event()
    for event in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        event += lambda event: event.interrupt() if is_asked.is_set() else None

    def run() -> bool:
        try:
            return run_in_thread(search, highs.run, cancel=is_asked.set)
        except BaseException:
            is_asked.set()
            raise

    return run

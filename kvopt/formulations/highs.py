"""HiGHS on a model: options, the relaxation, and how to stop it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from kvopt.formulations.time_indexed import Program, to_highs
from kvopt.incumbent.limits import Limits
from kvopt.kernels.budget import Budget, wall_time
from kvopt.kernels.solver_versions import load_highspy

if TYPE_CHECKING:
    from highspy import Highs

_SIMPLEX_COLUMNS = 20_000
"""Up to so many columns the dual simplex method solves a relaxation faster than interior points."""
_LOOKS = 0.02
"""Seconds between two looks at a budget."""


def set_options(highs: Highs, limits: Limits, **options: object) -> None:
    """Set the options of limits and some more; raise if HiGHS refuses one.

    The thread pool belongs to the process: without a reset a later run with another number of
    threads ends at once with the model status Notset.
    """
    highspy = load_highspy()
    highspy.Highs.resetGlobalScheduler(True)
    common = {"threads": limits.threads, "random_seed": limits.seed % 2**31}
    for name, value in {**common, **options}.items():
        if value != math.inf and highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise RuntimeError(f"HiGHS refused the option {name} = {value}")


def solved_relaxation(model: Program, limits: Limits, budget: Budget) -> Highs:
    """Return HiGHS after the relaxation, in which several of a kind may start.

    It has no optimum if the budget ended first.
    """
    highs = to_highs(model, relax=True)
    columns = np.arange(model.num_columns, dtype=np.int32)
    zeros, many = np.zeros(model.num_columns), np.full(model.num_columns, highs.inf)
    highs.changeColsBounds(model.num_columns, columns, zeros, many)
    small = model.num_columns <= _SIMPLEX_COLUMNS
    set_options(highs, limits, solver="simplex" if small else "ipm", run_crossover="off")
    end_with(highs, budget)
    highs.run()
    return highs


def end_with(highs: Highs, budget: Budget) -> None:
    """Let HiGHS end soon after a budget, which Ctrl-C ends too, in whatever thread it runs."""
    looked_at, is_over = -math.inf, False

    def look(event: Any) -> None:
        nonlocal looked_at, is_over
        if not is_over and (now := wall_time()) > looked_at + _LOOKS:
            looked_at, is_over = now, budget.over()
        if is_over:
            event.interrupt()

    for event in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        event += look

"""Solvers of phase 1 of Sorted-F: which batch of waiting requests goes next.

==========  =======================================================================
exact       the true optimum, by a dynamic program over descending outputs
dp          the paper's dynamic program: the optimum among batches whose peaks fit
swap        greedy fill by peak, then local swaps
quantile    a core below sampled quantiles, filled up by ratio
auto        by size, as section 5.4 of wang-2025 advises
==========  =======================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from kvopt.errors import InvalidInput
from kvopt.policies.phase1.auto import Auto
from kvopt.policies.phase1.batch import Candidate, Solver, batches
from kvopt.policies.phase1.dp import dp
from kvopt.policies.phase1.exact import exact
from kvopt.policies.phase1.quantile import quantile
from kvopt.policies.phase1.swap import swap

__all__ = ["Auto", "Candidate", "Phase1", "Solver", "batches", "solver"]

Phase1 = Literal["auto", "exact", "dp", "swap", "quantile"]


def solver(name: Phase1, seed: int = 0) -> Solver:
    """Return a solver by name; the seed is for the samples of the quantile greedy."""
    solvers: dict[Phase1, Solver] = {
        "auto": Auto(seed),
        "exact": exact,
        "dp": dp,
        "swap": swap,
        "quantile": partial(quantile, seed=seed),
    }
    if name not in solvers:
        raise InvalidInput(f"must be one of {', '.join(solvers)}, got {name!r}", field="phase1")
    return solvers[name]

"""Solvers of phase 1 of Sorted-F: the next batch of waiting requests.

==========  =======================================================================
exact       the true optimum, by a dynamic program over descending outputs
dp          the paper's dynamic program: the optimum among batches whose peaks fit
swap        greedy fill by peak, then local swaps
quantile    a core below sampled quantiles, filled up by ratio
auto        by size, as section 5.4 of wang-2025 advises
==========  =======================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal

from kvopt.errors import TooLarge, unknown_name
from kvopt.simulate.policies.phase1.batch import Candidate, Solver, batches
from kvopt.simulate.policies.phase1.greedy import quantile, swap
from kvopt.simulate.policies.phase1.programs import dp, exact

__all__ = ["Auto", "Candidate", "Phase1", "Solver", "batches", "solver"]

Phase1 = Literal["auto", "exact", "dp", "swap", "quantile"]

MOST_EXACT = 100
"""Up to so many candidates phase 1 is solved exactly."""

LEAST_QUANTILE = 1000
"""From so many candidates on it is greedy."""


class Auto:
    """Exact up to 100 candidates, greedy from 1,000 on, local swaps in between.

    The paper advises the swap for up to 500 and gives no advice for 501 to 999.  Here the swap is
    used, since section 7 of the paper finds it better even at 2,000.  The number of remaining
    candidates counts, so a plan may begin with one solver and end with another.  The swap
    replaces an exact program that would be too large.

    Parameters
    ----------
    seed
        Seed of the samples of the quantile greedy.

    Attributes
    ----------
    used
        Number of batches of each solver.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.used: Counter[str] = Counter()

    def __call__(self, waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
        """Return one batch."""
        name: Phase1 = "quantile" if len(waiting) >= LEAST_QUANTILE else "swap"
        if len(waiting) <= MOST_EXACT:
            name = "exact"
        try:
            batch = solver(name, self.seed)(waiting, memory)
        except TooLarge:
            name, batch = "swap", swap(waiting, memory)
        self.used[name] += 1
        return batch


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
        raise unknown_name(name, solvers, "phase1")
    return solvers[name]

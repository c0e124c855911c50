"""The LP relaxation as a bound: its memory prices, re-evaluated in integers.

The value that an LP solver reports is a float and is not used.  The duals of the memory rows
are prices; rounded to integers they prove a bound by themselves (`kvopt.bounds.prices`), the
value of the relaxation up to rounding.  Nothing about the LP has to be trusted, so it may
stop at a convenient horizon: the makespan of a list schedule, beyond which prices are 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kvopt.bounds.kinds import Kind
from kvopt.bounds.prices import price_bound, rounded_prices
from kvopt.errors import TooLarge
from kvopt.formulations.arrays import ArrayModel, time_indexed_arrays
from kvopt.formulations.highs import solved_relaxation
from kvopt.formulations.layout import LARGEST_COLUMNS
from kvopt.formulations.windows import windows_until
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import Prices
from kvopt.kernels.dependencies import load_highspy
from kvopt.problem.instance import Instance
from kvopt.problem.requests import LARGEST_INTEGER, Request

DENOMINATOR = 2**24
"""Denominator of prices: rounding loses less than 1e-7 of one, and sums stay inside 64 bits."""

QUICK_COLUMNS = 16_000
"""Columns up to which an LP takes a second at most."""
_CELLS_A_COLUMN = 60
"""Coefficients for each column of the limit, beyond which the LP counts as too large."""

_BYTES = 150
"""Bytes that HiGHS takes for each coefficient of an LP, its own and ours together."""


def offer_lp_bound(
    search: Search, largest_columns: int = 3_000_000, time_limit: float = math.inf
) -> Prices | None:
    """Solve the relaxation and offer what its prices prove; return them, None if it has none.

    The time limit is for the LP solver alone, beside the limit of the search.

    Raises
    ------
    TooLarge
        If it has more columns than that, or more coefficients than go with them.
    """
    if search.schedule is None:
        raise ValueError("the LP needs a schedule for its horizon")
    if search.should_stop():
        return None
    end, kinds = search.schedule.makespan, Counter(r.kind for r in search.instance)
    cells = sum((end - arrival - output + 1) * output for arrival, _, output in kinds)
    if cells > _CELLS_A_COLUMN * largest_columns:
        most = _CELLS_A_COLUMN * largest_columns
        raise TooLarge(f"the LP would have {cells:,} coefficients; the limit is {most:,}")
    search.refuse_beyond_budget(_BYTES * cells)
    with search.timing("build"):
        memory = min(search.instance.total_memory, LARGEST_INTEGER)  # of the LP alone
        model = program_by_kinds(memory, kinds, end, largest_columns=largest_columns)
    prices = memory_prices(model, search, time_limit)
    if prices is None:
        return None
    value = price_bound(search.instance, prices)
    if value >= search.instance.total_output:  # else an LP that was cut short: it says nothing
        search.offer_checked(value, "lp", prices)
    return prices


def program_by_kinds(
    memory: int, kinds: Mapping[Kind, int], end: int, largest_columns: int = LARGEST_COLUMNS
) -> ArrayModel:
    """Return the program up to a last time, in which each kind starts as often as it is there.

    Requests of one kind have equal columns, and a relaxation may add them up.
    """
    each = Instance(memory, [Request(*kind) for kind in kinds])
    windows = windows_until(each, [end] * len(each))
    model = time_indexed_arrays(
        each, windows, order_identical=False, largest_columns=largest_columns
    )
    lower, upper = model.row_lower.copy(), model.row_upper.copy()
    lower[: len(each)] = upper[: len(each)] = list(kinds.values())
    return replace(model, row_lower=lower, row_upper=upper)


def memory_prices(model: ArrayModel, search: Search, time_limit: float = math.inf) -> Prices | None:
    """Return the prices of the memory rows, None if the LP could not be solved in time."""
    remaining = search.remaining
    with search.timing("solve"):
        highs = solved_relaxation(model, search, min(remaining, time_limit))
    if highs is None:
        return None
    limited = highs.getModelStatus() == load_highspy().HighsModelStatus.kTimeLimit
    if limited and remaining <= time_limit:
        search.ran_out_of_time()
    if not highs.getSolution().dual_valid:
        return None
    return _prices_from_duals(model, np.array(highs.getSolution().row_dual))


def _prices_from_duals(model: ArrayModel, duals: np.ndarray) -> Prices:
    spans, row = model.layout.spans, len(model.instance)
    dense = np.zeros(spans[-1].stop - 1 if spans else 0)
    for span in spans:
        dense[span.start - 1 : span.stop - 1] = -duals[row : row + len(span)]
        row += len(span)
    return rounded_prices(dense, DENOMINATOR)

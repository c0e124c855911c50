"""The LP relaxation as a bound: its memory prices, re-evaluated in integers.

The value that an LP solver reports is a float and is not used.  The duals of the memory rows
are prices; rounded to integers they prove a bound by themselves (`kvopt.bounds.prices`), the
value of the relaxation up to rounding.  Nothing about the LP has to be trusted.
"""

from __future__ import annotations

from kvopt.bounds.columns import lp_vertex
from kvopt.bounds.fluid import fluid_end
from kvopt.bounds.kinds import Kinds
from kvopt.bounds.prices import price_bound, rounded_prices
from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import PriceProof
from kvopt.kernels.budget import Budget

DENOMINATOR = 2**24
"""Denominator of prices: rounding loses less than 1e-7 of one, and sums stay inside 64 bits."""

QUICK_COLUMNS = 16_000
"""Columns up to which an LP takes a second at most."""

_BYTES = 150
"""Bytes for each possible column: some of the columns, and tables of their costs."""


def offer_lp_bound(
    search: Search, largest_columns: int = 3_000_000, budget: Budget | None = None
) -> PriceProof | None:
    """Solve the relaxation and offer the bound of its duals; return them, or None.

    The budget is for the LP solver alone, by default that of the search.

    Raises
    ------
    TooLarge
        If it has more columns than that.
    """
    if search.budget.over() or not len(search.instance):
        return None
    count = int((fluid_end(search.instance) - Kinds.of(search.instance).arrivals + 1).sum())
    if count > largest_columns:
        raise TooLarge(f"the LP would have {count:,} columns; the limit is {largest_columns:,}")
    search.budget.refuse(_BYTES * count)
    with search.timing("solve"):
        vertex = lp_vertex(search, budget or search.budget)
    if vertex is None:
        return None
    prices = rounded_prices(vertex.prices, DENOMINATOR)
    search.offer_checked(price_bound(search.instance, prices), "lp", prices)
    return prices if vertex.is_optimal else None

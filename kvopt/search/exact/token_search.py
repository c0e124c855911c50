"""Proofs for large caches: prices of tokens, and forward searches within their budget.

In a cache of thousands of tokens, tables of all sets of requests are too large, and so are prices
of states.  For some dozens of requests the gap of prices of tokens can be searched: by a beam for
schedules, exhaustively for a better bound.
"""

from __future__ import annotations

from contextlib import suppress

from kvopt.bounds.configurations.tokens import PricedTokens
from kvopt.bounds.lagrangian import lagrangian_bounds
from kvopt.bounds.lp import QUICK_COLUMNS, offer_lp_bound
from kvopt.errors import Stopped, TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import PriceProof, prices_of
from kvopt.incumbent.shares import CLIMB_OF_TOKENS
from kvopt.kernels.budget import Budget
from kvopt.search.exact.forward import FIRST_WIDTH, NAME, RISING_LABELS, Forward


def search_by_tokens(search: Search, budget: Budget) -> None:
    """Raise the bound by searches below higher and higher targets, and run beams in between."""
    assert search.schedule is not None
    prices = _prices(search, budget.part(CLIMB_OF_TOKENS))
    if prices is None or search.budget.over() or search.instance.workers > 1:
        return
    priced = PricedTokens(search.instance, prices, search.schedule.makespan)
    forward = Forward(search, priced, priced.evaluate(), budget)
    with suppress(Stopped):
        forward.search_with_beam(FIRST_WIDTH, 0)
        if not (forward.raises(RISING_LABELS) or forward.finishes(FIRST_WIDTH)):
            return
        search.offer_claimed(search.schedule.objective, NAME)


def _prices(search: Search, budget: Budget) -> PriceProof | None:
    """Return the prices that prove the bound; if it has another proof, find some."""
    if (prices := prices_of(search.proof)) is not None:
        return prices
    with suppress(TooLarge):
        return offer_lp_bound(search, QUICK_COLUMNS)
    for bound in lagrangian_bounds(search.problem, budget, search.limits):
        search.offer_bound(bound)
    return prices_of(search.proof)

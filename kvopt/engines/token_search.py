"""Proofs for large caches: prices of tokens, and searches forward in time by what they leave.

Where the cache holds thousands of tokens, tables of all sets of requests are out of reach, and
with them prices of states.  Prices of tokens are not, and for some dozens of requests what they
leave can be searched: by a beam for schedules, exhaustively for a better bound.
"""

from __future__ import annotations

import math
from contextlib import suppress

from kvopt.bounds.lp import offer_lp_bound
from kvopt.configurations.expand import Stopped
from kvopt.configurations.tokens import PricedTokens
from kvopt.engines.forward import NAME, Forward, label_limit
from kvopt.errors import TooLarge
from kvopt.kernels.compiling import working_time
from kvopt.search.incumbent import Search
from kvopt.search.proofs import Prices


def search_by_tokens(search: Search, seconds: float = math.inf) -> None:
    """Raise the bound by searches below higher and higher targets, with beams on the way."""
    assert search.schedule is not None
    deadline = working_time() + seconds
    prices = _prices(search)
    if prices is None or search.should_stop() or search.instance.workers > 1:
        return
    params, priced = (
        search.params.exact,
        PricedTokens(search.instance, prices, search.schedule.makespan),
    )
    forward = Forward(search, priced, priced.evaluate(), deadline)
    with suppress(Stopped):
        forward.search_with_beam(params.first_width, 0)
        if not forward.raises(params.rising_labels):
            forward.widen_beam(params.first_width, params.wider_width)
            if not forward.raises(label_limit(search), finely=True):
                return
        search.offer_claimed(search.schedule.objective, NAME)


def _prices(search: Search) -> Prices | None:
    """Return the prices that prove the bound, or those of the LP where something else does."""
    if search.checked is not None and isinstance(search.checked.proof, Prices):
        return search.checked.proof
    with suppress(TooLarge):
        return offer_lp_bound(search, search.params.portfolio.lp_at_once)
    return None

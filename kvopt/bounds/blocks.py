"""Prices prove a lower bound that counts whole blocks, where memory is given out in these.

A request that holds h tokens takes ``H = B ceil(h / B)`` of the ``M' = B floor(M / B)`` tokens of
all blocks.  Charge ``p_t >= 0`` for each of them at time t.  Every schedule then pays at most
``M' sum_t p_t``, so no total latency is below

    sum_i min [latency of i + sum_j p_{t_j} H_{i,j}]  -  M' sum_t p_t,

the minimum over the runs of request i, or over all its active times t_1 < t_2 < ... where requests
may pause.  At the same prices that is never below the bound in tokens.  Holdings never shrink
along a life, which is all that `kvopt.bounds.paused_prices` needs of them, so its windows stay
valid.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from kvopt.bounds.kinds import Kinds
from kvopt.bounds.lagrangian import Ascent, ascend, refuse_long
from kvopt.bounds.prices import denominator_for, fits_int64, rounded_prices
from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.proofs import BlockPrices
from kvopt.kernels.compile_clock import working_time
from kvopt.problem.arrays import Floats

if TYPE_CHECKING:
    from kvopt.bounds.paused_scan import PausedScanner


def offer_block_bound(search: Search, time_limit: float = math.inf, *, pauses: bool) -> None:
    """Let prices rise until the search has to stop, and offer what they prove in whole blocks.

    Parameters
    ----------
    search
        Of an instance with a block size.
    time_limit
        Seconds for it.
    pauses
        Whether it has to hold for schedules with pauses too.
    """
    from kvopt.bounds.paused_scan import PausedScanner  # it loads numba, and so does this one:
    from kvopt.bounds.scan import Interrupted

    instance, tokens = search.instance, search.instance.in_tokens()
    if search.should_stop():
        return
    refuse_long(search, tokens)
    scanner = PausedScanner(
        Kinds.of(tokens),
        search.threads,
        search.should_stop,
        block=instance.block_size,
        pauses=pauses,
    )
    falling = pauses and not instance.last_arrival

    end = working_time() + time_limit
    try:
        ascent = Ascent(tokens, scanner, falling=falling)
        ascend(search, ascent, partial(_offer, search, scanner), end - working_time())
    except Interrupted:
        return


def _offer(search: Search, scanner: PausedScanner, values: Floats, _: object) -> None:
    """Round prices, and offer what they prove in integers of 64 bits."""
    larger = search.instance.inflated()  # whose requests hold no less than their blocks
    prices = rounded_prices(values, denominator_for(larger, values))
    if not fits_int64(larger, prices):
        raise TooLarge("prices of whole blocks do not fit into 64 bits")
    rent = search.instance.in_tokens().memory * sum(prices.numerators)
    bound = -((rent - scanner.least_sum(prices)) // prices.denominator)
    search.offer_checked(bound, "lagrangian in blocks", BlockPrices(prices))

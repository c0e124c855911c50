"""Beams and local search, for instances beyond the reach of exact engines.

Beams over whole traces are for many requests; annealing over orders is for all.
"""

from __future__ import annotations

import math
from itertools import count

from kvopt.incumbent import shares
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.shares import share_of
from kvopt.kernels.clock import wall_time

_SEEDS = 10_000
"""Distance of the seeds of two attempts: no attempt uses so many."""
_NOTHING_TO_DO = 0.1
"""An attempt below so many seconds found nothing to try, so a further one is useless."""


def improve(search: Search, seconds: float = math.inf) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more.

    All of the time is used: a strategy that ends is restarted with other random numbers.
    """
    end = wall_time() + seconds
    for attempt in count():
        began = wall_time()
        _improve(search, end - began, search.seed + attempt * _SEEDS)
        left = end - wall_time()
        if left == math.inf or left <= 0 or search.should_stop():
            return
        if wall_time() - began < _NOTHING_TO_DO:
            return


def _improve(search: Search, seconds: float, seed: int) -> None:
    """Choose an order of many waiting requests, then improve the schedule by local search."""
    from kvopt.heuristics.reinsertion import search_reinsertions
    from kvopt.heuristics.trace_beams import search_traces

    end, many = wall_time() + seconds, search.params.improve.beam_requests
    if len(search.instance) >= many and search.instance.workers == 1:
        search_traces(search, share_of(seconds, shares.TRACE_BEAMS), seed)
    search_reinsertions(search, end - wall_time(), seed)

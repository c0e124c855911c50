"""Beams and local search, for instances beyond the reach of exact engines.

Beams over whole traces are for many requests, orders of fluids for fleets, and annealing for all.
"""

from __future__ import annotations

import math
from itertools import count

from kvopt.errors import TooLarge
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.budget import Budget, wall_time

_TRACE_BEAMS = 0.95
"""Share of the time: beams over a whole trace; local search has the rest."""
_PLACED_MANY, _PLACED_FEW = 0.85, 0.1
"""Shares of the time for workers of requests: of many requests, and where moves find more."""
BEAM_REQUESTS = 200
"""Default number of requests from which on beams over all of a trace take the time of annealing."""
_SEEDS = 10_000
"""Distance of the seeds of two attempts: no attempt uses so many."""
_NOTHING_TO_DO = 0.1
"""An attempt below so many seconds found nothing to try, so a further one is useless."""
_LONGER = 2.0
"""Most requests wait for long if the fluid takes so many times as long as the arrivals."""


def improve(search: Search, budget: Budget, beam_requests: int = BEAM_REQUESTS) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more.

    All of the time is used: a strategy that ends is restarted with other random numbers.
    """
    from kvopt.heuristics.reinsertion import search_reinsertions
    from kvopt.heuristics.trace_beams import search_traces

    has_many = len(search.instance) >= beam_requests
    for attempt in count():
        began, seed = wall_time(), search.limits.seed + attempt * _SEEDS
        # Choose workers and an order of the requests, then improve the schedule by local search.
        if search.instance.workers > 1:
            part = budget.part(_PLACED_MANY if has_many else _PLACED_FEW)
            _place(search, part, seed, has_many=has_many)
        elif has_many:
            search_traces(search, budget.part(_TRACE_BEAMS), seed)
        search_reinsertions(search, budget, seed)
        if budget.left == math.inf or budget.over() or wall_time() - began < _NOTHING_TO_DO:
            return


def _place(search: Search, budget: Budget, seed: int, *, has_many: bool) -> None:
    """Place all requests of a fleet again, for so long.

    Beams find more if most of many requests wait for long, as in a backlog; orders of fluids find
    more near saturation.  These need an integer for each round: beams replace them if there are too
    many rounds.  Few requests are left to local search then.
    """
    from kvopt.bounds.fluid import fluid_end
    from kvopt.heuristics.fleets.fluid_orders import search_fluid_orders
    from kvopt.heuristics.trace_beams import search_traces

    instance = search.instance
    if not has_many or fluid_end(instance.pooled()) < _LONGER * instance.last_arrival:
        try:
            search_fluid_orders(search, budget, seed)
            return
        except TooLarge as error:
            search.note(f"no orders of fluids: {error}")
    if has_many:
        search_traces(search, budget, seed)

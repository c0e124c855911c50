"""Beams and local search, for instances beyond the reach of exact engines.

Beams over whole traces use prices of tokens, those in a small cache prices of states.
"""

from __future__ import annotations

import math
from itertools import count

from kvopt.heuristics.resumable import Turn, take_one
from kvopt.incumbent import shares
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.shares import share_of
from kvopt.kernels.clock import wall_time

BEAM_REQUESTS = 200
"""Requests from which on beams over all of a trace take the time of annealing."""
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
    """Run each strategy once that may improve the schedule.

    Beams by prices of states come first, or as soon as these exist: they extend the best schedule,
    and find less in a schedule that other strategies have improved.
    """
    from kvopt.heuristics.reinsertion import search_reinsertions
    from kvopt.heuristics.state_beams.searching import are_states_priced, beams_of_states

    end = wall_time() + seconds
    if len(search.instance) >= BEAM_REQUESTS and search.instance.workers == 1:
        _improve_many(search, seconds, seed)
        return
    if not are_states_priced(search):
        _anneal_until_priced(search, share_of(seconds, shares.ORDERS_FIRST), seed)
    if are_states_priced(search):
        left = end - wall_time()
        take_one(search, beams_of_states, share_of(left, shares.STATE_BEAMS), seed)
        search_reinsertions(search, share_of(end - wall_time(), shares.ORDERS_FIRST), seed)
    take_one(search, beams_of_states, end - wall_time(), seed)
    if seconds < math.inf:  # beams may have ended
        search_reinsertions(search, end - wall_time(), seed)


def _anneal_until_priced(search: Search, seconds: float, seed: int) -> None:
    """Anneal orders until states have prices, for so many seconds at most."""
    from kvopt.heuristics.reinsertion import reinsertions
    from kvopt.heuristics.state_beams.searching import are_states_priced

    turn = Turn(search, seconds)
    if turn.is_late():
        return
    for _ in reinsertions(turn, seed):
        if turn.is_late() or are_states_priced(search):
            return


def _improve_many(search: Search, seconds: float, seed: int) -> None:
    """Choose an order of many waiting requests, then improve the schedule."""
    from kvopt.heuristics.reinsertion import search_reinsertions
    from kvopt.heuristics.state_beams.searching import are_states_priced, beams_of_states
    from kvopt.heuristics.trace_beams import search_traces

    end, share = wall_time() + seconds, shares.TRACE_BEAMS
    if are_states_priced(search):
        share = shares.STATE_BEAMS_OF_MANY
        take_one(search, beams_of_states, share_of(seconds, share), seed)
    search_traces(search, share_of(end - wall_time(), share), seed)
    take_one(search, beams_of_states, end - wall_time(), seed)
    search_reinsertions(search, end - wall_time(), seed)

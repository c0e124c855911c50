"""Where exact engines end: rollouts, windows of time, local search, large neighbourhoods."""

from __future__ import annotations

import math
from itertools import count

from kvopt.kernels.compiling import working_time
from kvopt.search.incumbent import Search
from kvopt.search.params import share_of

_SEEDS = 10_000
"""Distance of the seeds of two attempts: more than one attempt uses."""
_NOTHING_TO_DO = 0.1
"""Seconds below which an attempt had nothing to try, and a further one has not either."""


def improve(search: Search, seconds: float = math.inf) -> None:
    """Improve the schedule of a search for so long, or until nothing improves any more.

    All of the time is used: what has come to its end begins anew, with other random numbers.
    """
    end = working_time() + seconds
    for attempt in count():
        began = working_time()
        _improve(search, end - began, search.seed + attempt * _SEEDS)
        left = end - working_time()
        if left == math.inf or left <= 0 or search.should_stop():
            return
        if working_time() - began < _NOTHING_TO_DO:
            return


def _improve(search: Search, seconds: float, seed: int) -> None:
    """Go once through what may improve the schedule."""
    from kvopt.heuristics.large_neighbourhoods import search_neighbourhoods
    from kvopt.heuristics.local_search import search_orders

    end, params = working_time() + seconds, search.params.improve
    if _comes_in_bursts(search):
        _search_windows(search, seconds, seed)
        return
    if len(search.instance) >= params.rollout_requests and _roll(search, seconds, seed):
        return
    search_orders(search, share_of(end - working_time(), params.orders_share), seed)
    with search.surviving("large neighbourhoods"):
        search_neighbourhoods(search, end - working_time(), seed)
    if seconds < math.inf:  # neighbourhoods may have come to their end, or met too many requests
        search_orders(search, end - working_time(), seed)


def _roll(search: Search, seconds: float, seed: int) -> bool:
    """Roll, then search orders; roll on for the rest of the time if that had found more."""
    from kvopt.heuristics.local_search import search_orders
    from kvopt.heuristics.rollouts import search_rollouts

    end = working_time() + seconds
    values = [_value(search)]
    for way in (search_rollouts, search_orders):
        way(search, share_of(seconds, search.params.improve.trial_share), seed)
        values.append(_value(search))
    before, rolled, ordered = values
    if seconds == math.inf or rolled - ordered > before - rolled:
        return False
    search_rollouts(search, end - working_time(), seed)
    return True


def _comes_in_bursts(search: Search) -> bool:
    """Whether many requests wait in bursts, with times between when none does.

    Where one burst has nearly all of them, which come first of thousands that wait is decided by
    rollouts: windows keep what a list schedule says about that.
    """
    from kvopt.heuristics.decode import LARGEST_HORIZON
    from kvopt.heuristics.time_windows import are_apart, begun_in, requests_of, standing_of

    instance, params = search.instance, search.params.improve
    if search.schedule is None or len(instance) < params.burst_requests:
        return False
    if not instance.last_arrival or instance.workers > 1:
        return False
    requests = requests_of(search)
    standing = standing_of(requests, begun_in(search))
    return standing.end <= LARGEST_HORIZON and are_apart(requests, standing, params.burst_part)


def _search_windows(search: Search, seconds: float, seed: int) -> None:
    """Search windows of time: by beams, then by annealing what they found."""
    from kvopt.heuristics.bursts import search_bursts
    from kvopt.heuristics.window_orders import search_window_orders

    end = working_time() + seconds
    search_bursts(search, share_of(seconds, search.params.improve.beams_share), seed)
    search_window_orders(search, end - working_time(), seed)


def _value(search: Search) -> int:
    return 0 if search.schedule is None else search.schedule.objective

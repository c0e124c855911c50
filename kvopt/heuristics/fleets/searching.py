"""Better schedules of a fleet: orders of fluids, moves between workers, each by itself."""

from __future__ import annotations

import math

from kvopt.errors import TooLarge
from kvopt.heuristics import improve
from kvopt.kernels.compiling import working_time
from kvopt.search.incumbent import Search
from kvopt.search.params import share_of

_ALONE_SHARE = 0.2
"""Share of the time of a turn in which each worker is improved by itself."""
_SOON_IN_LINE = 2_000
"""Requests up to which all habits of one line take moments."""
_PLACED_SHARE, _FEW_SHARE = 0.85, 0.1
"""Share of the time to place requests where they are many, and where moves find more."""
_TRIED_SHARE = 0.15
"""Share of the time after which the better one of two ways has the rest of it."""


def improve_fleet(search: Search, seconds: float = math.inf) -> None:
    """Improve the schedule of a fleet for so long, or until nothing improves any more."""
    from kvopt.heuristics.fleets.reinsertion import search_reinsertions

    end, turn, turn_length = working_time() + seconds, 0, 2.0
    _place(search, seconds)
    while not search.should_stop() and working_time() < end and search.schedule is not None:
        before = search.schedule.objective
        left = min(end - working_time(), math.inf if seconds == math.inf else turn_length)
        search_reinsertions(search, (1 - _ALONE_SHARE) * left, search.seed + turn)
        improve_workers(search, share_of(left, _ALONE_SHARE) if left < math.inf else turn_length)
        if seconds == math.inf and search.schedule.objective == before:
            return
        turn, turn_length = turn + 1, 2 * turn_length


def _place(search: Search, seconds: float) -> None:
    """Place all requests anew: from one line for all, and in orders of fluids.

    Where requests are many it is beams, too, and what found the best has most of the time: near
    saturation orders of fluids, in a backlog beams.  The orders need an integer for each round.
    """
    from kvopt.heuristics.fleets.central_line import offer_central_lines
    from kvopt.heuristics.trace_beams import search_traces

    if len(search.instance) <= _SOON_IN_LINE:
        offer_central_lines(search)
    if len(search.instance) < search.params.improve.beam_requests:
        _place_in_orders(search, share_of(seconds, _FEW_SHARE), search.seed)
        return
    end, tried = working_time() + _PLACED_SHARE * seconds, _TRIED_SHARE * seconds
    has_orders = _place_in_orders(search, tried, search.seed)
    if not has_orders:
        offer_central_lines(search)
    before = search.objective
    search_traces(search, tried, search.seed)
    if seconds == math.inf:
        return
    if has_orders and search.objective == before:
        _place_in_orders(search, end - working_time(), search.seed + 1)
    else:
        search_traces(search, end - working_time(), search.seed + 1)


def _place_in_orders(search: Search, seconds: float, seed: int) -> bool:
    """Place requests in orders of fluids; return whether schedules are short enough."""
    from kvopt.heuristics.fleets.fluid_orders import search_fluid_orders

    try:
        search_fluid_orders(search, seconds, seed)
    except TooLarge as error:
        search.note(f"no orders of fluids: {error}")
        return False
    return True


def improve_workers(search: Search, seconds: float) -> None:
    """Improve the schedule of each worker by itself, in shares of the time by its requests."""
    schedule = search.schedule
    assert schedule is not None
    starts, end, left = list(schedule.starts), working_time() + seconds, len(schedule.starts)
    for members, part in zip(schedule.members(), schedule.parts(), strict=True):
        limit = (end - working_time()) * len(members) / max(left, 1)
        left -= len(members)
        if len(members) < 2 or search.should_stop() or limit <= 0:
            continue
        alone = Search(
            part.instance, time_limit=limit, seed=search.seed, threads=search.threads,
            stop=lambda _: search.should_stop(), ram=search.ram, params=search.params,
        )  # fmt: skip
        alone.offer_schedule(part, "part")
        improve(alone, limit)
        assert alone.schedule is not None
        for i, start in zip(members, alone.schedule.starts, strict=True):
            starts[i] = start
    search.offer_starts(starts, "each worker by itself", schedule.workers)

"""Better schedules of a fleet: orders of fluids, moves between workers, each by itself."""

from __future__ import annotations

import math

from kvopt.errors import TooLarge
from kvopt.heuristics import BEAM_REQUESTS, improve
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.shares import EACH_WORKER, PLACED_FEW, PLACED_MANY, share_of
from kvopt.kernels.clock import wall_time

_SOON_IN_LINE = 2_000
"""Up to so many requests all rules of one line are fast."""
_LONGER = 2.0
"""Most requests wait for long if the fluid takes so many times as long as the arrivals."""


def improve_fleet(search: Search, seconds: float = math.inf) -> None:
    """Improve the schedule of a fleet for so long, or until nothing improves any more."""
    from kvopt.heuristics.reinsertion import search_reinsertions

    end, turn, turn_length = wall_time() + seconds, 0, 2.0
    _place(search, seconds)
    while not search.should_stop() and wall_time() < end and search.schedule is not None:
        before = search.schedule.objective
        left = min(end - wall_time(), math.inf if seconds == math.inf else turn_length)
        search_reinsertions(search, (1 - EACH_WORKER) * left, search.seed + turn)
        improve_workers(search, share_of(left, EACH_WORKER) if left < math.inf else turn_length)
        if seconds == math.inf and search.schedule.objective == before:
            return
        turn, turn_length = turn + 1, 2 * turn_length


def _place(search: Search, seconds: float) -> None:
    """Place all requests again: from one line for all, and in orders of fluids.

    Beams find more if most of many requests wait for long, as in a backlog; orders of fluids find
    more near saturation.  These need an integer for each round: beams replace them if there are too
    many rounds.
    """
    from kvopt.bounds.fluid import fluid_end
    from kvopt.heuristics.fleets.central_line import offer_central_lines
    from kvopt.heuristics.fleets.fluid_orders import search_fluid_orders
    from kvopt.heuristics.trace_beams import search_traces

    instance, count = search.instance, len(search.instance)
    has_many = count >= BEAM_REQUESTS
    limit = share_of(seconds, PLACED_MANY if has_many else PLACED_FEW)
    if count <= _SOON_IN_LINE:
        offer_central_lines(search)
    if not has_many or fluid_end(instance.pooled()) < _LONGER * instance.last_arrival:
        try:
            search_fluid_orders(search, limit, search.seed)
            return
        except TooLarge as error:
            search.note(f"no orders of fluids: {error}")
    if count > _SOON_IN_LINE:
        offer_central_lines(search)
    if has_many:
        search_traces(search, limit, search.seed)


def improve_workers(search: Search, seconds: float) -> None:
    """Improve the schedule of each worker by itself, with a share of the time by its requests."""
    schedule = search.schedule
    assert schedule is not None
    starts, end, left = list(schedule.starts), wall_time() + seconds, len(schedule.starts)
    for members, part in zip(schedule.members, schedule.parts, strict=True):
        limit = (end - wall_time()) * len(members) / max(left, 1)
        left -= len(members)
        if len(members) < 2 or search.should_stop() or limit <= 0:
            continue
        alone = search.inside(part.instance, limit)
        alone.offer(part, "part")
        improve(alone, limit)
        assert alone.schedule is not None
        for i, start in zip(members, alone.schedule.starts, strict=True):
            starts[i] = start
    search.offer_starts(starts, "each worker by itself", schedule.workers)

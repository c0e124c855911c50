"""Quick schedules of a fleet: one line, from which a request starts on a worker where it fits."""

from __future__ import annotations

from itertools import product

from kvopt.incumbent.incumbent import Search
from kvopt.kernels.magnitudes import NEVER

_HABITS = ((8.0, 32.0), (32.0, 16.0), (1.0, 0.0), (100.0, 50.0))
"""Windows and patience to try, the usually best ones first."""


def offer_central_lines(search: Search) -> None:
    """Offer schedules of a line in order of volume, with several dispatch rules."""
    from kvopt.heuristics.dispatch import Rule, Trace, advance, room_for
    from kvopt.heuristics.nodes import EMPTIEST, FIRST, FULLEST, requests_of
    from kvopt.heuristics.reduced_costs import worth_nothing

    instance, count = search.instance, len(search.instance)
    requests, keys = requests_of(instance)
    trace = Trace(requests, worth_nothing(count), keys)
    for (window, patience), choice in product(_HABITS, (FIRST, EMPTIEST, FULLEST)):
        if search.should_stop() or count < 2:
            return
        room = room_for(requests)
        rule = Rule(window, patience, choice)
        advance(trace, room.copy, rule, NEVER, room)
        search.offer_starts(room.made.starts.tolist(), "central line", room.made.workers.tolist())

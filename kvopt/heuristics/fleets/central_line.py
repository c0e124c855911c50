"""Quick schedules of a fleet: one line, from which a request goes to a worker where it fits."""

from __future__ import annotations

from itertools import product

from kvopt.incumbent.incumbent import Search

_HABITS = ((8, 32), (32, 16), (1, 0), (100, 50))
"""Windows and patience that are tried, the usually best ones first."""


def offer_central_lines(search: Search) -> None:
    """Offer schedules of a line in order of volume, with several dispatch rules."""
    from kvopt.heuristics.passing import Habit, finish
    from kvopt.heuristics.reduced_costs import worth_nothing
    from kvopt.heuristics.scenes import (
        EMPTIEST,
        FIRST,
        FULLEST,
        crowd_of,
        first_scene,
        nothing_made,
    )

    instance, count = search.instance, len(search.instance)
    crowd, _ = crowd_of(instance)
    free = worth_nothing(count)
    for (window, patience), choice in product(_HABITS, (FIRST, EMPTIEST, FULLEST)):
        if search.should_stop() or count < 2:
            return
        scene, made = first_scene(count, instance.workers), nothing_made(count)
        finish(crowd, scene, free, Habit(window, patience, choice), made)
        search.offer_starts(made.starts.tolist(), "central line", made.workers.tolist())

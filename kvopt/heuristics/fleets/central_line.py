"""Quick schedules of a fleet: one line, from which a request goes to a worker where it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvopt.incumbent.incumbent import Search

if TYPE_CHECKING:
    from kvopt.heuristics.passing import Habit

_HABITS = ((8, 32), (32, 16), (1, 0), (100, 50))
"""Windows and patience that are tried, the usually best ones first."""
_SLICE = 2_000
"""Requests after which it is asked whether to stop."""


def offer_central_lines(search: Search) -> None:
    """Offer what a line in order of volume gives, with several habits."""
    from kvopt.heuristics.passing import Habit
    from kvopt.heuristics.scenes import EMPTIEST, FIRST, FULLEST

    if len(search.instance) < 2:
        return
    for window, patience in _HABITS:
        for choice in (FIRST, EMPTIEST, FULLEST):
            if search.should_stop():
                return
            starts, workers = central_line(search, Habit(window, patience, choice))
            if not search.should_stop():
                search.offer_starts(starts, "central line", workers)


def central_line(search: Search, habit: Habit) -> tuple[list[int], list[int]]:
    """Return starts and workers of one habit; not all of them once the search has to stop."""
    from kvopt.heuristics.passing import advance
    from kvopt.heuristics.reduced_costs import worth_nothing
    from kvopt.heuristics.scenes import (
        crowd_of,
        first_scene,
        is_over,
        nothing_made,
        skip_idle_rounds,
    )

    instance, count = search.instance, len(search.instance)
    crowd, _ = crowd_of(instance)
    free = worth_nothing(count)
    scene, made = first_scene(count, instance.workers), nothing_made(count)
    while not is_over(crowd, scene) and not search.should_stop():
        skip_idle_rounds(crowd, scene)
        until = scene.counts[-1] + _SLICE
        advance(crowd, scene, free, habit, until, made)
    return made.starts.tolist(), made.workers.tolist()

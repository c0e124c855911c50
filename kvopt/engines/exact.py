"""Proofs where no solver goes: the configuration bound, then a search of what it leaves.

Every stage of the bound is followed by a quick search forward in time that keeps the most
promising partial schedules only, and finds good schedules; and by one that keeps all, which
is exhaustive where it fits.  The bound rises and rules out more until it does.
"""

from __future__ import annotations

import math
import threading
from contextlib import suppress

from kvopt.configurations.bound import rising_bounds
from kvopt.configurations.expand import Stopped
from kvopt.configurations.forward_search import MOST_REQUESTS
from kvopt.engines.forward import NAME, Forward
from kvopt.engines.registry import register
from kvopt.heuristics import improve
from kvopt.heuristics.list_schedules import offer_list_schedules
from kvopt.kernels.compiling import working_time
from kvopt.search.incumbent import Search
from kvopt.search.threads import run_in_thread

_FIRST_WIDTH, _WIDTH = 100, 1000
"""Partial schedules that the quick search keeps, while prices are rough and later."""
_ROUNDS = 5
"""Rounds that it looks ahead where there are many requests."""
_WIDER = 3 * _WIDTH
"""When the bound has come to its end and there is time left."""
_WIDEST = 40_000

_ROOM, _MORE_ROOM = 1000, 30_000
"""Partial schedules that searches for a better bound may keep at a time, at first and later."""
_MOST_ROOM = 12_000_000
"""Of the last of them and those for all better schedules: a gigabyte at thirty requests."""
_BYTES, _BYTES_A_REQUEST = 100, 4
"""What a partial schedule takes, with those that are found from it and the table of both."""
_FACTOR = 3
"""By which width and room grow from one stage to the next."""

_QUICKLY_IMPROVED = 20
"""Requests up to which the searches forward in time need no help with good schedules."""
_HELPED = 0.2
"""Share of the time for that help where exhaustive searches may end, and need the machine later."""
_SEARCHABLE = 34
"""Requests up to which an exhaustive search has been seen to end."""

_PATIENCE = 0.5
"""Share of the time limit after which prices have climbed enough, and searches have the rest."""


@register("exact")
def run(search: Search, *, presolve: bool = True) -> None:
    """Bound, rule out and search until there is a proof, then go on looking for schedules.

    Presolve is the ruling out of starts.
    """
    if search.schedule is None:
        offer_list_schedules(search)
    search.engine = NAME
    # Neither compiling nor compiled loops notice signals: they are watched from here.
    run_in_thread(search, lambda: _run(search, presolve), cancel=lambda: None)


def _run(search: Search, presolve: bool) -> None:
    count = len(search.instance)
    seconds = _HELPED * search.remaining if count <= _SEARCHABLE else math.inf
    helper = threading.Thread(
        target=improve, args=(search, seconds), name="kvopt-solver", daemon=True
    )
    if count > _QUICKLY_IMPROVED:
        helper.start()
    with search.surviving(NAME), suppress(Stopped):
        _bound_and_search(search, presolve)
    if helper.ident is not None:
        helper.join()
    if helper.ident is None or seconds < math.inf:
        improve(search)


def _most_room(search: Search) -> int:
    """Return how many partial schedules a search may keep at a time, within the memory budget."""
    return min(_MOST_ROOM, search.memory_left // (_BYTES + _BYTES_A_REQUEST * len(search.instance)))


def _bound_and_search(search: Search, presolve: bool) -> None:
    assert search.schedule is not None
    width, room, forward, optimum = _FIRST_WIDTH, _ROOM, None, None
    count = len(search.instance)
    patience = _PATIENCE if count <= MOST_REQUESTS else 1.0
    began, searching = working_time(), 0.0
    try:
        for rising, evaluation in rising_bounds(search, rule_out=presolve, patience=patience):
            if count > MOST_REQUESTS:
                continue
            forward = Forward(search, rising, evaluation)
            forward.look(width, _ROUNDS if count > _QUICKLY_IMPROVED else 0)
            width = min(_FACTOR * width, _WIDTH)
            # Half of the time at most: a better bound makes the next search shorter.
            since = working_time()
            if count <= _SEARCHABLE and 2.0 * searching <= since - began:
                seconds = min(2.0 * (since - began), search.remaining / 2.0)
                if forward.raises(room) or forward.excludes_all(_most_room(search), seconds):
                    optimum = search.schedule.objective
                searching += working_time() - since
            room = min(_FACTOR * room, _MORE_ROOM)
        if forward and not optimum:
            forward.look_wider(_WIDTH, _WIDER)
            if forward.raises(_most_room(search), finely=True):
                optimum = search.schedule.objective
            else:
                forward.look_wider(_WIDER, _WIDEST)
    finally:
        if optimum is not None:
            search.offer_claimed(optimum, NAME)
    if optimum is None and not search.should_stop():
        search.note(f"{NAME}: no search for all better schedules came to its end")

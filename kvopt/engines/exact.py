"""Proofs where no solver goes: the configuration bound, then a search of what it leaves.

Every stage of the bound is followed by a quick search forward in time that keeps the most
promising partial schedules only, and finds good schedules; and by one that keeps all, which
is exhaustive where it fits.  The bound rises and rules out more until it does.
"""

from __future__ import annotations

import threading

from kvopt.bounds.configuration import rising_bounds
from kvopt.configurations.evaluation import Evaluation
from kvopt.configurations.rising import Rising
from kvopt.configurations.sweep import MOST_REQUESTS, Stopped, Sweep, TooWide, twins_of
from kvopt.engines.threads import run_in_thread
from kvopt.errors import TooLarge
from kvopt.improving import improve
from kvopt.search import Search

_NAME = "exact"

_WIDTH = 1000
"""Partial schedules that the quick search keeps."""

_ROOM = 20_000
"""Partial schedules that the first exhaustive search may keep at a time."""
_MORE_ROOM = 3
"""Factor from one exhaustive search to the next."""
_MOST_ROOM = 4_000_000
"""About half a gigabyte with twenty requests."""

_QUICKLY_IMPROVED = 20
"""Requests up to which the searches forward in time need no help with good schedules."""


def run(search: Search, *, presolve: bool = True) -> None:
    """Bound, rule out and search until there is a proof, then go on looking for schedules."""
    del presolve  # for engines with a model
    if search.schedule is None:
        search.note(f"{_NAME}: needs a schedule to begin with")
        return
    # Compiling at the first call cannot be interrupted: limits are watched from here.
    run_in_thread(search, lambda: _run(search), cancel=lambda: None)


def _run(search: Search) -> None:
    helper = threading.Thread(target=improve, args=(search,), name="kvopt-solver", daemon=True)
    if len(search.instance) > _QUICKLY_IMPROVED:
        helper.start()
    try:
        _bound_and_search(search)
    except TooLarge as error:
        search.note(f"{_NAME}: {error}")
    except Stopped:
        pass
    if helper.ident is None:
        improve(search)
    else:
        helper.join()


def _bound_and_search(search: Search) -> None:
    room, last = _ROOM, None
    for rising, evaluation in rising_bounds(search):
        last = rising, evaluation
        if len(search.instance) <= MOST_REQUESTS and not _searched(search, *last, room):
            room = min(_MORE_ROOM * room, _MOST_ROOM)
    while last and room < _MOST_ROOM and not search.should_stop():
        room = min(_MORE_ROOM * room, _MOST_ROOM)
        _searched(search, *last, room)


def _searched(search: Search, rising: Rising, evaluation: Evaluation, room: int) -> bool:
    """Search for better schedules, at first for good ones; return whether that was exhaustive."""
    assert search.schedule is not None
    twins = twins_of(search.instance)
    while True:
        target = search.schedule.objective
        sweep = Sweep(rising.states, twins, evaluation, target)
        found = sweep.some_of_them(_WIDTH, search.should_stop)
        if found is None:
            break
        search.offer_starts(found, "forward search")
    try:
        found = sweep.all_of_them(room, search.should_stop)
    except TooWide as error:
        search.note(f"{_NAME}: {error}")
        return False
    if found is not None:
        search.offer_starts(found, "forward search")
    search.offer_checked(
        search.schedule.objective, _NAME, rising.proof(search.schedule.objective, searched=True)
    )
    return True

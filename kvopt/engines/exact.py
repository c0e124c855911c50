"""Proofs where no solver goes: the configuration bound, then a search of what it leaves.

Every stage of the bound is followed by a quick search forward in time that keeps the most
promising partial schedules only, and finds good schedules; and by one that keeps all, which
is exhaustive where it fits.  The bound rises and rules out more until it does.
"""

from __future__ import annotations

import threading

from kvopt.bounds.configuration import rising_bounds
from kvopt.configurations.evaluation import Evaluation
from kvopt.configurations.layers import Stopped, TooWide
from kvopt.configurations.rising import Rising
from kvopt.configurations.sweep import MOST_REQUESTS, Sweep, twins_of
from kvopt.engines.threads import run_in_thread
from kvopt.errors import TooLarge
from kvopt.improving import improve
from kvopt.listing import offer_list_schedules
from kvopt.search import Search

_NAME = "exact"

_WIDTH = 1000
"""Partial schedules that the quick search keeps."""

_WIDER = 3
"""Factor of that when the bound has come to its end and there is time left."""
_WIDEST = 40_000

_ROOM = 20_000
"""Partial schedules that the first exhaustive search may keep at a time."""
_MORE_ROOM = 3
"""Factor from one exhaustive search to the next."""
_MOST_ROOM = 4_000_000
"""About half a gigabyte with twenty requests."""

_CHECKABLE = 1_500_000
"""Partial schedules of a search that `kvopt verify` can repeat, in some minutes at most."""

_QUICKLY_IMPROVED = 20
"""Requests up to which the searches forward in time need no help with good schedules."""
_SEARCHABLE = 34
"""Requests up to which an exhaustive search has been seen to end."""


def run(search: Search, *, presolve: bool = True) -> None:
    """Bound, rule out and search until there is a proof, then go on looking for schedules.

    Presolve is the ruling out of starts.
    """
    if search.schedule is None:
        offer_list_schedules(search)
    search.engine = _NAME
    # Compiling at the first call cannot be interrupted: limits are watched from here.
    run_in_thread(search, lambda: _run(search, presolve), cancel=lambda: None)


def _run(search: Search, presolve: bool) -> None:
    helper = threading.Thread(target=improve, args=(search,), name="kvopt-solver", daemon=True)
    if len(search.instance) > _QUICKLY_IMPROVED:
        helper.start()
    try:
        _bound_and_search(search, presolve)
    except TooLarge as error:
        search.note(f"{_NAME}: {error}")
    except Stopped:
        pass
    if helper.ident is None:
        improve(search)
    else:
        helper.join()


def _bound_and_search(search: Search, presolve: bool) -> None:
    room, last, optimum = _ROOM, None, None
    try:
        for rising, evaluation in rising_bounds(search, rule_out=presolve):
            last = rising, evaluation
            ended = _searched(search, rising, evaluation, room)
            if ended and search.schedule is not None:
                optimum = search.schedule.objective
            room = room if ended else min(_MORE_ROOM * room, _MOST_ROOM)
        while last and not optimum and room < _MOST_ROOM and not search.should_stop():
            room = min(_MORE_ROOM * room, _MOST_ROOM)
            if _searched(search, *last, room) and search.schedule is not None:
                optimum = search.schedule.objective
        if last and not optimum:
            _look_wider(search, *last)
    finally:
        if optimum is not None:
            search.offer_claimed(optimum, _NAME)
    if optimum is None and not search.should_stop():
        search.note(f"{_NAME}: no search was exhaustive with room for {room:,} partial schedules")


def _searched(search: Search, rising: Rising, evaluation: Evaluation, room: int) -> bool:
    """Search for better schedules, at first for good ones; return whether that was exhaustive."""
    assert search.schedule is not None
    if len(search.instance) > MOST_REQUESTS:
        return False
    sweep = _look_for_good_ones(search, rising, evaluation, _WIDTH)
    if len(search.instance) > _SEARCHABLE:
        return False
    try:
        found = sweep.all_of_them(room, search.should_stop)
    except TooWide:
        return False
    if found is not None:
        search.offer_starts(found, "forward search")
    value = search.schedule.objective
    if sweep.kept <= _CHECKABLE:
        search.offer_checked(value, _NAME, rising.proof(value, searched=True))
    elif not search.checkable:
        search.offer_claimed(value, _NAME)
    return True


def _look_for_good_ones(
    search: Search, rising: Rising, evaluation: Evaluation, width: int
) -> Sweep:
    """Search with some width until nothing is better; return the search that found nothing."""
    assert search.schedule is not None
    twins = twins_of(search.instance)
    while True:
        sweep = Sweep(rising.states, twins, evaluation, search.schedule.objective)
        found = sweep.some_of_them(width, search.should_stop)
        if found is None or not search.offer_starts(found, "forward search"):
            return sweep


def _look_wider(search: Search, rising: Rising, evaluation: Evaluation) -> None:
    """Keep more and more partial schedules in the search for good ones."""
    width = _WIDTH
    while width < _WIDEST and len(search.instance) <= MOST_REQUESTS and not search.should_stop():
        width = min(_WIDER * width, _WIDEST)
        _look_for_good_ones(search, rising, evaluation, width)

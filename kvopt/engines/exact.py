"""Proofs where no solver goes: the configuration bound, then a search of what it leaves.

Every stage of the bound is followed by a quick search forward in time that keeps the most
promising partial schedules only, and finds good schedules; and by one that keeps all, which
is exhaustive where it fits.  The bound rises and rules out more until it does.
"""

from __future__ import annotations

import math
import threading
import time

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
_ROUNDS = 5
"""Rounds that it looks ahead where there are many requests."""

_WIDER = 3
"""Factor of the width when the bound has come to its end and there is time left."""
_WIDEST = 40_000
_SIGHTS = (5, 3, 8)
"""Rounds that wider searches look ahead, in turn: each of them finds the best now and then."""

_ROOM = 20_000
"""Partial schedules that the first exhaustive search may keep at a time."""
_MORE_ROOM = 3
"""Factor from one exhaustive search to the next."""
_MOST_ROOM = 4_000_000
"""About half a gigabyte with twenty requests."""

_CHECKABLE = 20_000_000
"""Partial schedules times requests of a search that `kvopt verify` can repeat, in some minutes."""

_QUICKLY_IMPROVED = 20
"""Requests up to which the searches forward in time need no help with good schedules."""
_SEARCHABLE = 34
"""Requests up to which an exhaustive search has been seen to end."""

_PATIENCE = 0.5
"""Share of the time limit after which prices have climbed enough, and searches have the rest."""

_FIRST_RISE = 1 / 64
"""Share of what is open that the first search for a better bound tries to exclude."""
_MORE_WORK = 4.0
"""Factor of the partial schedules from one such search to the next, about."""


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
    assert search.schedule is not None
    room, last, optimum = _ROOM, None, None
    searches = len(search.instance) <= MOST_REQUESTS
    patience = _PATIENCE if searches else 1.0
    began, searching = time.monotonic(), 0.0
    try:
        for rising, evaluation in rising_bounds(search, rule_out=presolve, patience=patience):
            last = rising, evaluation
            _look_quickly(search, rising, evaluation)
            # Half of the time at most: a better bound makes the next search shorter.
            since = time.monotonic()
            if len(search.instance) <= _SEARCHABLE and 2.0 * searching <= since - began:
                if _searched(search, rising, evaluation, room) or _raised(
                    search, rising, evaluation, _ROOM
                ):
                    optimum = search.schedule.objective
                searching += time.monotonic() - since
                room = min(_MORE_ROOM * room, _MOST_ROOM)
        if last and not optimum and searches:
            _look_wider(search, *last, widest=_WIDER * _WIDTH)
            if _raised(search, *last, _MOST_ROOM):
                optimum = search.schedule.objective
            else:
                _look_wider(search, *last, widest=_WIDEST)
    finally:
        if optimum is not None:
            search.offer_claimed(optimum, _NAME)
    if optimum is None and not search.should_stop():
        search.note(f"{_NAME}: no search for all better schedules came to its end")


def _searched(search: Search, rising: Rising, evaluation: Evaluation, room: int) -> bool:
    """Search for all better schedules; return whether there was room for that."""
    assert search.schedule is not None
    try:
        _excluded(search, rising, evaluation, search.schedule.objective, room)
    except TooWide:
        return False
    return True


def _excluded(
    search: Search, rising: Rising, evaluation: Evaluation, target: int, room: int
) -> int:
    """Exclude schedules below a target, or find the best; return how many were kept on the way.

    Where only what can be checked counts nothing else is claimed: the search would end with it.

    Raises
    ------
    TooWide
        If that needs more room.
    """
    sweep = Sweep(rising.states, twins_of(search.instance), evaluation, target)
    found = sweep.all_of_them(room, search.should_stop)
    if found is not None:
        search.offer_starts(found, "forward search")
        assert search.schedule is not None
        target = search.schedule.objective
    if _can_be_checked(search, sweep.kept):
        search.offer_checked(target, _NAME, rising.proof(target, searched=True))
    elif not search.checkable:
        search.offer_claimed(target, _NAME)
    return sweep.kept


def _can_be_checked(search: Search, kept: int) -> bool:
    return kept * len(search.instance) <= _CHECKABLE


def _raised(search: Search, rising: Rising, evaluation: Evaluation, room: int) -> bool:
    """Exclude more and more of what is between bound and schedule; return whether that was all.

    Partial schedules grow by about the same factor with every round of latency more, so two
    searches tell how far the next one may go.
    """
    assert search.schedule is not None
    least = evaluation.bound
    rise = max(1.0, _FIRST_RISE * (search.schedule.objective - least))
    efforts: list[tuple[float, float]] = []
    while not search.should_stop():
        target = min(least + int(rise), search.schedule.objective)
        try:
            kept = _excluded(search, rising, evaluation, target, room)
        except TooWide:
            return False
        if target >= search.schedule.objective:
            return True
        if search.checkable and not _can_be_checked(search, kept):
            return False
        efforts.append((rise, math.log(kept + 1)))
        rise = max(_next_rise(efforts), rise + 1.0)
    return False


def _next_rise(efforts: list[tuple[float, float]]) -> float:
    """Return the rise of a bound that will take a few times the last effort."""
    rise, effort = efforts[-1]
    if len(efforts) == 1:
        return 2.0 * rise
    before, less = efforts[-2]
    growth = max(effort - less, 0.1) / (rise - before)
    return min(rise + math.log(_MORE_WORK) / growth, 2.0 * rise)


def _look_quickly(search: Search, rising: Rising, evaluation: Evaluation) -> None:
    """Look for a better schedule among the most promising partial ones."""
    if len(search.instance) <= MOST_REQUESTS:
        rounds = _ROUNDS if len(search.instance) > _QUICKLY_IMPROVED else 0
        _look_for_good_ones(search, rising, evaluation, _WIDTH, rounds)


def _look_for_good_ones(
    search: Search, rising: Rising, evaluation: Evaluation, width: int, rounds: int
) -> None:
    """Search with some width until nothing is better."""
    assert search.schedule is not None
    twins = twins_of(search.instance)
    while True:
        sweep = Sweep(rising.states, twins, evaluation, search.schedule.objective)
        try:
            found = sweep.some_of_them(width, search.should_stop, rounds=rounds)
        except TooWide:  # more equally promising ones than there is room for
            return
        if found is None or not search.offer_starts(found, "forward search"):
            return


def _look_wider(search: Search, rising: Rising, evaluation: Evaluation, widest: int) -> None:
    """Keep more and more partial schedules in the search for good ones."""
    width = _WIDTH
    while width < widest and not search.should_stop():
        width = min(_WIDER * width, widest)
        for rounds in _SIGHTS:
            _look_for_good_ones(search, rising, evaluation, width, rounds)

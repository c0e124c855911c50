"""Both sides of an answer: what is there within moments, a bound, then better schedules."""

from __future__ import annotations

import math

from kvopt.configurations.size import check_size
from kvopt.engines.bounding import bound
from kvopt.engines.solving import solve
from kvopt.errors import TooLarge
from kvopt.heuristics.list_schedules import offer_better_than_one_after_another
from kvopt.model.parts import split
from kvopt.model.schedule import Schedule
from kvopt.search.incumbent import Search
from kvopt.search.proofs import Proof
from kvopt.search.result import Progress, SolveResult

_BOUND_SHARE = 0.4
"""Share of the time left that bounds get before schedules are looked for."""


def first_sides(search: Search) -> None:
    """Take a schedule and a bound, before policies run."""
    _bound(search, _quick(search))


def rest(search: Search) -> None:
    """Bring the sides together in the time that policies left."""
    _solve(search)


def _quick(search: Search) -> float:
    """Take both sides that are there within moments, whatever the limit is.

    Returns how many seconds these moments were.
    """
    found = solve(
        search.instance, time_limit=0, threads=search.threads, seed=search.seed, ram=search.ram
    )
    _take(search, found)
    offer_better_than_one_after_another(search)  # which takes more than moments where many wait
    return found.seconds


def _bound(search: Search, least: float) -> None:
    """Take a bound first where the engines that follow have none with a proof.

    It begins with what takes ``least`` seconds and is known, so with less it has nothing new.
    """
    if search.should_stop() or _is_small(search):
        return
    share = None if search.remaining == math.inf else _BOUND_SHARE * search.remaining
    if share is not None and share < least:
        return
    search.engine = "bound"
    found = bound(
        search.instance,
        time_limit=share,
        threads=search.threads,
        seed=search.seed,
        ram=search.ram,
    )
    if found.checked is not None:
        search.offer_bound(found.checked)
    if found.note is not None:
        search.note(f"bound: {found.note}")
    if found.signal_number is not None:
        search.interrupt(found.signal_number)


def _is_small(search: Search) -> bool:
    """Whether the exact engine takes the instance: it proves its own bounds."""
    assert search.schedule is not None
    try:
        for part in split(search.instance):
            starts = part.starts_of(search.schedule.starts)
            check_size(part.instance, Schedule(part.instance, starts).makespan)
    except TooLarge:
        return False
    return True


def _solve(search: Search) -> None:
    if search.should_stop():
        return

    search.engine = "solve"

    def meets_the_proof(progress: Progress) -> bool:
        return progress.objective is not None and progress.objective == search.lower_bound

    found = solve(
        search.instance,
        time_limit=None if search.remaining == math.inf else search.remaining,
        threads=search.threads,
        seed=search.seed,
        start=search.schedule,
        prices=_known(search),
        quick_start=False,
        checkable=True,
        ram=search.ram,
        stop=meets_the_proof,
    )
    _take(search, found)
    claim, proved = found.lower_bound, search.lower_bound
    if claim is not None and (proved is None or claim > proved):
        search.note(
            f"{found.bounded_by} claims that no schedule is below {claim:,}; a solver's word is "
            "no proof, so the certificate does not claim it"
        )


def _known(search: Search) -> Proof | None:
    """Return the proof that is known, so that its prices are not looked for again."""
    return None if search.checked is None else search.checked.proof


def _take(search: Search, found: SolveResult) -> None:
    if found.schedule is not None:
        search.offer_schedule(found.schedule, found.found_by or found.engine)
    if found.checked is not None:
        search.offer_bound(found.checked)
    for line in (*found.faults, *found.notes):
        search.note(line)
    if found.signal_number is not None:
        search.interrupt(found.signal_number)

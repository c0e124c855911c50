"""Windows of time: a schedule gets better part by part, with what is fixed around each part.

Where requests arrive over time they wait in bursts, and a schedule is cut where little waits.
What is found in a window is a `Change` of the whole: the requests that it moves, what that
gains, and the times between which all of it happens.  Windows are worked on side by side; a
change is made unless another one, made meanwhile, met its times.  The next pass cuts elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kvopt.heuristics.decode import LARGEST_HORIZON
from kvopt.heuristics.local_search import IDLE_CYCLES
from kvopt.heuristics.turns import Passes, Turn
from kvopt.incumbent.incumbent import Search
from kvopt.problem.arrays import Integers, columns_of

_MOST = 0.7
"""Share of the requests from which on they are one burst."""
_NEXT = 20
"""Starts behind the first quiet one among which a cut is chosen: where least is present."""


class Requests(NamedTuple):
    """Arrivals, prompts and outputs of all requests."""

    arrivals: Integers
    prompts: Integers
    outputs: Integers


class Standing(NamedTuple):
    """A schedule in the order of its starts.

    Parameters
    ----------
    starts, order
        By request, and requests by start.
    soonest
        Least arrival from each place of the order on.
    end
        Last completion.
    """

    starts: Integers
    order: Integers
    soonest: Integers
    end: int


class Window(NamedTuple):
    """Requests with starts from ``begin`` to before ``stop``: so many, waiting so long."""

    begin: int
    stop: int
    size: int
    waiting: int


class Change(NamedTuple):
    """Other starts of some requests, which meet nothing before ``begin`` and from ``end`` on."""

    members: Integers
    starts: Integers
    begin: int
    end: int


Job = Callable[[Standing], Change | None]
"""Looks for a change of a schedule that makes the total latency fall."""

IsLate = Callable[[], bool]
"""Tells whether time is up."""


def requests_of(search: Search) -> Requests:
    """Return the requests of a search as arrays."""
    return Requests(*columns_of(search.instance))


def begun_in(search: Search) -> Integers:
    """Return the starts of the schedule of a search."""
    assert search.schedule is not None
    return np.array(search.schedule.starts, dtype=np.int64)


def standing_of(requests: Requests, starts: Integers) -> Standing:
    """Return a schedule in the order of its starts."""
    order = np.argsort(starts, kind="stable")
    soonest = np.minimum.accumulate(requests.arrivals[order][::-1])[::-1].copy()
    return Standing(starts, order, soonest, int((starts + requests.outputs).max()))


def is_one_burst(search: Search) -> bool:
    """Whether most requests lie between two times at which none waits."""
    if search.schedule is None:
        return False
    requests, starts = requests_of(search), begun_in(search)
    coming = np.argsort(requests.arrivals, kind="stable")
    waiting_until = np.maximum.accumulate(starts[coming])
    quiet = np.flatnonzero(requests.arrivals[coming][1:] >= waiting_until[:-1]) + 1
    cuts = np.concatenate(([0], quiet, [len(starts)]))
    return int(np.diff(cuts).max()) > _MOST * len(starts)


def drawn_size(sizes: tuple[int, int], random: np.random.Generator) -> int:
    """Draw a size between two, small ones as often as large ones."""
    least, most = sizes
    return int(least * (most / least) ** random.uniform())


def windows_of(
    requests: Requests, standing: Standing, size: int, reach: int, random: np.random.Generator
) -> list[Window]:
    """Cut a schedule into windows of ``size`` requests and up to ``reach`` more.

    A cut is where fewest wait, and among those where fewest are present; the first cut is drawn.
    """
    line = standing.starts[standing.order]
    come = np.searchsorted(np.sort(requests.arrivals), line, "left")
    gone = np.searchsorted(np.sort(standing.starts + requests.outputs), line, "right")
    waits = come - np.searchsorted(line, line, "left")
    rank = waits * (len(line) + 1) + come - gone
    places, least = [0], int(random.integers(size))
    while (place := places[-1] + least) < len(line):
        quiet = np.flatnonzero(waits[place : place + reach] == 0)
        near = rank[place : place + (quiet[0] + _NEXT if len(quiet) else reach)]
        cut = line[place + int(near.argmin())]
        later = cut > line[places[-1]]  # else the window ends with all that start in one round
        places.append(int(np.searchsorted(line, cut, "left" if later else "right")))
        least = size
    late = np.concatenate(([0], np.cumsum(line - requests.arrivals[standing.order])))
    times, places = [*line.tolist(), standing.end], sorted({*places, len(line)})
    return [
        Window(times[a], times[b], b - a, int(late[b] - late[a]))
        for a, b in pairwise(places)
        if late[b] > late[a]
    ]


def search_windows(
    turn: Turn, found_by: str, jobs_of: Callable[[Requests, int], Iterable[Job]]
) -> Passes:
    """Go over windows pass by pass, until nothing improves any more.

    ``jobs_of`` is told how many passes came to their end.
    """
    search, idle, number = turn.search, 0, 0
    if not has_windows(search):
        return
    requests = requests_of(search)
    while idle < IDLE_CYCLES:
        before = begun_in(search).sum()
        with ThreadPoolExecutor(search.threads) as pool:
            run_pass(search, pool, requests, jobs_of(requests, number), found_by)
        if not turn.is_late():
            number += 1
            idle = 0 if begun_in(search).sum() < before else idle + 1
        yield


def has_windows(search: Search) -> bool:
    """Whether a search has a schedule of one cache whose rounds are not too many for a profile."""
    if search.schedule is None or len(search.instance) < 2 or search.instance.workers > 1:
        return False
    return search.schedule.makespan <= LARGEST_HORIZON


def run_pass(
    search: Search, pool: Executor, requests: Requests, jobs: Iterable[Job], found_by: str
) -> Standing:
    """Do all jobs, each on the schedule as it is by then; offer and return what they lead to."""
    tally = _Tally(requests, begun_in(search))
    for done in as_completed([pool.submit(tally.work, job) for job in jobs]):
        if tally.takes(*done.result()):
            search.offer_starts(tally.standing.starts.tolist(), found_by)
    return tally.standing


class _Tally:
    """A schedule that many change, and the times at which it was changed."""

    def __init__(self, requests: Requests, starts: Integers) -> None:
        self._requests = requests
        self._times: list[tuple[int, int]] = []
        self.standing = standing_of(requests, starts)

    def work(self, job: Job) -> tuple[int, Change | None]:
        """Do a job on the schedule as it is, and return how often it had been changed."""
        version, standing = len(self._times), self.standing  # in this order: may look older
        return version, job(standing)

    def takes(self, version: int, change: Change | None) -> bool:
        """Make a change, unless one since then met its times."""
        if change is None:
            return False
        if any(a < change.end and change.begin < b for a, b in self._times[version:]):
            return False
        starts = self.standing.starts.copy()
        starts[change.members] = change.starts
        self.standing = standing_of(self._requests, starts)
        self._times.append((change.begin, change.end))
        return True

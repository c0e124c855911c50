"""Bursts: the requests that start in a window of time are started anew by a beam of runs.

The beam (`kvopt.heuristics.beams`) goes on from the scene at the first cut, with all that is
running there.  The requests behind the window follow in the order they had, each where it first
fits, until all is as it was: so the latency of the whole is known exactly.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kvopt.heuristics.beams import (
    BeamPlan,
    Trace,
    beam_from,
    between_starts,
    drawn_trace,
    drawn_weight,
    go_on,
    line_of,
    made_by,
)
from kvopt.heuristics.decode import earliest
from kvopt.heuristics.scenes import Crowd
from kvopt.heuristics.turns import Passes, Turn
from kvopt.heuristics.windows.standing import (
    Change,
    IsLate,
    Job,
    Requests,
    Standing,
    Window,
    begun_in,
    drawn_size,
    has_windows,
    search_windows,
    standing_of,
    windows_of,
)
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Integers

_SLICE = 20
"""Stretches of a beam between two questions whether to stop."""
_FIRST_WIDTH, _GROWTH, _WIDEST = 8, 1.5, 200
"""Scenes that a beam keeps in the first pass, factor from one pass to the next, and most."""
_DRAWS = 3
"""Tries to go on from a scene."""
_SIZES = (60, 600)
"""Least requests of a window, drawn between these."""
_REACH = 1_000
"""Requests that a window may have beyond, where its end is not quiet."""
_STRETCHES, _AHEAD = (1.5, 6.0), (0.3, 3.0)
"""Requests started in a stretch at full memory, and look-ahead in mean outputs: ranges."""
_QUIET = 0.3
"""Share of the mean wait below which a window is worked on in some passes only."""


def rerun_bursts(turn: Turn, seed: int = 0) -> Passes:
    """Improve the schedule of a search window by window, with wider and wider beams."""
    search, random = turn.search, np.random.default_rng(seed)
    if not has_windows(search):
        return
    crowd, keys = line_of(search)

    def jobs_of(requests: Requests, number: int) -> list[Job]:
        width = int(min(_FIRST_WIDTH * _GROWTH**number, _WIDEST))
        standing = standing_of(requests, begun_in(search))
        trace = drawn_trace(search, crowd, keys, random)
        return _jobs(standing, requests, trace, width, random, turn.is_late)

    yield from search_windows(turn, "beams over time windows", jobs_of)


def _jobs(
    standing: Standing,
    requests: Requests,
    trace: Trace,
    width: int,
    random: np.random.Generator,
    is_late: IsLate,
) -> list[Job]:
    """Return a job for each window in which much waits, and for some of the others."""
    size = drawn_size(_SIZES, random)
    windows = windows_of(requests, standing, size, _REACH, random)
    mean = sum(window.waiting for window in windows) / len(requests.arrivals)
    return [
        partial(rerun, trace, window, _plan(trace.crowd, random), width, is_late)
        for window in (windows[place] for place in random.permutation(len(windows)))
        if random.uniform() * _QUIET * mean * window.size <= window.waiting
    ]


def _plan(crowd: Crowd, random: np.random.Generator) -> BeamPlan:
    """Draw how to search a window."""
    stretch = max(1, int(between_starts(crowd) * random.uniform(*_STRETCHES)))
    ahead = int(crowd.outputs.mean() * random.uniform(*_AHEAD)) + 1
    return BeamPlan(_DRAWS, stretch, ahead, int(random.integers(2**30)), drawn_weight(random))


def rerun(
    trace: Trace,
    window: Window,
    plan: BeamPlan,
    width: int,
    is_late: IsLate,
    standing: Standing,
) -> Change | None:
    """Start the requests of a window anew; return what that changes where latency falls."""
    crowd, starts, begin = trace.crowd, standing.starts, window.begin
    members = np.flatnonzero((starts >= begin) & (starts < window.stop))
    if is_late() or not len(members):  # others may have moved them all
        return None
    runs = np.flatnonzero((starts < begin) & (starts + crowd.outputs > begin))
    gone = begin - starts[runs]
    running = np.stack((crowd.prompts[runs] + gone, crowd.outputs[runs] - gone), axis=1)
    part = _part(trace, members)
    beam = beam_from(part.crowd, running, begin, width, plan.draws)
    while not go_on(*part, beam, plan, _SLICE):
        if is_late():
            return None
    fresh = np.full(len(starts), -1, dtype=np.int64)
    fresh[members] = made_by(beam).starts
    delta, end = follow(crowd, standing, fresh, begin)
    if delta >= 0:
        return None
    moved = np.flatnonzero((fresh >= 0) & (fresh != starts))
    return Change(moved, fresh[moved], begin, end)


def _part(trace: Trace, members: Integers) -> Trace:
    """Return some of the requests, at the times that they have."""
    crowd, worth, keys = trace
    arrivals, prompts, outputs = (
        each[members] for each in (crowd.arrivals, crowd.prompts, crowd.outputs)
    )
    ranks = np.empty_like(crowd.line)
    ranks[crowd.line] = np.arange(len(crowd.line))
    line = np.argsort(ranks[members])
    coming = np.argsort(arrivals[line], kind="stable")
    return Trace(
        crowd._replace(
            arrivals=arrivals, prompts=prompts, outputs=outputs, line=line, coming=coming
        ),
        worth._replace(least=worth.least[members], cheapest=worth.cheapest[members]),
        keys[members],
    )


@compiled
def follow(crowd: Crowd, standing: Standing, fresh: Integers, begin: int) -> tuple[int, int]:
    """Let requests behind a window follow in the order they had, until all is as it was.

    ``fresh`` has the new starts in the window and -1 for all others, of which those that follow
    get theirs.  Returned are the change of the sum of starts, a positive one too where something
    gets very late, and a time from which on all is as it was.
    """
    starts, order, longest = standing.starts, standing.order, crowd.outputs.max()
    latest = standing.end + longest
    profile = np.zeros(latest + longest + 2 - begin, dtype=np.int64)
    first, delta, end = 0, 0, begin
    while starts[order[first]] < begin:
        _hold(crowd, profile, order[first], starts[order[first]] - begin)
        first += 1
    for turn in range(2):  # those in the window first
        for place in range(first, len(order)):
            i = order[place]
            if (turn == 0) == (fresh[i] < 0):
                continue
            if turn == 1:
                if standing.soonest[place] >= end:
                    return delta, end
                soon = max(crowd.arrivals[i] - begin, 0)
                room = crowd.memory - crowd.prompts[i]
                fresh[i] = begin + earliest(profile, room, crowd.outputs[i], soon)
            if fresh[i] + crowd.outputs[i] > latest:
                return 1, latest
            _hold(crowd, profile, i, fresh[i] - begin)
            if fresh[i] != starts[i]:
                delta += fresh[i] - starts[i]
                end = max(end, max(fresh[i], starts[i]) + crowd.outputs[i])
    return delta, end


@compiled
def _hold(crowd: Crowd, profile: Integers, i: int, start: int) -> None:
    """Add a request to a profile, as far as it does not end before that begins."""
    for grown in range(max(0, -start), crowd.outputs[i]):
        profile[start + 1 + grown] += crowd.prompts[i] + 1 + grown

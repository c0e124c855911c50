"""Annealing over the orders of windows of time, each beside all that stays.

What starts and completes within a window is free there.  What the others hold is a reservation,
and memory is full behind the window, so windows of one pass do not meet and a step costs as much
in a long trace as in a short one.  After a pass every request moves to where it first fits.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kvopt.heuristics.decode import Problem, earliest, line_of
from kvopt.heuristics.local_search import COLDEST, anneal, trial_of
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
    search_windows,
    standing_of,
    windows_of,
)
from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Integers

_NAME = "local search in time windows"
_SIZES = (100, 400)
"""Least requests of a window, drawn between these."""
_STEPS, _GROWTH, _MOST_STEPS = 200, 1.3, 20_000
"""Steps for a request in the first pass, factor from one pass to the next, and most of them."""
_DEPTH = 300
"""Rounds before the latest start so far at which a request is tried."""
_REACH = 20
"""Places in the order over which a request moves, at most."""
_CHUNKS = 40
"""Parts of a cycle, between which limits are looked at."""


def anneal_windows(turn: Turn, seed: int = 0) -> Passes:
    """Improve the schedule of a search window by window, cooling down slower and slower."""
    search, random = turn.search, np.random.default_rng(seed)

    def jobs_of(requests: Requests, number: int) -> list[Job]:
        starts = begun_in(search)
        before = standing_of(requests, starts)
        move_earlier(
            search.instance.memory, requests, starts, before.order, held_by(requests, before)
        )
        search.offer_starts(starts.tolist(), _NAME)
        standing, size = standing_of(requests, begun_in(search)), drawn_size(_SIZES, random)
        steps = int(min(_STEPS * _GROWTH**number, _MOST_STEPS))
        held, first = held_by(requests, standing), int(random.integers(2**30))
        windows = windows_of(requests, standing, size, size // 2, random)
        return [
            partial(
                annealed, search, requests, held, windows[place], steps, first + place, turn.is_late
            )
            for place in random.permutation(len(windows)).tolist()  # a turn may end in between
        ]

    yield from search_windows(turn, _NAME, jobs_of)


def annealed(
    search: Search,
    requests: Requests,
    held: Integers,
    window: Window,
    steps: int,
    seed: int,
    is_late: IsLate,
    standing: Standing,
) -> Change | None:
    """Cool the order of a window down once; return what that changes where latency falls.

    ``held`` is what all requests hold together before the pass, and steps are for a request.
    """
    problem, members, begun = _problem(search.instance.memory, requests, held, window, standing)
    if is_late() or len(members) < 2:
        return None
    line = line_of(problem, np.argsort(begun, kind="stable").tolist())
    if int(line.starts.sum()) > int(begun.sum()):
        line = line_of(problem, np.argsort(begun, kind="stable").tolist(), begun.tolist())
    trial = trial_of(problem, line, seed)
    cold, hot = COLDEST, max(2.0, float(problem.outputs.mean()) / 2)
    for part in range(_CHUNKS):
        heats = hot * (cold / hot) ** (part / _CHUNKS), hot * (cold / hot) ** ((part + 1) / _CHUNKS)
        reach = min(len(members) - 1, _REACH)
        anneal(problem, line, trial, heats, max(1, steps * len(members) // _CHUNKS), reach)
        if is_late():
            break
    late = bool((trial.best + problem.outputs > window.stop - window.begin).any())
    if late or int(trial.best.sum()) >= int(begun.sum()):
        return None
    return Change(members, window.begin + trial.best, window.begin, window.stop)


def _problem(
    memory: int, requests: Requests, held: Integers, window: Window, standing: Standing
) -> tuple[Problem, Integers, Integers]:
    """Return the problem of a window, whose time begins with it, its requests and their starts."""
    begin, stop, span = window.begin, window.stop, window.stop - window.begin
    ends = standing.starts + requests.outputs
    members = np.flatnonzero((standing.starts >= begin) & (ends <= stop))
    outputs, begun = requests.outputs[members], standing.starts[members] - begin
    # What gets behind the window, and then behind a full stretch, is out: its change is not made.
    full = span + int(outputs.max(initial=0))
    left = np.zeros(2 * span + full + int(outputs.sum()) + 2, dtype=np.int64)
    left[1 : span + 1] = held[begin + 1 : stop + 1]
    left[span + 1 : span + full + 1] = memory
    for i, start in zip(members, begun, strict=True):
        _add(left, requests.prompts[i], requests.outputs[i], start, -1)
    problem = Problem(
        memory,
        np.maximum(requests.arrivals[members] - begin, 0),
        requests.prompts[members],
        outputs,
        min(_DEPTH, span),
        span,
        left,
    )
    return problem, members, begun


def held_by(requests: Requests, standing: Standing) -> Integers:
    """Return the tokens that a schedule holds at each time."""
    held = np.zeros(standing.end + 2, dtype=np.int64)
    _add_all(requests, standing.starts, held)
    return held


@compiled
def _add_all(requests: Requests, starts: Integers, held: Integers) -> None:
    for i in range(len(starts)):
        _add(held, requests.prompts[i], requests.outputs[i], starts[i], 1)


@compiled
def _add(held: Integers, prompt: int, output: int, start: int, sign: int) -> None:
    """Add what a request holds, or take it away."""
    for grown in range(1, output + 1):
        held[start + grown] += sign * (prompt + grown)


@compiled
def move_earlier(
    memory: int, requests: Requests, starts: Integers, order: Integers, held: Integers
) -> None:
    """Move one request after the other to where it first fits: to its start or before."""
    for i in order:
        prompt, output = requests.prompts[i], requests.outputs[i]
        _add(held, prompt, output, starts[i], -1)
        starts[i] = earliest(held, memory - prompt, output, requests.arrivals[i])
        _add(held, prompt, output, starts[i], 1)

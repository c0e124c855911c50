"""The optimum of a few requests on one worker, in rounds, by exhaustive search in microseconds.

At each round every waiting request starts or waits, in a fixed order, and a branch ends if its
bound reaches the target.  Tiny cases take microseconds.

With pauses each token has a start of its own.  Claim 4.3 of ``docs/theory`` shows why only rounds
need to be tried to which no request can be added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from kvopt.errors import InvalidInput, Stopped, TooLarge
from kvopt.incumbent.proofs import token_prices
from kvopt.kernels.compiled import compiled
from kvopt.problem.instance import Instance, refuse_blocks, refuse_extras, refuse_fleet
from kvopt.problem.problem import Source, as_problem
from kvopt.problem.requests import Request
from kvopt.search.exact.paused_layers import search_layers

MAX_REQUESTS = 12
"""Limit of the requests; beyond, a search takes more than milliseconds."""
_TIME, _NEXT, _DEPTH, _SUM, _TARGET, _HAS_SCHEDULE, _LAST = range(7)
"""Entries of the state: the next round and request, the number of starts, the sum of the known
completions, its limit, whether a schedule below the limit exists, and a time by which all requests
complete without idle rounds."""
_ARRIVAL, _PROMPT, _OUTPUT, _BEST, _START, _LEFT, _TOKENS, _VOLUME, _ORDER = range(9)
"""Rows of the requests: their arrivals, prompts and outputs; the best starts; the last starts plus
one, 0 for none; without the tokens of all starts so far their remaining tokens, the tokens held
before these, and the volumes; and requests in the order of volumes.  One array is passed, since
each one passed costs time."""


def tiny_optimum(
    problem: Source,
    *,
    below: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> int | None:
    """Return the least total latency of up to twelve requests in rounds on one machine.

    It tries all schedules, and stores no proof: for one use `kvopt.certify`.

    Parameters
    ----------
    problem
        The problem, an instance, or a file of one; with a scope of pauses requests may pause.
    below
        Return None if no schedule has less than this total latency, which is quicker to see.
    should_stop
        Asked now and then; when it returns true, `kvopt.Stopped` is raised.

    Examples
    --------
    >>> from kvopt import Instance, Problem, Request, Scope, tiny_optimum
    >>> instance = Instance(memory=10, requests=[Request(0, 0, 10), Request(6, 5, 1)])
    >>> tiny_optimum(instance), tiny_optimum(instance, below=14)
    (14, None)
    >>> tiny_optimum(Problem(instance, scope=Scope.PAUSES))
    12
    """
    settled = as_problem(problem)
    instance, what = settled.instance, "tiny_optimum"
    refuse_extras(instance, what)
    refuse_blocks(instance, what)
    refuse_fleet(instance, what)
    if settled.in_seconds or settled.slo is not None:
        raise InvalidInput("counts total latency in rounds", field=what)
    if len(instance) > MAX_REQUESTS:
        raise TooLarge(f"{what} is for {MAX_REQUESTS} requests at most, got {len(instance)}")
    requests = [(r.arrival, r.prompt, r.output) for r in instance]
    cutoff = _one_by_one(requests) + 1 if below is None else below
    best = best_below(instance.memory, requests, cutoff, should_stop, pauses=settled.has_pauses)
    return None if best is None else best[0]


def _one_by_one(requests: list[tuple[int, int, int]]) -> int:
    """Return the total latency of serving one request after another."""
    now = total = 0
    for arrival, _, output in sorted(requests):
        now = max(now, arrival) + output
        total += now - arrival
    return total


def best_below(
    memory: int,
    requests: Sequence[tuple[int, int, int]],
    target: int,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    pauses: bool = False,
    steps: int = 100_000,
    turns: int = 60,
) -> tuple[int, list[int]] | None:
    """Return the least total latency below a target and its starts, or None.

    Requests are arrival, prompt and output.  With ``pauses`` starts are those of the last tokens.
    Between two calls of ``should_stop`` are so many steps; with pauses labels are merged instead
    after so many turns of steps, by default a second or so.

    Raises
    ------
    Stopped
        If it was asked to stop.

    Examples
    --------
    >>> backlog = [(0, 1, 3), (0, 1, 4), (0, 1, 5), (0, 1, 7)]
    >>> best_below(9, backlog, 28)
    (27, [0, 3, 0, 5])
    >>> best_below(9, backlog, 27) is None
    True
    >>> best_below(10, [(0, 0, 10), (6, 5, 1)], 14, pauses=True)
    (12, [10, 6])
    """
    number = len(requests)
    if not number:
        return (0, []) if target > 0 else None
    order = sorted(range(number), key=requests.__getitem__)
    arrivals, prompts, outputs = zip(*(requests[i] for i in order), strict=True)
    volumes = [s * o + o * (o + 1) // 2 for s, o in zip(prompts, outputs, strict=True)]
    # The search sums up completions, which are latencies plus arrivals.  Requests start before
    # ``last``, and none has more than ``last`` tokens, so that ``held`` is long enough.
    none, tokens = [0] * number, sum(outputs)
    by_volume = sorted(range(number), key=volumes.__getitem__)
    rows = np.array((arrivals, prompts, outputs, none, none, outputs, prompts, volumes, by_volume))
    last, shift = arrivals[-1] + tokens, sum(arrivals)
    state = np.array((arrivals[0], 0, 0, 0, target + shift, 0, last))
    stack = np.zeros((2, tokens if pauses else number), dtype=np.int64)
    held = np.zeros(2 * last, dtype=np.int64)
    for turn in count(1):  # the arrays have the whole state
        if _search(memory, state, rows, stack, held, pauses, steps):
            break
        if should_stop():
            raise Stopped
        if pauses and turn == turns:
            return _by_layers(memory, requests, target, should_stop)
    if not state[_HAS_SCHEDULE]:
        return None
    starts = [start for _, start in sorted(zip(order, rows[_BEST].tolist(), strict=True))]
    return int(state[_TARGET]) - shift, starts


def _by_layers(
    memory: int,
    requests: Sequence[tuple[int, int, int]],
    target: int,
    should_stop: Callable[[], bool],
) -> tuple[int, list[int]] | None:
    """Return the result with pauses by `search_layers`."""
    instance = Instance(memory, [Request(*kind) for kind in requests])
    best = search_layers(instance, token_prices((), 1), target, should_stop)
    if best is None:
        return None
    return best.objective, [pairs[-1][1] - 1 for pairs in best.segments]


@compiled
def _search(
    memory: int, state: Any, rows: Any, stack: Any, held: Any, pauses: bool, steps: int
) -> bool:
    """Take so many steps, and return whether the search is complete.

    The stack has the requests of all starts, and the start of each before.
    """
    n, (order, before), ends = rows.shape[1], stack, np.empty(rows.shape[1], dtype=np.int64)
    arrivals, outputs, left = rows[_ARRIVAL], rows[_OUTPUT], rows[_LEFT]
    time, i, depth, completed, target = state[0], state[1], state[2], state[3], state[4]
    while True:
        # A branch ends with a schedule, or where its bound reaches the target.  With pauses one
        # bound in a round, before any start, is enough.
        if depth == len(order):  # below the target, else the bound would have ended this branch
            target, state[_HAS_SCHEDULE] = completed, 1
            for j in range(n):
                rows[_BEST, j] = rows[_START, j] - 1
        elif (pauses and i > 0) or (
            time < state[_LAST]
            and completed + _further(memory, time, i, rows, held, ends, pauses) < target
        ):
            while i < n:
                is_there = left[i] > 0 and arrivals[i] <= time
                if is_there and _may_start(memory, time, i, rows, held, pauses):
                    break
                i += 1
            if i < n:
                order[depth], before[depth] = i, rows[_START, i]
                rows[_START, i] = time + 1
                size = 1 if pauses else left[i]
                completed += _hold(time, i, size, 1, rows, held)
                depth += 1
                i += 1
                continue
            # All others wait until the next round: with pauses only if none has room (Claim 4.3).
            if not (pauses and _has_room(memory, time, rows, held)):
                time, i = time + 1, 0
                continue
        steps -= 1
        if depth == 0 or steps < 0:
            break
        depth -= 1  # undo the last start and let that request wait in this round
        i = order[depth]
        time = rows[_START, i] - 1
        rows[_START, i] = before[depth]
        size = 1 if pauses else outputs[i]
        completed -= _hold(time, i, size, -1, rows, held)
        i += 1
    state[0], state[1], state[2], state[3], state[4] = time, i, depth, completed, target
    return bool(depth == 0)


@compiled
def _hold(time: int, i: int, size: int, sign: int, rows: Any, held: Any) -> int:
    """Hold the tokens of a start, or remove them; return a completion that is known by it."""
    is_last = rows[_LEFT, i] == (size if sign > 0 else 0)
    tokens = rows[_TOKENS, i] - (0 if sign > 0 else size)
    for token in range(1, size + 1):
        held[time + token] += sign * (tokens + token)
    rows[_VOLUME, i] -= sign * (size * tokens + size * (size + 1) // 2)
    rows[_TOKENS, i] += sign * size
    rows[_LEFT, i] -= sign * size
    return int(time + size) if is_last else 0


@compiled
def _may_start(memory: int, time: int, i: int, rows: Any, held: Any, pauses: bool) -> bool:
    """Whether a waiting request fits, and is the first of equal ones.

    Equal requests may be exchanged, so the second of two does not start while the first one waits.
    """
    left, tokens = rows[_LEFT, i], rows[_TOKENS, i]
    if i > 0 and rows[_LEFT, i - 1] == left and rows[_START, i - 1] <= time:
        same = rows[_ARRIVAL, i] == rows[_ARRIVAL, i - 1]
        same &= rows[_PROMPT, i] == rows[_PROMPT, i - 1]
        if same and rows[_OUTPUT, i] == rows[_OUTPUT, i - 1]:
            return False
    for token in range(1, (1 if pauses else left) + 1):
        if held[time + token] + tokens + token > memory:
            return False
    return True


@compiled
def _has_room(memory: int, time: int, rows: Any, held: Any) -> bool:
    """Whether one more request could have a token."""
    for i in range(rows.shape[1]):
        waits = rows[_START, i] <= time and rows[_LEFT, i] > 0 and rows[_ARRIVAL, i] <= time
        if waits and held[time + 1] + rows[_TOKENS, i] + 1 <= memory:
            return True
    return False


@compiled
def _further(
    memory: int, time: int, first: int, rows: Any, held: Any, ends: Any, pauses: bool
) -> int:
    """Return a bound on the completions that are not known, as in Claim 2.1.

    Requests before ``first`` start in the next round or later, the others in this one or later.
    The j-th completion is not before the j-th of these ends, and not before the j smallest
    volumes are served in the remaining memory.  ``room`` is that memory from now to ``moment``.
    """
    count, by_volume = 0, rows[_ORDER]
    for j in range(rows.shape[1]):
        if rows[_LEFT, j]:
            end = max(time + 1 if j < first else time, rows[_ARRIVAL, j]) + rows[_LEFT, j]
            place = count
            while place > 0 and ends[place - 1] > end:
                ends[place] = ends[place - 1]
                place -= 1
            ends[place] = end
            count += 1
    if pauses:  # else requests keep their volumes until they start
        for place in range(1, rows.shape[1]):
            j = by_volume[place]
            while place > 0 and rows[_VOLUME, by_volume[place - 1]] > rows[_VOLUME, j]:
                by_volume[place] = by_volume[place - 1]
                place -= 1
            by_volume[place] = j
    total, rank, served, room, moment = 0, 0, 0, 0, time
    for place in range(rows.shape[1]):
        j = by_volume[place]
        if rows[_LEFT, j]:
            served += rows[_VOLUME, j]
            while room < served:
                moment += 1
                room += memory - held[moment] if moment < len(held) else memory
            total += max(ends[rank], moment)
            rank += 1
    return total

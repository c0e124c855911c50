"""Recorded decisions on a clock of seconds, round by round.

A server's record counts rounds.  On the clock of a batch-time model its rounds are shorter or
longer than they were, so a recorded round may come before the arrival of a request that it
begins with.  The server does not wait for one request while others are active:

* A request that began in the first round after its arrival does so here, whatever its number.
* Any other request begins in its recorded round, or in the first round after its arrival if that
  is later.
* All its later rounds move by as many rounds.

Time passes between rounds only if no request is active.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import TypeVar

from kvopt.problem.clocks import Clock
from kvopt.problem.instance import refuse_extras
from kvopt.timetable.timetable import Timetable

AnyTimetable = TypeVar("AnyTimetable", bound=Timetable)


def timed(recorded: AnyTimetable, clock: Clock) -> AnyTimetable:
    """Return decisions of one server on a clock of seconds, see above.

    Rounds that moved may hold more tokens than the recorded ones, even more than memory has.
    """
    # Its cache hits are unknown.
    refuse_extras(recorded.instance, "a recorded run in seconds", ("weight", "max_active"))
    moved, resumed = _moved(recorded, clock)
    return replace(
        recorded,
        clock=clock,
        starts=(),
        segments=[
            [(first + moved[i], last + moved[i]) for first, last in rows]
            for i, rows in enumerate(recorded.spans)
        ],
        chunks=[
            piece._replace(start=piece.start + moved[piece.request]) for piece in recorded.chunks
        ],
        resumed=[resumed],
    )


def _moved(recorded: Timetable, clock: Clock) -> tuple[list[int], dict[int, int]]:
    """Return by how many rounds the work of each request comes later than recorded.

    Also the rounds at which an idle server began to work, and their times.
    """
    instance, model = recorded.instance, clock.batch_time
    arrivals = clock.arrivals(instance)
    work: list[list[tuple[int, int, int, int, bool]]] = [[] for _ in instance]
    for start, end, tokens, prompt, i, is_piece in recorded.work():
        work[i].append((start, end, tokens, prompt, is_piece))
    begins = [min(rows)[0] for rows in work]
    waited = [begin > request.arrival for begin, request in zip(begins, instance, strict=True)]
    in_order = sorted(range(len(work)), key=begins.__getitem__)
    planned = deque(i for i in in_order if waited[i])
    due = [(arrivals[i], i) for i in in_order if not waited[i]]
    heapify(due)  # requests that begin in the first round after their arrival
    changes: list[tuple[int, int, int, int, bool]] = []  # begins and ends of work to come
    moved, resumed = [0] * len(work), dict[int, int]()
    # Of the current round: requests that yield a token, pieces of prompts, and the tokens held at
    # round 0 by a line through all tokens held.
    number = time = yielding = pieces = held = 0
    while due or planned or changes:
        # Requests begin that are due by now, with all their work.
        while planned and begins[planned[0]] <= number:
            i = planned.popleft()
            heappush(due, (arrivals[i], i))
        while due and due[0][0] <= time:
            _, i = heappop(due)
            moved[i] = later = number - begins[i]
            for start, end, tokens, prompt, is_piece in work[i]:
                line = tokens - start - later
                heappush(changes, (start + later, 1, line, prompt, is_piece))
                heappush(changes, (end + later, -1, -line, 0, is_piece))
        prompts = 0
        while changes and changes[0][0] <= number:
            _, sign, line, prompt, is_piece = heappop(changes)
            yielding += sign * (not is_piece)
            pieces += sign * is_piece
            prompts += prompt
            held += line
        # A round passes.  An idle server goes on to the next request, at its arrival if it waits.
        if yielding or pieces:
            number += 1
            time += model.round_ns(yielding, prompts, held + (yielding + pieces) * number)
        elif changes:  # every request that began is paused: such rounds take no time
            number = changes[0][0]
        elif planned and (not due or arrivals[planned[0]] <= due[0][0]):
            number = begins[planned[0]]
        elif due:
            time, i = due[0]
            number = max(number, begins[i])
            resumed[number] = time
    return moved, resumed

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
    rounds = _Rounds(recorded, clock)
    rounds.pass_all()
    moved = rounds.moved
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
        resumed=[rounds.resumed],
    )


class _Rounds:
    """The rounds of a run whose requests may have to begin later or earlier.

    Parameters
    ----------
    recorded, clock
        The decisions, and lengths of rounds.

    Attributes
    ----------
    moved
        Rounds by which the work of each request comes later than recorded.
    resumed
        Rounds at which an idle server began to work, and their times.
    """

    def __init__(self, recorded: Timetable, clock: Clock) -> None:
        instance, self._batch_time = recorded.instance, clock.batch_time
        self._arrivals = clock.arrivals(instance)
        self._work: list[list[tuple[int, int, int, int, bool]]] = [[] for _ in instance]
        for start, end, held, prompts, request, is_piece in recorded.work():
            self._work[request].append((start, end, held, prompts, is_piece))
        self._begins = [min(rows)[0] for rows in self._work]
        self.moved, self.resumed = [0] * len(self._work), dict[int, int]()
        self._round = self._time = 0
        # Work of the current round: requests that yield a token, pieces of prompts, prompt tokens,
        # and the tokens held at round 0 by a line through all tokens held.
        self._yielding = self._pieces = self._prompts = self._held = 0
        self._changes: list[tuple[int, int, int, int, bool]] = []  # begins and ends of work to come
        in_order = sorted(range(len(self._work)), key=self._begins.__getitem__)
        waited = [self._begins[i] > instance[i].arrival for i in range(len(self._work))]
        self._planned = deque(i for i in in_order if waited[i])
        self._due = [(self._arrivals[i], i) for i in in_order if not waited[i]]
        heapify(self._due)  # requests that begin in the first round after their arrival

    def pass_all(self) -> None:
        """Let all rounds pass."""
        while self._due or self._planned or self._changes:
            self._begin_requests()
            self._apply_changes()
            if self._yielding or self._pieces:
                self._pass_round()
            elif self._changes:  # every request that began is paused: such rounds take no time
                self._round = self._changes[0][0]
            elif self._due or self._planned:
                self._wait()

    def _begin_requests(self) -> None:
        while self._planned and self._begins[self._planned[0]] <= self._round:
            i = self._planned.popleft()
            heappush(self._due, (self._arrivals[i], i))
        while self._due and self._due[0][0] <= self._time:
            _, i = heappop(self._due)
            self.moved[i] = later = self._round - self._begins[i]
            for start, end, held, prompts, is_piece in self._work[i]:
                line = held - start - later
                heappush(self._changes, (start + later, 1, line, prompts, is_piece))
                heappush(self._changes, (end + later, -1, -line, 0, is_piece))

    def _apply_changes(self) -> None:
        self._prompts = 0
        while self._changes and self._changes[0][0] <= self._round:
            _, sign, line, prompts, is_piece = heappop(self._changes)
            self._yielding += sign * (not is_piece)
            self._pieces += sign * is_piece
            self._prompts += prompts
            self._held += line

    def _pass_round(self) -> None:
        self._round += 1
        held = self._held + (self._yielding + self._pieces) * self._round
        self._time += self._batch_time.round_ns(self._yielding, self._prompts, held)

    def _wait(self) -> None:
        """Go on to the next request, at its arrival if the server has to wait for it."""
        planned, due = self._planned, self._due
        if planned and (not due or self._arrivals[planned[0]] <= due[0][0]):
            self._round = self._begins[planned[0]]
        else:
            self._time, i = due[0]
            self._round = max(self._round, self._begins[i])
            self.resumed[self._round] = self._time

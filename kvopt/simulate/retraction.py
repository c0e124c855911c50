"""A server that admits by a share of what requests may still need, and retracts when it is wrong.

This is what SGLang's scheduler does, as its source says (``schedule_policy.py`` and
``retract_decode`` in ``schedule_batch.py``), without chunks, prefix cache and overlap:

* Where a waiting request can be admitted, the round processes prompts alone: those that are
  admitted yield a token, those that run keep their memory and yield none.  With mixed rounds
  (``--enable-mixed-chunk``) they yield one as well.
* A request is admitted, first come, first served, if its prompt and all that it may produce fit
  beside what is held now and a share of what those that run may still produce.
* Otherwise all that run yield a token.  Where memory does not suffice for that, requests are
  retracted until it does, those with the fewest tokens first, then the longest prompt: they keep
  their tokens and wait at the end of the line, and are processed again when they go on.
* The share starts at 0.7, times what the server is told of how conservative it should be, and falls
  to a seventh of that within 600 rounds; a retraction sets it to what those that are left
  would need if each produced 20 tokens more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from fractions import Fraction

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.simulate.simulator import Stopped
from kvopt.timetable.blocks import blocks_for
from kvopt.timetable.schedule import Schedule

FIRST_SHARE = Fraction(7, 10)
LEAST = Fraction(14, 100)
"""Of the first share."""
FALLS_WITHIN = 600
"""Rounds in which all that run yield a token."""
AHEAD = 20
"""Tokens that each is expected to produce after a retraction."""
MOST_EXPECTED = 4096
"""Tokens of one request that are ever reserved."""


class Retraction:
    """The state of one server; see this module.

    Parameters
    ----------
    instance
        What is served, in rounds.
    most
        How many tokens each request may produce, as far as the server knows.
    page
        Tokens of a page; memory is given out in whole pages.
    max_running
        Most requests that run at once.
    prefill
        Most tokens of prompts in a round; a longer prompt is processed alone.
    conservative
        How much more than SGLang's share is reserved.
    is_mixed
        Whether those that run yield tokens while prompts are processed.
    """

    def __init__(
        self,
        instance: Instance,
        most: Sequence[int],
        page: int,
        max_running: int,
        prefill: int,
        conservative: Fraction,
        is_mixed: bool,
    ) -> None:
        self.instance, self.most, self.is_mixed = instance, most, is_mixed
        self.page, self.max_running, self.prefill = page, max_running, prefill
        self.memory = instance.memory // page * page
        for request in instance:
            if self._in_pages(request.peak) > self.memory:
                reason = f"needs {self._in_pages(request.peak)} tokens in whole pages, memory has "
                raise InvalidInput(f"{reason}{self.memory}", field="page", request=repr(request.id))
        self.share = first = min(FIRST_SHARE * conservative, Fraction(1))
        self.least = first * LEAST
        self.step = (first - self.least) / FALLS_WITHIN
        self.times: list[list[int]] = [[] for _ in instance]
        self.retractions = self.now = 0
        order = sorted(range(len(instance)), key=lambda i: (instance.requests[i].arrival, i))
        self._to_come, self._waiting = deque(order), deque[int]()
        self._running: list[int] = []

    def to_the_end(self, should_stop: Callable[[], bool]) -> Schedule:
        """Serve every request."""
        requests = self.instance.requests
        while self._to_come or self._waiting or self._running:
            if should_stop():
                raise Stopped
            if not (self._waiting or self._running):
                self.now = max(self.now, requests[self._to_come[0]].arrival)
            while self._to_come and requests[self._to_come[0]].arrival <= self.now:
                self._waiting.append(self._to_come.popleft())
            active = self._admitted()
            if not active:
                self._make_room()
            self._running += active
            if self.is_mixed or not active:
                active = list(self._running)
            self.now += 1
            for i in active:
                self.times[i].append(self.now)
            self._running = [i for i in self._running if len(self.times[i]) < requests[i].output]
        return Schedule.at_times(self.instance, self.times)

    def _held(self, i: int) -> int:
        """Return the tokens that a request holds or would bring along."""
        return self.instance.requests[i].prompt + len(self.times[i])

    def _in_pages(self, tokens: int) -> int:
        return blocks_for(tokens, self.page) * self.page

    def _expected(self, i: int) -> int:
        """Return how many tokens a request may still produce, as far as the server knows."""
        return min(max(self.most[i] - len(self.times[i]), 0), MOST_EXPECTED)

    def _free(self) -> int:
        return self.memory - sum(self._in_pages(self._held(i)) for i in self._running)

    def _admitted(self) -> list[int]:
        """Take from the front of the line what can be admitted."""
        found: list[int] = []
        left = self._free() - self.share * sum(map(self._expected, self._running))
        if self.is_mixed:
            left -= sum(self._in_pages(self._held(i) + 1) for i in self._running)
            left += sum(self._in_pages(self._held(i)) for i in self._running)
        prefill = self.prefill
        while self._waiting and len(self._running) + len(found) < self.max_running:
            i = self._waiting[0]
            tokens = self._in_pages(self._held(i) + 1)
            needed = tokens + self._expected(i) + self.page
            is_alone = not (self._running or found)
            if (not is_alone and needed >= left) or (found and tokens >= prefill):
                break
            found.append(self._waiting.popleft())
            left -= needed
            prefill -= tokens
        return found

    def _make_room(self) -> None:
        """Retract until all that run can produce a token, and learn from it."""
        line = sorted(
            self._running,
            key=lambda i: (len(self.times[i]), -self.instance.requests[i].prompt),
            reverse=True,
        )
        if self._fits(line):
            self.share = max(self.share - self.step, self.least)
            return
        while not self._fits(line) and len(line) > 1:
            self._waiting.append(line.pop())
            self.retractions += 1
        kept = set(line)
        self._running = [i for i in self._running if i in kept]
        needed = sum(len(self.times[i]) + AHEAD for i in line)
        self.share = min(Fraction(needed, sum(self.most[i] for i in line) + 1), Fraction(1))

    def _fits(self, line: Sequence[int]) -> bool:
        return sum(self._in_pages(self._held(i) + 1) for i in line) <= self.memory

"""A server that admits by a share of the tokens to come, and retracts if memory runs out.

These are the rules of SGLang's scheduler, by its source (``schedule_policy.py`` and
``retract_decode`` in ``schedule_batch.py``), without chunks, prefix cache and overlap:

* If a waiting request can be admitted, the round processes prompts only: admitted requests yield
  a token, running ones keep their memory and yield none.  With mixed rounds
  (``--enable-mixed-chunk``) they yield one as well.
* A request is admitted, first come, first served, if its prompt and its possible output fit next
  to the held tokens and a share of the tokens that running requests may still produce.
* Otherwise all running requests yield a token.  If memory does not suffice, requests are
  retracted until it does, those with the fewest tokens first, then the longest prompt: they keep
  their tokens and wait at the end of the line, and are processed again when they continue.
* The share starts at 0.7, times the server's factor of caution, and falls to a seventh of that
  within 600 rounds; a retraction sets it to the need of the remaining requests if each produces 20
  more tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from fractions import Fraction

from kvopt.errors import InvalidInput, Stopped
from kvopt.simulate.policies.servers import Sglang
from kvopt.simulate.simulator import Worker, Workload
from kvopt.timetable.sweep import blocks_for

FIRST_SHARE = Fraction(7, 10)
LEAST = Fraction(14, 100)
"""Least share, as a part of the first one."""
FALLS_WITHIN = 600
"""Rounds of tokens over which the share falls."""
AHEAD = 20
"""Expected tokens of each request after a retraction."""
MOST_EXPECTED = 4096
"""Limit of the reserved tokens of one request."""


class Retraction(Worker):
    """The state of one server; see this module.

    Parameters
    ----------
    workload, policy
        Requests to serve, in rounds, and limits of the server.
    """

    def __init__(self, workload: Workload, policy: Sglang) -> None:
        super().__init__(workload, policy.prediction_model().beliefs(workload.instance).output)
        self.policy = policy
        self.memory = self.instance.memory // policy.page * policy.page
        for request in self.instance:
            if self._in_pages(request.peak) > self.memory:
                reason = f"needs {self._in_pages(request.peak)} tokens in whole pages, memory has "
                raise InvalidInput(f"{reason}{self.memory}", field="page", request=repr(request.id))
        self.share = first = min(FIRST_SHARE * policy.conservative, Fraction(1))
        self.least = first * LEAST
        self.step = (first - self.least) / FALLS_WITHIN
        self.found = [[] for _ in self.instance]
        self.retractions = self.now = 0
        self._produced = [0] * len(self.instance)
        self._to_come, self._waiting = deque[int](), deque[int]()
        self._running: list[int] = []

    def deliver(self, i: int) -> None:
        """Let a request arrive here, after those that arrived before."""
        self._to_come.append(i)

    def tokens(self) -> int:
        """Return the tokens held now, in whole pages."""
        return self._taken(self._running)

    def come_to(self, time: float) -> None:
        """Let all rounds pass that begin before a time."""
        while self._to_come or self._waiting or self._running:
            if not (self._waiting or self._running):
                self.now = max(self.now, self.arrivals[self._to_come[0]])
            if self.now >= time:
                return
            if self.should_stop():
                raise Stopped
            while self._to_come and self.arrivals[self._to_come[0]] <= self.now:
                self._waiting.append(self._to_come.popleft())
            active = self._admitted()
            if not active:
                self._make_room()
            self._running += active
            if self.policy.mixed or not active:
                active = self._running
            self.now += 1
            for i in active:
                self._produced[i] += 1
                rows = self.found[i]
                first = rows.pop()[0] if rows and rows[-1][1] == self.now - 1 else self.now
                rows.append((first, self.now))
            outputs = (self.instance.requests[i].output for i in self._running)
            pairs = zip(self._running, outputs, strict=True)
            self._running = [i for i, output in pairs if self._produced[i] < output]

    def _held(self, i: int) -> int:
        """Return the tokens that a request holds or would add."""
        return self.instance.requests[i].prompt + self._produced[i]

    def _in_pages(self, tokens: int) -> int:
        return blocks_for(tokens, self.policy.page) * self.policy.page

    def _expected(self, i: int) -> int:
        """Return how many tokens a request may still produce, in the view of the server."""
        return min(max(self.believed[i] - self._produced[i], 0), MOST_EXPECTED)

    def _taken(self, line: Sequence[int], more: int = 0) -> int:
        """Return the tokens in whole pages that requests hold, or would with more tokens each."""
        return sum(self._in_pages(self._held(i) + more) for i in line)

    def _admitted(self) -> list[int]:
        """Take requests from the front of the line that can be admitted."""
        found: list[int] = []
        reserved = self.share * sum(map(self._expected, self._running))
        left = self.memory - self._taken(self._running, int(self.policy.mixed)) - reserved
        prefill = self.policy.prefill
        while self._waiting and len(self._running) + len(found) < self.policy.max_running:
            i = self._waiting[0]
            tokens = self._in_pages(self._held(i) + 1)
            needed = tokens + self._expected(i) + self.policy.page
            is_alone = not (self._running or found)
            if (not is_alone and needed >= left) or (found and tokens >= prefill):
                break
            found.append(self._waiting.popleft())
            left -= needed
            prefill -= tokens
        return found

    def _make_room(self) -> None:
        """Retract until all running requests can produce a token, and update the share."""
        line = sorted(
            self._running,
            key=lambda i: (self._produced[i], -self.instance.requests[i].prompt),
            reverse=True,
        )
        if self._taken(line, 1) <= self.memory:
            self.share = max(self.share - self.step, self.least)
            return
        while self._taken(line, 1) > self.memory and len(line) > 1:
            self._waiting.append(line.pop())
            self.retractions += 1
        kept = set(line)
        self._running = [i for i in self._running if i in kept]
        needed = sum(self._produced[i] + AHEAD for i in line)
        self.share = min(Fraction(needed, sum(self.believed[i] for i in line) + 1), Fraction(1))

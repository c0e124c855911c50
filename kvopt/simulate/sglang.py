"""A server that admits by a share of the tokens to come, and retracts if memory runs out.

These are the rules of SGLang's scheduler, by its source (``schedule_policy.py`` and
``retract_decode`` in ``schedule_batch.py``), without chunks and overlap:

* If a waiting request can be admitted, the round processes prompts only: admitted requests yield
  a token, running ones keep their memory and yield none.  With mixed rounds
  (``--enable-mixed-chunk``) they yield one as well.
* A request is admitted, in the order of the line, if its prompt and its possible output fit next
  to the held tokens and a share of the tokens that running requests may still produce.
* Otherwise all running requests yield a token.  If memory does not suffice, requests are
  retracted until it does, those with the fewest tokens first, then the longest prompt: they keep
  their tokens and wait at the end of the line, and are processed again when they continue.
* The share starts at 0.7, times the server's factor of caution, and falls to a seventh of that
  within 600 rounds; a retraction sets it to the need of the remaining requests if each produces 20
  more tokens.
* The tree of prefixes keeps prompts and outputs of finished requests, and prompts of retracted
  ones, until memory is needed.  Requests that are admitted together find nothing of each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from kvopt.simulate.block_server import RoundWork, Server
from kvopt.simulate.policies.server_policies import Sglang
from kvopt.simulate.simulator import Workload

FIRST_SHARE = Fraction(7, 10)
LEAST = Fraction(14, 100)
"""Least share, as a part of the first one."""
FALLS_WITHIN = 600
"""Rounds of tokens over which the share falls."""
AHEAD = 20
"""Expected tokens of each request after a retraction."""
MAX_EXPECTED = 4096
"""Limit of the reserved tokens of one request."""
MAX_SORTED = 128
"""A longer line is not sorted by matches."""


class SglangServer(Server):
    """The state of one server; see this module.

    Parameters
    ----------
    workload, policy
        Requests to serve, and limits of the server.
    """

    def __init__(self, workload: Workload, policy: Sglang) -> None:
        super().__init__(workload, policy)
        self.policy = policy
        self.share = first = min(FIRST_SHARE * policy.conservative, Fraction(1))
        self.lowest_share = first * LEAST
        self.step = (first - self.lowest_share) / FALLS_WITHIN
        self.retractions = 0
        self._waiting: list[int] = []
        self._stalled: set[int] = set()  # running requests that did not yield in the last round

    def _join(self, i: int) -> None:
        self._waiting.append(i)

    def _cached_after(self, i: int, work: RoundWork, tokens: int) -> tuple[int, int]:  # noqa: ARG002
        request = self.instance.requests[i]
        kept = request.peak if self._produced[i] == request.output else request.prompt
        kept = kept // self._block * self._block  # a page that is not full is freed at once
        return kept, kept

    def _excess(self) -> int:
        if self._cache is None or not self._stalled:
            return super()._excess()
        forest = self.instance.forest
        active = [i for i in self._running if i not in self._stalled]
        return sum(forest.tokens([i]) for i in active) - forest.tokens(active)

    # ---- a round --------------------------------------------------------------------------

    def _round(self) -> None:
        """Process the prompts of admitted requests, or let running ones yield; if mixed, both."""
        self._prompts = 0
        if self.policy.order == "lpm" and self._cache and len(self._waiting) <= MAX_SORTED:
            self._drop()
            self._waiting.sort(key=self._cache.matched, reverse=True)
        admitted = self._admitted()
        if not admitted:
            self._make_room()
        if admitted and not self.policy.mixed:
            for i in self._running.keys() - self._stalled:
                self._stall(i)
        else:
            for i in [i for i in self._running if i in self._stalled]:
                self._go_on(i)
            self._free -= self._growing[self.now % self._block]
        for i, cached in admitted:
            self._start(i, cached)
        self._pass_round()

    def _pass_round(self) -> None:
        stalled = {i: self._running.pop(i) for i in self._stalled}
        self._pass()
        self._running = {**stalled, **self._running}

    def _stall(self, i: int) -> None:
        """Let a running request yield no token in this round."""
        self._yielded(i)
        before = self.instance.requests[i].prompt + self._produced[i]
        self._running[i] = RoundWork(before, processed=before, cached=before)
        self._stalled.add(i)

    def _go_on(self, i: int) -> None:
        """Let a request yield tokens again; it has all its tokens."""
        self._stalled.remove(i)
        self._process(i, 1)

    def _start(self, i: int, cached: int) -> None:
        """Admit a request of which so many tokens are in the cache."""
        before, shared = self._held(i), self._in_cache(i)[1] // self._block
        if self._cache is not None:
            self._cache.start(i)
        self._free -= self._blocks(before + 1) - shared
        self._running[i] = RoundWork(before, processed=cached, cached=cached)
        self.unprocessed -= cached
        self._process(i, before + 1 - cached)

    def _done_by(self, i: int) -> int:
        """Return the tokens that a request has produced."""
        work = self._running.get(i)
        since = 0 if work is None or work.start is None else self.now - work.start
        return self._produced[i] + since

    def _held(self, i: int) -> int:
        """Return the tokens that a request holds or would add."""
        return self.instance.requests[i].prompt + self._done_by(i)

    def _expected(self, i: int) -> int:
        """Return how many tokens a request may still produce, in the view of the server."""
        return min(max(self.believed[i] - self._done_by(i), 0), MAX_EXPECTED)

    def _needed(self, line: Iterable[int]) -> int:
        """Return the pages that requests need to yield a token each."""
        return sum(self._held(i) % self._block == 0 for i in line)

    def _admitted(self) -> list[tuple[int, int]]:
        """Take requests that can be admitted from the line, with their tokens in the cache."""
        admitted: list[tuple[int, int]] = []
        reserved = self.share * sum(map(self._expected, self._running))
        pages = self._free - (self._needed(self._running) if self.policy.mixed else 0)
        left = pages * self._block - reserved
        prefill = self.policy.prefill
        while self._waiting and len(self._running) + len(admitted) < self._limit:
            cached, in_use = self._in_cache(i := self._waiting[0])
            to_process = self._blocks(self._held(i) + 1) * self._block - cached
            # Cached pages without users count as free, so using them takes memory too; the page
            # at the end is a margin of SGLang.
            needed = to_process + cached - in_use + self._expected(i) + self._block
            is_alone = not (self._running or admitted)
            if (not is_alone and needed >= left) or (admitted and to_process >= prefill):
                break
            admitted.append((self._waiting.pop(0), cached))
            left -= needed
            prefill -= to_process
        return admitted

    def _make_room(self) -> None:
        """Retract until all running requests can produce a token, and update the share."""
        line = sorted(
            self._running,
            key=lambda i: (self._done_by(i), -self.instance.requests[i].prompt),
            reverse=True,
        )
        if self._needed(line) <= self._free:
            self.share = max(self.share - self.step, self.lowest_share)
            return
        while self._needed(line) > self._free and len(line) > 1:
            self._retract(line.pop())
        needed = sum(self._done_by(i) + AHEAD for i in line)
        self.share = min(Fraction(needed, sum(self.believed[i] for i in line) + 1), Fraction(1))

    def _retract(self, i: int) -> None:
        if i in self._stalled:
            self._stalled.remove(i)
        else:
            self._yielded(i)
        self.unprocessed += self._running[i].held(self.now)
        self._leave(i)
        self._waiting.append(i)
        self.retractions += 1

"""A server that gives memory out in blocks and pauses requests with their tokens kept.

With prefixes it caches blocks as vLLM does: full blocks of the same tokens after the same tokens
are shared and counted once.  Free ones stay until they are needed, the least recently used leave
first.  A request finds its first blocks there: only the tokens after them, at least the last one,
are processed and need budget.

A request with prompt s holds s + j tokens in the round that yields its j-th token, as everywhere
in kvopt.  That request has s + 1 prompt tokens for vLLM, where the last token is never stored.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from kvopt.errors import InvalidInput, Stopped
from kvopt.simulate.policies.server_policies import PausingPolicy
from kvopt.simulate.simulator import Worker, Workload
from kvopt.timetable.prefix_cache import Cache
from kvopt.timetable.sweep import blocks_for
from kvopt.timetable.work_intervals import Chunks


@dataclass(slots=True)
class RoundWork:
    """A running request.

    Parameters
    ----------
    before
        Prompt and tokens produced before it was admitted.
    start
        Round before that of its first token since then, None during its prompt.
    processed
        Processed tokens of the prompt.
    chunks
        Tokens that each round processed without yielding one.
    cached
        Tokens that were in the cache when it was admitted.
    """

    before: int
    start: int | None = None
    processed: int = 0
    chunks: list[int] = field(default_factory=list)
    cached: int = 0

    def held(self, now: int) -> int:
        """Return the tokens that it holds at a time."""
        return self.processed if self.start is None else self.before + now - self.start


class Server(Worker):
    """The state of a server that gives memory out in blocks; subclasses have its rules.

    Parameters
    ----------
    workload, policy
        Requests to serve, and limits of the server.
    """

    def __init__(self, workload: Workload, policy: PausingPolicy) -> None:
        super().__init__(workload, policy.prediction_model().beliefs(workload.instance).output)
        self._block = block = policy.block_tokens
        self._free = self._total = self.instance.memory // block
        self._check_blocks(policy.block_field)
        self._limit = min(policy.active_limit, self.instance.max_active or policy.active_limit)
        self._cache: Cache | None = None
        if "prefix" in self.instance.extras:
            self._cache = Cache(self.instance.forest, block, self._total * block, block)
        self._left = self.now = 0  # requests that left so far, and the round
        self.rows = [[] for _ in self.instance]
        self._to_come = deque[int]()
        self._is_busy = False  # whether the round that ends at its time has begun
        self._waiting: Any = []
        self._running: dict[int, RoundWork] = {}  # in the order of admission
        # Of these, requests whose blocks will be taken back, in the same order.
        self._done: dict[int, None] = {}
        self._growing = [0] * block  # requests that need a block, by round modulo block
        self._ends: dict[int, list[tuple[int, RoundWork]]] = defaultdict(list)  # may be stale
        self._base = 0  # sum of before - start over requests that yield tokens
        self._prompts = 0  # tokens that this round processes without a new token
        self._produced = [0] * len(self.instance)
        self._partial: int | None = None  # request with an unfinished prompt: one at a time
        self._cut: dict[int, int] = {}  # where the prompts of requests were last given up

    def _check_blocks(self, field: str) -> None:
        """Refuse an instance with a request that could never finish."""
        block = self._block
        if (unit := self.instance.block_tokens or 0) % block:
            reason = f"is {block}, which does not divide block_tokens, {unit}"
            raise InvalidInput(reason, field=field)
        for request in self.instance:
            if (needed := self._blocks(request.peak)) > self._total:
                reason = f"needs {needed} blocks of {block} tokens"
                reason += f", memory has {self._total}; {field}=1 counts tokens"
                raise InvalidInput(reason, field=field, request=repr(request.id))

    @abstractmethod
    def _join(self, i: int) -> None:
        """Let an arrived or preempted request wait."""

    @abstractmethod
    def _round(self) -> None:
        """Take the decisions of a round, and let it pass if a request is processed."""

    @abstractmethod
    def _cached_after(self, i: int, work: RoundWork, tokens: int) -> tuple[int, int]:
        """Return how many tokens of a request that leaves enter the cache, and can be found there.

        ``tokens`` of them are of this round.
        """

    def deliver(self, i: int) -> None:
        """Let a request arrive, after those that arrived before."""
        self._to_come.append(i)

    def tokens(self) -> int:
        """Return the tokens held now, in whole blocks."""
        return (self._total - self._free) * self._block

    def matched(self, i: int) -> int:
        """Return the tokens of a request's prefix that are cached or in use by unfinished ones."""
        self._drop()
        return max(super().matched(i), 0 if self._cache is None else self._cache.matched(i))

    def _drop(self) -> None:
        """Let cached blocks leave that are taken by now."""
        if self._cache is not None:
            self._cache.make_room(self.tokens())

    def _in_cache(self, i: int) -> tuple[int, int]:
        """Return the tokens of a request that are in the cache, and those of them in use."""
        if self._cache is None:
            return 0, 0
        self._drop()
        cached, unused = self._cache.found(i)
        return cached, cached - unused

    def _blocks(self, tokens: int) -> int:
        return blocks_for(tokens, self._block)

    # ---- time -----------------------------------------------------------------------------

    def come_to(self, time: float) -> None:
        """Complete the rounds that end by a time, and begin those that begin before it."""
        while True:
            if self._is_busy and self.time <= time:
                self._complete()
            is_idle = not (self._running or self._waiting)
            if self._is_busy or (is_idle and not self._to_come):
                return
            begin = max(self.time, self.arrivals[self._to_come[0]]) if is_idle else self.time
            if begin >= time:
                return
            if self.should_stop():
                raise Stopped
            while self._to_come and self.arrivals[self._to_come[0]] <= begin:
                self._join(self._to_come.popleft())
            if is_idle:
                self.time = begin
                self.now = begin if self.clock.is_even else self.now
                self.resumed[self.now] = begin
            self._round()

    def _pass(self) -> None:
        """Let the round pass."""
        active, held = len(self._running), self._base
        if self._partial is not None:
            active -= 1
            held += self._running[self._partial].processed
        held += active * (self.now + 1) - self._excess()
        self.time += self.clock.batch_time.round_ns(active, self._prompts, held)
        self._is_busy = True

    def _excess(self) -> int:
        """Return the tokens of nodes that active requests would hold more than once."""
        return 0 if self._cache is None else self._cache.excess

    def _complete(self) -> None:
        """Complete requests after a round."""
        self._is_busy = False
        self.now += 1
        for i, work in self._ends.pop(self.now, ()):
            if self._running.get(i) is not work:
                continue
            self._yielded(i)
            self._count(i, -1)
            self._ended(i)

    def _ended(self, i: int) -> None:
        """Let a request go that has yielded its last token."""
        self._leave(i)

    def _process(self, i: int, tokens: int) -> None:
        """Process the pending tokens of a request; the last of them yields a token."""
        work = self._running[i]
        work.processed += tokens
        if work.processed <= work.before:
            self._partial = i
            work.chunks.append(tokens)
            self._prompts += tokens
            self.unprocessed -= tokens
            return
        if self._partial == i:
            self._partial = None
        self._prompts += tokens - 1
        self.unprocessed -= tokens - 1
        # At t it holds before + t - now tokens, and needs a block where these fill the last one.
        work.start = self.now
        self._base += work.before - self.now
        self._growing[(self.now - work.before) % self._block] += 1
        left = self.instance.requests[i].output - self._produced[i]
        self._ends[self.now + left].append((i, work))

    def _yielded(self, i: int) -> None:
        """Record the work of a request since it was admitted, when it ends, pauses or stalls."""
        work = self._running[i]
        first = self.now if work.start is None else work.start
        # A segment that begins where chunks end goes on from them.  So one that begins where a
        # prompt was given up, with no chunks of its own, needs empty ones.  The length of an even
        # round does not depend on what is processed, so there only real chunks count.
        says_more = work.cached or self._cut.get(i) == first
        if work.chunks or (says_more and not self.clock.is_even):
            pieces = tuple(work.chunks)
            self.chunks.append(Chunks(i, first - len(pieces), pieces, work.cached))
        if work.start is None:
            self._partial, self._cut[i] = None, first
            return
        self._base -= work.before - work.start
        self._growing[(work.start - work.before) % self._block] -= 1
        self._produced[i] += self.now - work.start
        self.rows[i].append((work.start + 1, self.now))

    def _leave(self, i: int, tokens: int = 0) -> None:
        """Take back the blocks of a request, with those of tokens of this round.

        `_yielded` comes before, and counts its tokens.
        """
        self._drop()  # what was taken from the cache leaves before more blocks are free
        work, is_done = self._running.pop(i), i in self._done
        request = self.instance.requests[i]
        # One that is done may leave rounds later (asynchronous scheduling), and holds its peak.
        held = request.peak if is_done else work.held(self.now)
        blocks = self._blocks(held + tokens)
        if self._cache is not None:
            kept, computed = self._cached_after(i, work, tokens)
            # Kept tokens stay; of their blocks those count as free that no request uses any more.
            blocks -= self._blocks(kept)
            self._left += 1
            pauses = self._produced[i] < request.output
            freed = self._cache.leave(i, (self.now, self._left), kept, computed, pauses=pauses)
            blocks += freed // self._block
        self._free += blocks
        self._done.pop(i, None)

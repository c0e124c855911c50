"""A server that admits by free memory and pauses requests when it runs out, round by round.

These are the decisions of vLLM's v1 scheduler, in kvopt's terms.  In a round:

1. Running requests are first, in the order of their admission: each processes one token, and
   needs a block if its blocks are full.  An unfinished prompt continues within the token budget of
   the round.  If no block is free, requests are preempted, the last in rank first, until one is:
   they give their blocks back, keep their tokens and wait.
2. If nothing was preempted, waiting requests are admitted by rank while the budget lasts and
   fewer than the limit run.  Prompt and tokens so far must fit into free blocks, less a watermark
   if others run; the first that does not fit stops the line.  They are processed again, and yield
   the next token in this round if the budget suffices.  A limit of prompts a round, which vLLM
   does not have, ends the line as well.

With asynchronous scheduling a round is planned before the tokens of the last one are known.  A
request that yielded its last token then keeps its blocks and its place while the next round is
planned, and may be preempted a last time without a cost.

With prefixes the server caches blocks as vLLM does: full blocks of the same tokens after the same
tokens are shared and counted once.  Free ones stay until they are needed, the least recently used
leave first.  A request finds its first blocks there: only the tokens after them, at least the last
one, are processed and need budget.

A request with prompt s holds s + j tokens in the round that yields its j-th token, as everywhere
in kvopt.  That request has s + 1 prompt tokens for vLLM, where the last token is never stored.

With first come, first served, running requests are always before waiting ones, so the last
admitted is the last in rank, and one rule serves both schedulers.
"""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections import defaultdict, deque
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from kvopt.errors import InvalidInput, Stopped
from kvopt.simulate.policies.server_policies import PausingPolicy, ServerPolicy
from kvopt.simulate.simulator import Worker, Workload
from kvopt.timetable.cache import Cache
from kvopt.timetable.sweep import blocks_for
from kvopt.timetable.work import Chunks


@dataclass(slots=True)
class Work:
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

    block_field: ClassVar[str] = "block"
    """Name of the parameter for the tokens of a block."""

    def __init__(self, workload: Workload, policy: PausingPolicy) -> None:
        super().__init__(workload, policy.prediction_model().beliefs(workload.instance).output)
        block: int = getattr(policy, self.block_field)
        self._block: int = block
        self._total: int = self.instance.memory // block
        self._free: int = self._total
        self._check_blocks()
        self._most = min(policy.most_active, self.instance.max_active or policy.most_active)
        self._cache: Cache | None = None
        if "prefix" in self.instance.extras:
            self._cache = Cache(self.instance.forest, block, self._total * block, block)
        self._left = 0  # requests that left so far
        self.now = 0
        self.found = [[] for _ in self.instance]
        self._to_come = deque[int]()
        self._is_busy = False  # whether the round that ends at its time has begun
        self._waiting: Any = []
        self._running: dict[int, Work] = {}  # in the order of admission
        # Of these, requests whose blocks will be taken back, in the same order.
        self._done: dict[int, None] = {}
        self._growing = [0] * block  # requests that need a block, by round modulo block
        self._ends: dict[int, list[tuple[int, Work]]] = defaultdict(list)  # may be stale
        self._base = 0  # sum of before - start over requests that yield tokens
        self._prompts = 0  # tokens that this round processes without a new token
        self._produced = [0] * len(self.instance)
        self._partial: int | None = None  # request with an unfinished prompt: one at a time
        self._cut: dict[int, int] = {}  # where the prompts of requests were last given up

    def _check_blocks(self) -> None:
        """Refuse an instance with a request that could never finish."""
        field, block = self.block_field, self._block
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
    def _known(self, i: int, work: Work, tokens: int) -> tuple[int, int]:
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
            return
        if self._partial == i:
            self._partial = None
        self._prompts += tokens - 1
        work.start = self.now
        self._base += work.before - self.now
        self._growing[(self.now - work.before) % self._block] += 1
        left = self.instance.requests[i].output - self._produced[i]
        self._ends[self.now + left].append((i, work))

    def _yielded(self, i: int) -> None:
        """Record the work of a request since it was admitted."""
        work = self._running[i]
        first = self.now if work.start is None else work.start
        says_more = work.cached or self._cut.get(i) == first  # rounds process prompts at no cost
        if work.chunks or (says_more and not self.clock.is_even):
            pieces = tuple(work.chunks)
            self.chunks.append(Chunks(i, first - len(pieces), pieces, work.cached))
        if work.start is None:
            self._partial, self._cut[i] = None, first
            return
        self._base -= work.before - work.start
        self._growing[(work.start - work.before) % self._block] -= 1
        self._produced[i] += self.now - work.start
        self.found[i].append((work.start + 1, self.now))

    def _leave(self, i: int, tokens: int = 0) -> None:
        """Take back the blocks of a request, with those of tokens of this round."""
        self._drop()
        work, is_done = self._running.pop(i), i in self._done
        request = self.instance.requests[i]
        held = request.peak if is_done else work.held(self.now)
        blocks = self._blocks(held + tokens)
        if self._cache is not None:
            kept, computed = self._known(i, work, tokens)
            blocks -= self._blocks(kept)  # these leave no trace
            self._left += 1
            pauses = self._produced[i] < request.output
            freed = self._cache.leave(i, (self.now, self._left), kept, computed, pauses=pauses)
            blocks += freed // self._block
        self._free += blocks
        self._done.pop(i, None)


class VllmServer(Server):
    """A server with the rules of vLLM; see this module."""

    def __init__(self, workload: Workload, policy: ServerPolicy) -> None:
        super().__init__(workload, policy)
        self.policy = policy
        for request in () if policy.chunked else self.instance:
            if request.peak > policy.budget:
                reason = f"is below the {request.peak} tokens that a round may have to process"
                raise InvalidInput(reason, field="budget", request=repr(request.id))
        # In floats, and with the block that is never used, as vLLM counts.
        self._watermark = int(float(policy.watermark) * (self._total + 1))
        columns = policy.priorities(self.instance), self.arrivals, range(len(self.instance))
        self._rank = list(zip(*columns, strict=True))
        self._continues = False  # whether a prompt was unfinished when the round began

    def _join(self, i: int) -> None:
        heapq.heappush(self._waiting, self._rank[i])

    def _pop(self) -> None:
        """Take the first of the line from it."""
        heapq.heappop(self._waiting)

    def _known(self, i: int, work: Work, tokens: int) -> tuple[int, int]:
        if i in self._done:
            return (peak := self.instance.requests[i].peak), peak
        held = work.held(self.now)
        if not self.policy.asynchronous or work.start is None:
            return held + tokens, held + tokens
        # The last token, or the one before it, is not known yet; all of a prompt are.
        return held + tokens, held - (not tokens and self.now > work.start + 1)

    def _ended(self, i: int) -> None:
        if self.policy.asynchronous:
            self._done[i] = None
        else:
            self._leave(i)

    def _round(self) -> None:
        self._prompts, self._continues = 0, self._partial is not None
        needed = self._growing[self.now % self._block]
        if self._partial is None and needed <= self._free:  # then the order is irrelevant
            self._free -= needed
            self._admit(self.policy.budget - len(self._running) + len(self._done))
        elif (budget := self._in_order()) is not None:
            self._admit(budget)
        for i in list(self._done):
            self._leave(i)
        if self._running:
            self._pass()

    def _in_order(self) -> int | None:
        """Let the running requests proceed, one after the other.

        Returns
        -------
        int | None
            Rest of the budget, None if a request was preempted.
        """
        budget, is_calm = self.policy.budget, True
        went_on: dict[int, int] = {}
        for i, work in list(self._running.items()):
            if i not in self._running or i in self._done:
                continue
            held = work.held(self.now)
            tokens = 1 if work.start is not None else min(work.before + 1 - held, budget)
            needed = self._blocks(held + tokens) - self._blocks(held)
            while needed > self._free and i in self._running:
                victim = self._victim()
                again = went_on.pop(victim, 0)
                budget += again
                self._preempt(victim, again)
                is_calm = False
            if i in self._running:
                self._free -= needed
                budget -= tokens
                went_on[i] = tokens
        if self._partial is not None:
            self._process(self._partial, went_on[self._partial])
        return budget if is_calm else None

    def _victim(self) -> int:
        """Return the running request to preempt."""
        if self.policy.victims == "least-computed":
            return min(self._running, key=lambda i: self._running[i].held(self.now))
        return max(self._running, key=self._rank.__getitem__)

    def _preempt(self, i: int, tokens: int) -> None:
        """Let a request wait again; it may have processed tokens in this round."""
        if i not in self._done:
            self._yielded(i)
            self._join(i)
        self._leave(i, tokens)

    def _admit(self, budget: int) -> None:
        """Admit from the front of the line while it fits."""
        most = inf if self.policy.prompts is None else self.policy.prompts
        prompts = int(self._continues)
        while self._waiting and budget and len(self._running) < self._most and prompts < most:
            i, cached, shared = self._waiting[0][-1], 0, 0
            before = self.instance.requests[i].prompt + self._produced[i]
            if self._cache is not None:
                self._drop()
                cached, unused = self._cache.found(i)
                shared = (cached - unused) // self._block  # the others are taken from free ones
            if not self.policy.chunked and before + 1 - cached > budget:
                return
            watermark = self._watermark if self._running else 0
            if self._blocks(before + 1) - shared + watermark > self._free:
                return
            self._pop()
            tokens = min(before + 1 - cached, budget)
            budget -= tokens
            self._free -= self._blocks(cached + tokens) - shared
            if self._cache is not None:
                self._cache.start(i)
            self._running[i] = Work(before, processed=cached, cached=cached)
            self._process(i, tokens)
            prompts += 1

"""Servers with the rules of vLLM's v1 scheduler, round by round, for every clock and with prefixes.

In a round:

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

With first come, first served, running requests are always before waiting ones, so the last
admitted is the last in rank, and one rule serves both schedulers.
"""

from __future__ import annotations

import heapq
from math import inf

from kvopt.errors import InvalidInput
from kvopt.simulate.block_server import RoundWork, Server
from kvopt.simulate.policies.server_policies import ServerPolicy
from kvopt.simulate.simulator import Workload


class VllmServer(Server):
    """A server with the rules of vLLM.

    Parameters
    ----------
    workload, policy
        Requests to serve, and limits of the server.
    """

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

    def _cached_after(self, i: int, work: RoundWork, tokens: int) -> tuple[int, int]:
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
        """Let running requests proceed, then waiting ones join; done ones leave after the plan."""
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
        """Let running requests proceed in turn; return the budget left, None after a preemption."""
        budget, is_calm = self.policy.budget, True
        went_on: dict[int, int] = {}
        for i, work in list(self._running.items()):
            if i not in self._running or i in self._done:
                continue
            held = work.held(self.now)
            tokens = 1 if work.start is not None else min(work.before + 1 - held, budget)
            needed = self._blocks(held + tokens) - self._blocks(held)
            # Victims give back what they took in this round; the request may be one itself.
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
            self.unprocessed += self._running[i].held(self.now)
        self._leave(i, tokens)

    def _admit(self, budget: int) -> None:
        """Admit from the front of the line while it fits."""
        limit = inf if self.policy.prompts is None else self.policy.prompts
        prompts = int(self._continues)
        while self._waiting and budget and len(self._running) < self._limit and prompts < limit:
            i = self._waiting[0][-1]
            before = self.instance.requests[i].prompt + self._produced[i]
            cached, in_use = self._in_cache(i)
            shared = in_use // self._block  # the others are taken from free ones
            if not self.policy.chunked and before + 1 - cached > budget:
                return
            watermark = self._watermark if self._running else 0
            if self._blocks(before + 1) - shared + watermark > self._free:
                return
            heapq.heappop(self._waiting)
            tokens = min(before + 1 - cached, budget)
            budget -= tokens
            self._free -= self._blocks(cached + tokens) - shared
            if self._cache is not None:
                self._cache.start(i)
            self._running[i] = RoundWork(before, processed=cached, cached=cached)
            self.unprocessed -= cached
            self._process(i, tokens)
            prompts += 1

"""vLLM's scheduler written down step by step, with lists and without kvopt's parts.

Prompts are as vLLM counts them.  A list says who waits, a list says who runs, and a preempted
request is put back as the policy says: first come, first served in front, by priority in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvopt.problem.batch_time import BatchTime


@dataclass
class One:
    """A request: as it came, what it has produced, what is in the cache, and its blocks."""

    number: int
    arrival: int
    prompt: int
    output: int
    priority: int
    produced: int = 0
    computed: int = 0
    blocks: int = 0
    times: list[int] = field(default_factory=list)
    completed: int = 0
    lingers: bool = False


@dataclass
class LiteralVllm:
    """A server; rounds last 1, or as long as a batch-time model says."""

    block: int
    blocks: int
    max_seqs: int
    budget: int
    chunked: bool
    watermark: int
    by_priority: bool
    model: BatchTime | None = None
    asynchronous: bool = False
    most_used: int = 0

    def order(self, one: One) -> tuple[int, int, int]:
        return (one.priority if self.by_priority else 0, one.arrival, one.number)

    def free(self) -> int:
        return self.blocks - sum(one.blocks for one in self.running)

    def serve(self, requests: list[One]) -> None:
        """Serve to the end; each request then knows its rounds and when it was done."""
        to_come = sorted(requests, key=lambda one: (one.arrival, one.number))
        self.waiting: list[One] = []
        self.running: list[One] = []
        turn = time = 0
        while to_come or self.waiting or self.running:
            if not (self.waiting or self.running) and to_come[0].arrival > time:
                turn = to_come[0].arrival if self.model is None else turn
                time = to_come[0].arrival
            while to_come and to_come[0].arrival <= time:
                self.waiting.append(to_come.pop(0))
            if self.by_priority:
                self.waiting.sort(key=self.order)
            tokens = self.schedule()
            self.most_used = max(self.most_used, self.blocks - self.free())
            for one in [one for one in self.running if one.lingers]:
                one.blocks = one.computed = 0
                self.running.remove(one)
            if not tokens:
                continue
            turn += 1
            time += self.lasts(tokens)
            for one, count in tokens:
                one.computed += count
                if one.computed == one.prompt + one.produced:
                    one.produced += 1
                    one.times.append(turn)
                if one.produced == one.output:
                    one.completed = time
                    one.lingers = self.asynchronous
                    if not self.asynchronous:
                        one.blocks = 0
                        self.running.remove(one)

    def lasts(self, tokens: list[tuple[One, int]]) -> int:
        if self.model is None:
            return 1
        yields = sum(one.computed + count == one.prompt + one.produced for one, count in tokens)
        total = sum(count for _, count in tokens)
        held = sum(one.computed for one in self.running) + total
        slowest = max(line.round_ns + line.token_ns * total for line in self.model.lines)
        return slowest + self.model.prompt_ns * (total - yields) + self.model.kv_ns * held

    def schedule(self) -> list[tuple[One, int]]:
        """Return what is processed in this round, in tokens."""
        budget, tokens, preempted = self.budget, list[tuple[One, int]](), False
        at = 0
        while at < len(self.running) and budget:
            one = self.running[at]
            if one.lingers:
                at += 1
                continue
            count = min(one.prompt + one.produced - one.computed, budget)
            while (needed := self.needed(one, count)) > self.free():
                preempted = True
                last = max(self.running, key=self.order) if self.by_priority else self.running[-1]
                at -= self.running.index(last) < at
                self.running.remove(last)
                budget += sum(c for other, c in tokens if other is last)
                tokens = [(other, c) for other, c in tokens if other is not last]
                last.computed = last.blocks = 0
                if not last.lingers:
                    self.waiting.insert(0, last)
                if last is one:
                    break
            else:
                one.blocks += needed
                tokens.append((one, count))
                budget -= count
                at += 1
        while not preempted and self.waiting and budget and len(self.running) < self.max_seqs:
            one = self.waiting[0]
            whole = one.prompt + one.produced
            margin = self.watermark if self.running else 0
            if self.needed(one, whole) + margin > self.free():
                break
            if whole > budget and not self.chunked:
                break
            count = min(whole, budget)
            one.blocks = self.needed(one, count)
            tokens.append((one, count))
            budget -= count
            self.running.append(self.waiting.pop(0))
        return tokens

    def needed(self, one: One, count: int) -> int:
        total = one.computed + count
        return total // self.block + (total % self.block > 0) - one.blocks

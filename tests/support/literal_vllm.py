"""vLLM's scheduler written down step by step, with lists and without kvopt's parts.

Prompts are as vLLM counts them.  A list says who waits, a list says who runs, and a preempted
request is put back as the policy says: first come, first served in front, by priority in its place.

Blocks are objects.  With prefix caching a full block is known by all tokens up to its end; free
blocks, known or not, stand in a queue from whose head new ones are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvopt.problem.batch_time import BatchTime


@dataclass(eq=False)
class Block:
    """A block of the cache: how many use it, and all tokens up to its end if these are known."""

    users: int = 0
    tokens: tuple[object, ...] | None = None


@dataclass(eq=False)
class One:
    """A request: as it came, what it has produced, what is in the cache, and its blocks."""

    number: int
    arrival: int
    prompt: int
    output: int
    priority: int
    produced: int = 0
    computed: int = 0
    blocks: list[Block] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    prefix: tuple[object, ...] = ()
    unit: int = 1
    hits: list[int] = field(default_factory=list)
    completed: int = 0
    lingers: bool = False

    def token(self, place: int) -> object:
        """A label that equal tokens after equal ones have in common."""
        if place < len(self.prefix) * self.unit:
            return self.prefix[place // self.unit], place % self.unit
        return self.number, place, "own"


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
    caching: bool = False
    spares_work: bool = False
    most_used: int = 0

    def __post_init__(self) -> None:
        self.queue = [Block() for _ in range(self.blocks)]
        self.turn = 0

    def order(self, one: One) -> tuple[int, int, int]:
        return (one.priority if self.by_priority else 0, one.arrival, one.number)

    def free(self) -> int:
        return len(self.queue)

    def known(self, one: One) -> int:
        """How many tokens the scheduler knows; asynchronously not that of the last round.

        The token of one that waits has come.
        """
        is_late = self.asynchronous and one in self.running and one.times[-1:] == [self.turn]
        return one.prompt + one.produced - is_late

    def remember(self, one: One, count: int) -> None:
        """Make full blocks of the first so many tokens known."""
        for number, block in enumerate(one.blocks[: count // self.block * self.caching]):
            if block.tokens is None:
                block.tokens = tuple(one.token(p) for p in range((number + 1) * self.block))

    def hit(self, one: One) -> list[Block]:
        """The longest row of known blocks that one begins with, without its last token."""
        found: list[Block] = []
        there = [*self.queue, *(block for other in self.running for block in other.blocks)]
        by_tokens = {block.tokens: block for block in there if block.tokens is not None}
        for end in range(self.block, one.prompt + one.produced, self.block):
            if (tokens := tuple(one.token(p) for p in range(end))) not in by_tokens:
                break
            found.append(by_tokens[tokens])
        return found

    def take(self, one: One, count: int) -> None:
        """Give blocks to one for the next so many tokens."""
        for _ in range(self.needed(one, count)):
            block = self.queue.pop(0)
            block.users, block.tokens = 1, None
            one.blocks.append(block)
        self.remember(one, min(one.computed + count, self.known(one)))

    def give_back(self, one: One) -> None:
        """Free all blocks, the last one first."""
        for block in reversed(one.blocks):
            block.users -= 1
            if not block.users:
                self.queue.append(block)
        one.blocks, one.computed = [], 0

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
            self.turn = turn
            for one in self.running:  # what has become known since
                self.remember(one, min(one.computed, self.known(one) - 1))
            tokens = self.schedule()
            self.most_used = max(self.most_used, self.blocks - self.free())
            for one in [one for one in self.running if one.lingers]:
                self.give_back(one)
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
                        self.give_back(one)
                        self.running.remove(one)

    def lasts(self, tokens: list[tuple[One, int]]) -> int:
        if self.model is None:
            return 1
        yields = sum(one.computed + count == one.prompt + one.produced for one, count in tokens)
        total = sum(count for _, count in tokens)
        held = sum(one.computed for one in self.running) + total
        there = [block for one in self.running for block in one.blocks]
        held -= (len(there) - len({*map(id, there)})) * self.block
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
            while self.needed(one, count) > self.free():
                preempted = True
                last = max(self.running, key=self.order) if self.by_priority else self.running[-1]
                if self.spares_work:
                    last = min(self.running, key=lambda one: one.computed)
                at -= self.running.index(last) < at
                self.running.remove(last)
                budget += sum(c for other, c in tokens if other is last)
                tokens = [(other, c) for other, c in tokens if other is not last]
                self.give_back(last)
                if not last.lingers:
                    self.waiting.insert(0, last)
                if last is one:
                    break
            else:
                self.take(one, count)
                tokens.append((one, count))
                budget -= count
                at += 1
        while not preempted and self.waiting and budget and len(self.running) < self.max_seqs:
            one = self.waiting[0]
            whole = one.prompt + one.produced
            hits = self.hit(one) if self.caching else []
            margin = self.watermark if self.running else 0
            margin -= sum(block.users > 0 for block in hits)  # the others are in the queue
            if self.needed(one, whole) + margin > self.free():
                break
            whole -= len(hits) * self.block
            if whole > budget and not self.chunked:
                break
            for block in hits:
                if not block.users:
                    self.queue.remove(block)
                block.users += 1
            one.blocks, one.computed = hits, len(hits) * self.block
            one.hits += [one.computed] * (one.computed > 0)
            count = min(whole, budget)
            self.take(one, count)
            tokens.append((one, count))
            budget -= count
            self.running.append(self.waiting.pop(0))
        return tokens

    def needed(self, one: One, count: int) -> int:
        total = one.computed + count
        return total // self.block + (total % self.block > 0) - len(one.blocks)

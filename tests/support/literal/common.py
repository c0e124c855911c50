"""A worker simulated one round at a time, and the memory check that the papers share.

Nothing here is fast and nothing is shared with the package under test.

Clock, the same for every policy.  At round t, in this order:

1. every active request whose last token appeared at t is completed and releases its memory
   (papers also evaluate their check at t' = t, where it would still count: that is ignored);
2. requests with arrival <= t wait;
3. a deterministic policy that is in a state it has been in before, with nothing left to arrive,
   is in an endless loop and stops there;
4. if the memory held at t + 1 by what is active now would pass M, the policy evicts;
5. the policy admits, and what step 4 evicted may be admitted again in the same round;
6. the time becomes t + 1, at which a request started at k holds prompt + (t + 1 - k) tokens.
"""

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

Outcome = Literal["completed", "livelock"]


class Interval(NamedTuple):
    """A predicted interval of output lengths."""

    lower: int
    upper: int


class Job(NamedTuple):
    """A request; the bounds of its predicted interval default to the true output."""

    arrival: int
    prompt: int
    output: int
    lower: int | None = None
    upper: int | None = None

    def interval(self) -> Interval:
        return Interval(
            self.output if self.lower is None else self.lower,
            self.output if self.upper is None else self.upper,
        )


class Run(NamedTuple):
    """What a policy did.

    ``starts`` has the last start of each request and ``completions`` its completion, None for
    what never finished.  ``evictions`` counts requests, not events: clearing three is three.
    ``objective`` is the sum of completion - arrival, None on a livelock.
    """

    starts: list[int | None]
    completions: list[int | None]
    evictions: int
    outcome: Outcome
    objective: int | None


def exact(value: Fraction | float | str) -> Fraction:
    """Read a parameter as the decimal that is written: 0.1 is one tenth, not its double."""
    return Fraction(str(value))


def beliefs_or_truth(jobs: Sequence[Job], believed: Sequence[int] | None) -> list[int]:
    """Return the believed outputs, the true ones when there are none.

    Beliefs are taken at face value.  One with prompt + belief > M passes no check, ever: the
    request starves, and whatever stands behind it in a prefix order starves with it.
    """
    if believed is None:
        return [job.output for job in jobs]
    if len(believed) != len(jobs):
        raise ValueError("one belief for each request")
    return list(believed)


def by(values: Sequence[Hashable], jobs: Sequence[Job]) -> Callable[[int], tuple[Hashable, ...]]:
    """Return the order of these values; ties by (prompt, arrival, position), as they are then."""

    def key(position: int) -> tuple[Hashable, ...]:
        job = jobs[position]
        return values[position], job.prompt, job.arrival, position

    return key


class Timed(list[Job]):
    """Requests that arrive at nanoseconds, on a worker whose rounds last some of these.

    What arrives during a round arrives with the next one, which is then its arrival.  A worker
    that is idle waits for an arrival.

    Attributes
    ----------
    round_ns
        Length of a round, by processed tokens, those of prompts among them, and held tokens.
    time
        Begin of the round.
    starts, first_tokens, completions
        Last start, first token and completion of each request.
    peak
        Most tokens held.
    """

    def __init__(self, jobs: Sequence[Job], round_ns: Callable[[int, int, int], int]) -> None:
        super().__init__(jobs)
        self.round_ns, self.time, self.peak = round_ns, 0, 0
        self.starts: list[int | None] = [None for _ in jobs]
        self.first_tokens: list[int | None] = [None for _ in jobs]
        self.completions: list[int | None] = [None for _ in jobs]


class Worker:
    """One worker and its requests, at one round.

    Attributes
    ----------
    now
        The round.
    waiting
        Positions of the requests that have arrived, are not active and are not completed.
    active
        Position to start round.
    """

    def __init__(self, jobs: Sequence[Job], memory: int) -> None:
        self.jobs = list(jobs)
        self.timed = jobs if isinstance(jobs, Timed) else None
        self.memory = memory
        self.now = 0
        self.coming = list(range(len(self.jobs)))
        self.waiting: list[int] = []
        self.active: dict[int, int] = {}
        self.starts: list[int | None] = [None for _ in self.jobs]
        self.completions: list[int | None] = [None for _ in self.jobs]
        self.evictions = 0
        self.states: set[Hashable] = set()

    def open_round(self) -> bool:
        """Steps 1 and 2 of a round; False when every request is completed."""
        for position in list(self.active):
            if self.tokens(position) == self.jobs[position].output:
                self.starts[position] = self.active[position]
                self.completions[position] = self.now
                del self.active[position]
        if self.timed is not None and not (self.active or self.waiting):
            self.idle(self.timed)
        now = self.now if self.timed is None else self.timed.time
        for position in list(self.coming):
            if self.jobs[position].arrival <= now:
                self.coming.remove(position)
                self.waiting.append(position)
                if self.timed is not None:
                    self.timed[position] = self.jobs[position]._replace(arrival=self.now)
        return any(completion is None for completion in self.completions)

    def close_round(self) -> None:
        """Step 6 of a round; no policy may let the memory pass M."""
        if self.timed is not None:
            self.pass_time(self.timed)
        self.now += 1
        held = 0
        for position in self.active:
            held += self.jobs[position].prompt + self.tokens(position)
        if held > self.memory:
            raise AssertionError(f"{held} tokens at {self.now}, of {self.memory}")

    def idle(self, timed: Timed) -> None:
        """Wait for the next arrival."""
        timed.time = max(timed.time, min((self.jobs[i].arrival for i in self.coming), default=0))

    def pass_time(self, timed: Timed) -> None:
        """Let the round last, and note who has the first or the last token at its end."""
        if not self.active:
            self.idle(timed)
            return
        held = self.memory_next()
        prompts = sum(self.jobs[i].prompt for i, start in self.active.items() if start == self.now)
        timed.time += timed.round_ns(len(self.active) + prompts, prompts, held)
        timed.peak = max(timed.peak, held)
        for i in self.active:
            if self.tokens(i) == 0:
                timed.first_tokens[i] = timed.time
            if self.tokens(i) + 1 == self.jobs[i].output:
                timed.completions[i] = timed.time

    def repeats(self, memory_of_policy: Hashable = None) -> bool:
        """Step 3 of a round: tell whether it repeats a state, with nothing left to arrive.

        The state is which requests wait, which are active and with how many tokens, and
        whatever the policy remembers besides.
        """
        if self.coming:
            return False
        state = (
            tuple(sorted(self.waiting)),
            tuple(sorted((position, self.tokens(position)) for position in self.active)),
            memory_of_policy,
        )
        if state in self.states:
            return True
        self.states.add(state)
        return False

    def tokens(self, position: int) -> int:
        """Tokens that an active request has generated by now."""
        return self.now - self.active[position]

    def memory_next(self) -> int:
        """Tokens held at the next time by what is active now."""
        held = 0
        for position in self.active:
            held += self.jobs[position].prompt + self.tokens(position) + 1
        return held

    def start(self, position: int) -> None:
        self.waiting.remove(position)
        self.active[position] = self.now
        if self.timed is not None:
            self.timed.starts[position] = self.timed.time

    def evict(self, position: int) -> None:
        """Lose all generated tokens; the request waits again from this round on."""
        del self.active[position]
        self.waiting.append(position)
        self.evictions += 1

    def clear(self) -> None:
        """Evict everything active."""
        for position in list(self.active):
            self.evict(position)

    def report(self, outcome: Outcome) -> Run:
        objective = 0
        for job, completion in zip(self.jobs, self.completions, strict=True):
            if completion is not None:
                objective += completion - job.arrival
        return Run(
            self.starts,
            self.completions,
            self.evictions,
            outcome,
            objective if outcome == "completed" else None,
        )


def fits(worker: Worker, beliefs: Sequence[int], added: Sequence[int], limit: Fraction) -> bool:
    """Return whether the believed memory stays within the limit when ``added`` start now.

    Equation 5 of Jaillet et al. (v2), equation 3 of Chen et al., at every later time up to the
    last believed completion, also of what is active already.  A request that has outlived its
    belief is believed to complete at the next time: its belief is max(belief, g + 1).
    """
    start: dict[int, int] = {}
    end: dict[int, int] = {}
    for position in worker.active:
        start[position] = worker.active[position]
        end[position] = start[position] + max(beliefs[position], worker.tokens(position) + 1)
    for position in added:
        start[position] = worker.now
        end[position] = worker.now + max(beliefs[position], 1)
    for time in range(worker.now + 1, max(end.values(), default=worker.now) + 1):
        held = 0
        for position in start:
            if time <= end[position]:
                held += worker.jobs[position].prompt + time - start[position]
        if held > limit:
            return False
    return True


def prefix(
    worker: Worker, beliefs: Sequence[int], order: Sequence[int], limit: Fraction
) -> list[int]:
    """Scan the order and stop at the first request that does not fit."""
    chosen: list[int] = []
    for position in order:
        if fits(worker, beliefs, [*chosen, position], limit):
            chosen.append(position)
        else:
            break
    return chosen


def list_schedule(
    jobs: Sequence[Job],
    memory: int,
    beliefs: Sequence[int],
    key: Callable[[int], Hashable],
    limit: Fraction | None = None,
) -> Run:
    """Admit by prefix in the order of ``key`` with the look-ahead check.

    When beliefs were too low and memory would pass M at the next time, everything active is
    evicted, whatever the limit of the check is.  Beliefs are not learned: an evicted request is
    believed again what was believed at first.
    """
    worker = Worker(jobs, memory)
    if limit is None:
        limit = Fraction(memory)
    while worker.open_round():
        if worker.repeats():
            return worker.report("livelock")
        if worker.memory_next() > memory:
            worker.clear()
        order = sorted(worker.waiting, key=key)  # type: ignore[arg-type]
        for position in prefix(worker, beliefs, order, limit):
            worker.start(position)
        worker.close_round()
    return worker.report("completed")

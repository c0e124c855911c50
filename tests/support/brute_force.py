"""Every schedule of a tiny problem, by one simulator written from the definitions alone.

Nothing of kvopt is imported: requests are rows ``(arrival, prompt, output)``, those with a shared
prefix end with its blocks.  A worker goes from round to round: of each request it knows the prompt
tokens that are processed and the output tokens produced, and tries every set of requests, and of
pieces of prompts, that memory holds.  All is slow and literal, so that agreement means something.

Three rules are wider than what a server can do, so that bounds have to cover more: a request that
returns from a pause brings its tokens back for nothing, what was computed of a prefix stays for
ever (unless ``drops``), and a round in seconds may wait for an arrival.  Restarts are runs: the
last runs of all requests are a schedule without evictions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from itertools import combinations_with_replacement, groupby, product
from math import inf
from typing import Any, NamedTuple, TypeVar

Triple = tuple[int, int, int]
"""``(arrival, prompt, output)`` of one request."""
Row = tuple[int, int, int, tuple[object, ...]]
"""The same, and the blocks of its prefix from a root."""
Starts = tuple[int, ...]
Schedule = Sequence[Any]
"""Of each request the round in which it starts, or its active times."""
Lines = Sequence[tuple[int, int]]
"""Fixed nanoseconds of a round, and nanoseconds for each token that it processes."""
Place = TypeVar("Place")


@dataclass(frozen=True)
class Server:
    """How long rounds last."""

    lines: Lines
    prompt_ns: int
    kv_ns: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(self.lines))

    def round_ns(self, tokens: int, prompts: int, held: int) -> int:
        """Return the nanoseconds of a round."""
        longest = max(fixed + slope * tokens for fixed, slope in self.lines)
        return longest + self.prompt_ns * prompts + self.kv_ns * held


# ---- the check of one schedule in rounds --------------------------------------------------------


def active_times(requests: Sequence[Any], schedule: Schedule) -> list[Sequence[int]]:
    """Return the times at which requests are active: a start stands for a run."""
    times: list[Sequence[int]] = []
    for request, own in zip(requests, schedule, strict=True):
        is_start = isinstance(own, int)
        times.append(range(own + 1, own + request[2] + 1) if is_start else own)
    return times


def held(
    requests: Sequence[Any], schedule: Schedule, *, block: int = 1, unit: int = 1
) -> dict[int, int]:
    """Return the blocks in use at each time; blocks of one token are tokens."""
    states: dict[int, list[tuple[Any, int, int]]] = defaultdict(list)
    for request, times in zip(requests, active_times(requests, schedule), strict=True):
        for produced, time in enumerate(times, 1):
            states[time].append((request, request[1], produced))
    return {time: in_use(there, block, unit) for time, there in sorted(states.items())}


def in_use(there: Sequence[tuple[Any, int, int]], block: int, unit: int) -> int:
    """Return the blocks of requests with so many prompt tokens and output tokens in memory."""
    private = [max(done - unit * len(path_of(row)), 0) + produced for row, done, produced in there]
    shared = computed(((row, done) for row, done, _ in there), unit)
    return sum(-(-tokens // block) for tokens in (*private, *shared.values()))


def path_of(request: Any) -> tuple[object, ...]:
    """Return the shared blocks of a request."""
    return tuple(request[3]) if len(request) > 3 else ()


def computed(there: Any, unit: int) -> dict[object, int]:
    """Return how many tokens of each shared block there are, given processed prompt tokens."""
    tokens: dict[object, int] = {}
    for row, done in there:
        for place, name in enumerate(path_of(row)):
            if done > place * unit:
                tokens[name] = max(tokens.get(name, 0), min(unit, done - place * unit))
    return tokens


def load(requests: Sequence[Any], schedule: Schedule, time: int, *, unit: int = 1) -> int:
    """Return the tokens held at a time."""
    return held(requests, schedule, unit=unit).get(time, 0)


def feasible(
    memory: int, requests: Sequence[Any], schedule: Schedule, *, block: int = 1, unit: int = 1
) -> bool:
    """Whether each token has a time of its own after the arrival, and memory always suffices."""
    for row, times in zip(requests, active_times(requests, schedule), strict=True):
        if list(times) != sorted(set(times)) or len(times) != row[2] or times[0] <= row[0]:
            return False
    blocks = held(requests, schedule, block=block, unit=unit)
    return max(blocks.values(), default=0) <= memory // block


def makespan(requests: Sequence[Any], schedule: Schedule) -> int:
    """Return the time of the last completion, 0 without requests."""
    return max((times[-1] for times in active_times(requests, schedule)), default=0)


def tel(requests: Sequence[Any], schedule: Schedule) -> int:
    """Return the total end-to-end latency."""
    pairs = zip(requests, active_times(requests, schedule), strict=True)
    return sum(times[-1] - int(row[0]) for row, times in pairs)


def last_time(requests: Sequence[Any]) -> int:
    """Return a time by which every optimal schedule has finished: ``max a + sum o``.

    Suppose nothing is active at a time after the last arrival and something starts there
    or later.  Moving all of that one round earlier keeps every memory sum and saves
    latency, so the schedule was not optimal.  Hence each time from ``max a + 1`` to the
    last completion has an active request, and a request gives only ``o`` such times.
    """
    last = max((int(row[0]) for row in requests), default=0)
    return last + sum(int(row[2]) for row in requests)


# ---- every schedule -----------------------------------------------------------------------------


class Due(NamedTuple):
    """A request counts if its first and its last token are there by these times."""

    first: float = inf
    rest: float = inf
    """Limit of the time from the first to the last token."""
    end: float = inf


class Job(NamedTuple):
    """A request as the simulator knows it."""

    arrival: int
    prompt: int
    output: int
    path: tuple[object, ...] = ()
    weight: int = 1
    due: Due | None = None
    """When it counts; None if all latencies do."""
    window: tuple[int, ...] | None = None
    """The rounds in which it may start, if not all after its arrival."""


class Progress(NamedTuple):
    """Prompt tokens processed, and tokens produced."""

    prompt: int = 0
    produced: int = 0
    due: float = inf
    """When it has to complete to count, once its first token is there."""


State = tuple[Progress, ...]
Cache = tuple[object, ...]
"""Blocks, and tokens of nobody's use (None), that a server which drops has not dropped yet."""


@dataclass(frozen=True)
class Rules:
    """What schedules may do, and what counts."""

    memory: int
    scope: str = "runs"
    server: Server | None = None
    """How long rounds last; they last 1 without."""
    block: int = 1
    """Tokens of a block of memory."""
    unit: int = 1
    """Tokens of a block of prefixes."""
    most_active: float = inf
    drops: bool = False
    """Whether finished blocks leave, the oldest first, when their memory is needed."""


class Node(NamedTuple):
    """Where a worker may be, in order of what the whole costs at least."""

    least: float
    number: int
    cost: int
    now: int
    state: State
    kept: Cache
    active: tuple[int, ...] = ()
    """What was active in the round before."""
    before: Node | None = None


class Worker:
    """The requests of one worker, and its rules."""

    def __init__(self, rules: Rules, jobs: Sequence[Job]) -> None:
        self.rules, self.jobs = rules, jobs
        self.counts_dues = any(job.due is not None for job in jobs)
        self.shares = any(job.path for job in jobs)
        times = [job.arrival for job in jobs]
        dues = [job.due for job in jobs if job.due is not None]
        times += [int(t) + 1 for due in dues for t in (due.first, due.end) if t < inf]
        self.has_pace = any(due.rest < inf for due in dues)
        times += [max(job.window, default=0) + 1 for job in jobs if job.window is not None]
        self.last = max(times, default=0)
        """From here on what is to come does not depend on the time, but for a pace."""
        if self.has_pace:  # all that keeps its pace alone can still do so
            self.last += sum(job.output for job in jobs)
        self.shortest = 1 if rules.server is None else rules.server.round_ns(1, 0, 1)
        kinds = [[*group] for _, group in groupby(range(len(jobs)), key=lambda i: jobs[i])]
        self.alike = [slice(own[0], own[-1] + 1) for own in kinds if len(own) > 1]

    def best(self) -> Node | None:
        """Return the end of a best schedule, None if there is none.

        What costs least at least is looked at first (A*), so that all that cannot be better is
        left out; a state with a time is looked at once, and equal requests may change places.
        """
        nothing = (Progress(),) * len(self.jobs)
        heap, seen, number = [Node(self.ahead(0, nothing), 0, 0, 0, nothing, ())], set(), 0
        while heap:
            node = heappop(heap)
            now = node.now if self.has_pace else min(node.now, self.last)
            key = (now, self.sorted(node.state), node.kept)
            if key in seen:
                continue
            seen.add(key)
            if self.is_over(node.now, node.state):
                return node
            for cost, end, state, kept, active in self.choices(node.now, node.state, node.kept):
                number, total = number - 1, node.cost + cost  # of equals the newest first
                least = total + self.ahead(end, state)
                heappush(heap, Node(least, number, total, end, state, kept, active, node))
        return None

    def sorted(self, state: State) -> State:
        """Return a state with equal requests in order."""
        for own in self.alike:
            state = (*state[: own.start], *sorted(state[own]), *state[own.stop :])
        return state

    def ahead(self, now: int, state: State) -> int:
        """Return the least cost to come if memory did not matter, and all rounds were short."""
        pairs = zip(self.jobs, state, strict=True)
        if not self.counts_dues:
            rounds = sum(job.weight * (job.output - done.produced) for job, done in pairs)
            return rounds * self.shortest
        return -sum(
            job.weight
            for job, done in pairs
            if job.due is not None
            and job.output > done.produced
            and (done.produced > 0 or now + self.shortest <= job.due.first)
            and now + (job.output - done.produced) * self.shortest
            <= (done.due if done.produced else job.due.end)
        )

    def is_over(self, now: int, state: State) -> bool:
        """Whether all are done, or nothing has to go on, and no more can be in time."""
        pairs = [*zip(self.jobs, state, strict=True)]
        if all(done.produced == job.output for job, done in pairs):
            return True
        return (
            self.counts_dues
            and self.ahead(now, state) == 0  # what is left out can run when all others are done
            and ("pauses" in self.rules.scope or not any(self.goes_on(*pair) for pair in pairs))
        )

    @staticmethod
    def goes_on(job: Job, done: Progress) -> bool:
        """Whether a request has begun and is not done."""
        return done[:2] != (0, 0) and done.produced < job.output

    def choices(
        self, now: int, state: State, kept: Cache
    ) -> Iterator[tuple[int, int, State, Cache, tuple[int, ...]]]:
        """Yield cost, end, state and cache of what can come next, and what is active."""
        later = min((job.arrival for job in self.jobs if job.arrival > now), default=None)
        if self.rules.server is None:
            later = now + 1 if now < self.last else None
        elif later is not None:  # wait for an arrival, with or without work
            yield self.cost(now, later, state, state), later, state, kept, ()
        for after in self.sets(now, state):
            active = tuple(i for i, (a, b) in enumerate(zip(state, after, strict=True)) if a != b)
            if active:
                end, remains = self.round(now, state, after, kept)
                after = self.dated(state, after, end)
                yield self.cost(now, end, state, after), end, after, remains, active
            elif self.rules.server is None and later is not None:
                yield self.cost(now, later, state, state), later, state, kept, ()

    def dated(self, before: State, after: State, end: int) -> State:
        """Return a state with the times when requests with a first token have to complete."""
        states = []
        for job, old, new in zip(self.jobs, before, after, strict=True):
            if job.due is not None and old.produced < new.produced == 1:
                in_time = end <= job.due.first
                due = min(job.due.end, end + job.due.rest) if in_time else -1
                new = new._replace(due=due)
            states.append(new)
        return tuple(states)

    def sets(self, now: int, state: State) -> Iterator[State]:
        """Yield the states after a round for which memory suffices, and not too many are active."""
        rules, blocks = self.rules, self.rules.memory // self.rules.block
        every: list[tuple[State, int, int]] = [((), 0, 0)]
        for i, old in enumerate(state):
            steps = [(new, self.private(i, new) * (new != old)) for new in self.steps(i, now, old)]
            every = [
                ((*chosen, new), private + own, active + (own > 0))
                for chosen, private, active in every
                for new, own in steps
                if private + own <= blocks and active + (own > 0) <= rules.most_active
            ]
        for after, _, _ in every:
            there = self.there(after, state) if self.shares else []
            if not there or in_use(there, rules.block, rules.unit) <= blocks:
                yield after

    def private(self, i: int, done: Progress) -> int:
        """Return the blocks of what a request holds alone."""
        tokens = max(done.prompt - self.rules.unit * len(self.jobs[i].path), 0) + done.produced
        return -(-tokens // self.rules.block)

    def steps(self, i: int, now: int, done: Progress) -> Iterator[Progress]:
        """Yield what may become of a request in a round."""
        job, has_begun = self.jobs[i], done[:2] != (0, 0)
        if "pauses" in self.rules.scope or not self.goes_on(job, done):
            yield done
        may_start = job.arrival <= now and (job.window is None or now in job.window)
        if (has_begun or may_start) and done.produced < job.output:
            yield Progress(job.prompt, done.produced + 1, done.due)
            if "chunks" in self.rules.scope:
                for prompt in range(done.prompt + 1, job.prompt + 1):
                    yield Progress(prompt, done.produced)

    def there(self, after: State, before: State) -> list[tuple[Row, int, int]]:
        """Return what is active, with its tokens."""
        rows = zip(self.jobs, after, before, strict=True)
        return [(job[:4], *new[:2]) for job, new, old in rows if new != old]

    def round(self, now: int, before: State, after: State, kept: Cache) -> tuple[int, Cache]:
        """Return when a round ends, and what is in the cache that nobody uses then."""
        rules = self.rules
        if rules.server is None:
            return now + 1, kept
        active = self.there(after, before)
        rows = [(job[:4], old) for job, old in zip(self.jobs, before, strict=True)]
        if rules.drops:
            pairs = zip(rows, self.jobs, strict=True)
            going = [
                (row, old.prompt) for (row, old), job in pairs if 0 < old.produced < job.output
            ]
            known = {name: rules.unit for name in kept if name is not None}
        else:
            going, known = [(row, old.prompt) for row, old in rows], {}
        known |= computed(going, rules.unit)
        now_known = computed(((row, prompt) for row, prompt, _ in active), rules.unit)
        prompts = sum(max(n - known.get(name, 0), 0) for name, n in now_known.items())
        produced = 0
        for job, old, new in zip(self.jobs, before, after, strict=True):
            shared = rules.unit * len(job.path)
            prompts += max(new.prompt, shared) - max(old.prompt, shared)
            produced += new.produced - old.produced
        tokens = in_use(active, 1, rules.unit)
        end = now + rules.server.round_ns(produced + prompts, prompts, tokens)
        return end, self.dropped(kept, active, tokens) if rules.drops else ()

    def dropped(self, kept: Cache, active: list[tuple[Row, int, int]], tokens: int) -> Cache:
        """Return the queue of unused blocks and tokens after a round.

        What is used leaves it, then its head while it does not fit; who completes adds its own
        tokens, then blocks from the last.
        """
        unit, used = self.rules.unit, {name for row, _, _ in active for name in row[3]}
        queue = [name for name in kept if name is None or name not in used]
        while (
            queue
            and tokens + sum(1 if name is None else unit for name in queue) > self.rules.memory
        ):
            del queue[0]
        left = list(active)
        for one in active:
            (_, prompt, output, path), _, produced = one
            if produced == output:
                left.remove(one)
                queue += [None] * (prompt - unit * len(path) + output)
                still = {name for row, _, _ in left for name in row[3]}
                queue += [name for name in reversed(path) if name not in still]
        return tuple(queue)

    def cost(self, now: int, end: int, before: State, after: State) -> int:
        """Return what a step adds: waiting, or -1 for what is in time."""
        if not self.counts_dues:
            pairs = zip(self.jobs, before, strict=True)
            there = [job for job, old in pairs if old.produced < job.output and job.arrival < end]
            return sum(job.weight * (end - max(now, job.arrival)) for job in there)
        gained = 0
        for job, old, new in zip(self.jobs, before, after, strict=True):
            if old.produced < job.output == new.produced and end <= new.due:
                gained += job.weight
        return -gained


@cache  # many tests ask for the same instances
def _alone(rules: Rules, jobs: tuple[Job, ...]) -> float:
    found = Worker(rules, jobs).best()
    return inf if found is None else found.cost


def _least(rules: Rules, jobs: Sequence[Job], workers: int) -> float:
    """Return the least value over all ways to deal requests to workers, which are all alike."""
    ordered = sorted(jobs, key=repr)
    return min(
        sum(_alone(rules, tuple(part)) for part in parts) for parts in dealt(ordered, workers)
    )


def dealt(places: Sequence[Place], workers: int) -> Iterator[list[list[Place]]]:
    """Yield every way to deal requests to at most so many workers, which are all alike."""
    if not places:
        yield []
        return
    *others, last = places
    for parts in dealt(others, workers):
        for place in range(len(parts)):
            yield [[*part, last] if i == place else part for i, part in enumerate(parts)]
        if len(parts) < workers:
            yield [*parts, [last]]


def job_of(row: Sequence[Any], **more: Any) -> Job:
    """Return what the simulator knows of a request."""
    return Job(row[0], row[1], row[2], path_of(row), **more)


def optimum(
    memory: int,
    requests: Sequence[Any],
    *,
    workers: int = 1,
    weights: Sequence[int] | None = None,
    **rules: Any,
) -> int:
    """Return the least total latency; ``rules`` are those of `Rules`."""
    weights = weights or [1] * len(requests)
    jobs = [job_of(row, weight=w) for row, w in zip(requests, weights, strict=True)]
    value = _least(Rules(memory, **rules), jobs, workers)
    assert value < inf, "a request that does not fit alone makes a problem infeasible"
    return int(value)


def most_in_time(
    memory: int,
    requests: Sequence[Any],
    allowed: Sequence[int | Due],
    *,
    workers: int = 1,
    **rules: Any,
) -> int:
    """Return how many can attain: times count from the arrival, an integer is of the last token."""
    pairs = zip(requests, allowed, strict=True)
    limits = [(row, Due(end=limit) if isinstance(limit, int) else limit) for row, limit in pairs]
    jobs = [
        job_of(row, due=Due(row[0] + due.first, due.rest, row[0] + due.end)) for row, due in limits
    ]
    return -int(_least(Rules(memory, **rules), jobs, workers))


def best_starts(
    memory: int, requests: Sequence[Triple], windows: Sequence[Sequence[int]] | None = None
) -> tuple[int, Starts] | None:
    """Return an optimum of runs in rounds with its starts, None if windows allow none."""
    jobs = [Job(*row) for row in requests]
    if windows is not None:
        jobs = [job._replace(window=tuple(w)) for job, w in zip(jobs, windows, strict=True)]
    node = found = Worker(Rules(memory), jobs).best()
    starts = [0] * len(jobs)
    while node is not None:  # backwards, so that the first active time stays
        for i in node.active:
            starts[i] = node.now - 1
        node = node.before
    return None if found is None else (found.cost, tuple(starts))


def completions(
    memory: int, rows: Sequence[Row], unit: int, server: Server, starts: Sequence[int],
    waits: Mapping[int, int],
) -> list[int]:  # fmt: skip
    """Return when runs complete on a server that drops; some rounds wait for a time."""
    worker = Worker(Rules(memory, server=server, unit=unit, drops=True), [Job(*r) for r in rows])
    state, kept, now, ends = (Progress(),) * len(rows), Cache(), 0, [0] * len(rows)
    for number in range(makespan(rows, starts)):
        now = waits.get(number, now)
        pairs = zip(starts, rows, state, strict=True)
        after = tuple(
            Progress(row[1], old.produced + 1) if k <= number < k + row[2] else old
            for k, row, old in pairs
        )
        if after != state:
            now, kept = worker.round(now, state, after, kept)
            for i, (old, new) in enumerate(zip(state, after, strict=True)):
                ends[i] = now if old.produced < new.produced == rows[i][2] else ends[i]
        state = after
    return ends


def every_problem(
    memory: int, n: int, arrivals: int = 0
) -> Iterator[tuple[int, tuple[Triple, ...]]]:
    """Yield every memory up to the largest with every set of up to n requests that fit alone."""
    for smaller in range(1, memory + 1):
        shapes = [
            (a, s, o)
            for a in range(arrivals + 1)
            for s in range(smaller)
            for o in range(1, smaller - s + 1)
        ]
        for count in range(1, n + 1):
            for requests in combinations_with_replacement(shapes, count):
                yield smaller, requests


def fleets_over_time(
    memory: int, requests: Sequence[Triple], allowed: Sequence[Due], length: int,
    misses: Sequence[int],
) -> Iterator[tuple[tuple[int, ...], int]]:  # fmt: skip
    """Yield machines by windows, and their time, of all schedules in which enough attain.

    In rounds; requests that miss are left out.  A machine is on in any of the windows, it serves
    what arrives or starts in one of these, and counts until the end of its work.
    """
    patterns = [on for on in product((0, 1), repeat=len(misses)) if any(on)]
    windows = [{*range(k * length + 1, (k + 1) * length + 1)} for k in range(len(misses))]
    for size in range(len(requests) + 1):
        for fleet in combinations_with_replacement(patterns, size):
            pairs = zip(requests, allowed, strict=True)
            for placed in product(*(_ways(row, due, length, fleet) for row, due in pairs)):
                ways = list(zip(requests, placed, strict=True))
                late = Counter(row[0] // length for row, way in ways if way is None)
                held = Counter[tuple[int, int]]()
                for (_, prompt, output), way in ways:
                    if way is not None:
                        held.update(
                            {(way[0], way[1] + g): prompt + g for g in range(1, output + 1)}
                        )
                enough = all(late[k] <= most for k, most in enumerate(misses))
                if enough and max(held.values(), default=0) <= memory:
                    on = {
                        (machine, t)
                        for machine, row in enumerate(fleet)
                        for is_on, window in zip(row, windows, strict=True)
                        for t in window
                        if is_on
                    }
                    counts = tuple(sum(row[k] for row in fleet) for k in range(len(misses)))
                    yield counts, len(on | held.keys())


def _ways(
    row: Triple, due: Due, length: int, fleet: Sequence[Sequence[int]]
) -> list[tuple[int, int] | None]:
    """Return the machines and starts with which a request attains, and None if it misses."""
    arrival, _, output = row
    last = min(due.first - 1, due.end - output)
    starts = range(arrival, arrival + int(last) + 1) if output - 1 <= due.rest else range(0)
    served: list[tuple[int, int] | None] = [None]
    for machine, on in enumerate(fleet):
        for start in starts:
            windows = {arrival // length, start // length} & {*range(len(on))}
            served += [(machine, start)] * any(on[k] for k in windows)
    return served

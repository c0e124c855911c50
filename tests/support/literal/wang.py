"""Sorted-F, Sorted-LP, LP-Swap and Sorted-F with A_min, transcribed from wang-2025.

The source is arXiv 2508.06133, algorithms 1, 5, 6 and 7; algorithm 5 borrows from algorithm 2
of chen-2025 (arXiv 2508.14544).  Slow and literal on purpose: one round at a time, nothing
cached, every memory sum added up from the definition.  Comments marked *settled* say how a gap
or a contradiction of the papers is closed.

A request started at round k is active at times k+1 .. k+o, holds s + (t - k) tokens at time t
and completes at k+o.  Wang's clock runs one round ahead of this one, and its check also
evaluates t' = t, where a request that has just completed would still count; both are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from literal.wang_phase1 import Item, Phase1, greedy_fill, local_swap


class Job(NamedTuple):
    """One request; the interval defaults to the true output."""

    arrival: int
    prompt: int
    output: int
    lower: int | None = None
    upper: int | None = None


class Run(NamedTuple):
    """What a scheduler did; starts and completions are those of each request's last try."""

    starts: list[int | None]
    completions: list[int | None]
    evictions: int
    outcome: str
    objective: int | None


class Active(NamedTuple):
    """A started request with the number of tokens it is believed to produce."""

    prompt: int
    start: int
    output: int


Plan = Callable[[int, list[Item]], list[Item]]
"""Orders the waiting requests at a round."""
Starts = Sequence[int | Fraction]
MeanStarts = Starts | Callable[[int, list[int]], Mapping[int, int | Fraction]]
"""Mean starts of all requests for good, or of the waiting positions at each plan's round."""


def look_ahead(active: Sequence[Active], memory: int) -> bool:
    """Whether memory stays within M at every completion: algorithm 1, line 19."""
    for finishing in active:
        time = finishing.start + finishing.output
        held = 0
        for other in active:
            if other.start + other.output >= time:
                held += other.prompt + time - other.start
        if held > memory:
            return False
    return True


def held_next(jobs: Sequence[Job], started: Mapping[int, int], now: int) -> int:
    """Return the tokens the requests active after ``now`` hold at time now + 1."""
    return sum(jobs[position].prompt + now + 1 - start for position, start in started.items())


def check_memory(jobs: Sequence[Job], started: Mapping[int, int], now: int, memory: int) -> None:
    """Raise unless what is active after ``now`` fits at time now + 1."""
    if held_next(jobs, started, now) > memory:
        msg = f"more than {memory} tokens at {now + 1}"
        raise AssertionError(msg)


def check_jobs(jobs: Sequence[Job], memory: int) -> None:
    """Raise unless every request can be served alone and its lower bound is one."""
    for job in jobs:
        lower = job.output if job.lower is None else job.lower
        if job.arrival < 0 or job.prompt < 0 or job.output < 1 or lower > job.output:
            msg = f"not a request: {job}"
            raise ValueError(msg)
        if job.prompt + job.output > memory:
            msg = f"does not fit alone: {job}"
            raise ValueError(msg)


def finish(jobs: Sequence[Job], starts: list[int | None], evictions: int) -> Run:
    """Add up the latencies of a completed run."""
    completions: list[int | None] = []
    objective = 0
    for job, start in zip(jobs, starts, strict=True):
        assert start is not None
        completions.append(start + job.output)
        objective += start + job.output - job.arrival
    return Run(starts, completions, evictions, "completed", objective)


def batches(waiting: list[Item], memory: int, phase1: Phase1) -> list[Item]:
    """Return the ordered list of algorithm 1, lines 2-9.

    *Settled*: requests of a batch with equal outputs go by prompt, arrival, position.  Phase 1
    sees the whole memory, whatever is running.
    """
    left = list(waiting)
    order: list[Item] = []
    while left:
        batch = sorted(phase1(left, memory))
        order += batch
        left = [item for item in left if item not in batch]
    return order


def execute(jobs: Sequence[Job], memory: int, plan: Plan) -> Run:
    """Run phase 2 (algorithm 1, lines 10-28) with true outputs.

    *Settled*: the paper knows one backlog at time 0.  With arrivals, a plan is made anew over
    everything that waits, at each round at which something arrives and at no other.  A batch
    that is half admitted then has no privilege: its rest is planned like all else, its active
    part stays.  A round is: completions, arrivals, plan, admission.
    """
    check_jobs(jobs, memory)
    starts: list[int | None] = [None] * len(jobs)
    started: dict[int, int] = {}
    order: list[int] = []
    now = 0
    while None in starts:
        for position in list(started):
            if started[position] + jobs[position].output <= now:
                del started[position]
        if any(job.arrival == now for job in jobs):
            waiting = [
                Item(job.output, job.prompt, job.arrival, position)
                for position, job in enumerate(jobs)
                if job.arrival <= now and starts[position] is None
            ]
            order = [item.position for item in plan(now, waiting)]
        for position in list(order):
            tentative = {**started, position: now}
            active = [Active(jobs[p].prompt, k, jobs[p].output) for p, k in tentative.items()]
            if not look_ahead(active, memory):
                break
            started[position] = now
            starts[position] = now
            order.remove(position)
        check_memory(jobs, started, now, memory)
        now += 1
    return finish(jobs, starts, 0)


def sorted_f(jobs: Sequence[Job], memory: int, phase1: Phase1) -> Run:
    """Return the run of algorithm 1, Sorted-F."""
    return execute(jobs, memory, lambda _, waiting: batches(waiting, memory, phase1))


def lp_order(waiting: Sequence[Item], means: Mapping[int, int | Fraction]) -> list[Item]:
    """Sort by the mean start y of the relaxed program: algorithm 6, line 5.

    *Settled*: ties in y fall to prompt, arrival, position; not to the output.
    """
    return sorted(waiting, key=lambda item: (means[item.position], item[1:]))


def means_at(
    mean_starts: MeanStarts, now: int, waiting: list[Item]
) -> Mapping[int, int | Fraction]:
    """Return the mean starts in force when the waiting requests are planned."""
    positions = [item.position for item in waiting]
    if callable(mean_starts):
        return mean_starts(now, positions)
    return {position: mean_starts[position] for position in positions}


def sorted_lp(jobs: Sequence[Job], memory: int, mean_starts: MeanStarts) -> Run:
    """Return the run of algorithm 6, Sorted-LP.

    *Settled*: with mean starts given once for all requests (hindsight), a request that has not
    arrived does not hold up those behind it.
    """

    def plan(now: int, waiting: list[Item]) -> list[Item]:
        return lp_order(waiting, means_at(mean_starts, now, waiting))

    return execute(jobs, memory, plan)


def lp_swap(jobs: Sequence[Job], memory: int, mean_starts: MeanStarts) -> Run:
    """Return the run of algorithm 7, LP-Swap.

    *Settled*: the mean starts are those of one plan; they are not solved for again while its
    batches are taken out (line 1 stands before the loop).
    """

    def plan(now: int, waiting: list[Item]) -> list[Item]:
        means = means_at(mean_starts, now, waiting)

        def swap(left: Sequence[Item], size: int) -> list[Item]:
            order = lp_order(left, means)
            return local_swap(greedy_fill(order, size), order, size)

        return batches(waiting, memory, swap)

    return execute(jobs, memory, plan)


def sorted_f_a_min(jobs: Sequence[Job], memory: int, phase1: Phase1, rank: Sequence[int]) -> Run:
    """Return the run of algorithm 5, Sorted-F with A_min; ``rank`` breaks eviction ties.

    *Settled*: a round is completions, raising, eviction, plan, admission: printed, admission
    comes before eviction, but A_min evicts first.  The rest is said where it happens.
    """
    check_jobs(jobs, memory)
    starts: list[int | None] = [None] * len(jobs)
    done: set[int] = set()
    started: dict[int, int] = {}
    # A belief below one token would make F(X) nought; every request has at least one.
    known = [max(1, job.output if job.lower is None else job.lower) for job in jobs]
    order: list[int] = []
    evictions = 0
    now = 0
    while len(done) < len(jobs):
        for position in list(started):
            if started[position] + jobs[position].output == now:
                done.add(position)
                del started[position]
        # Lines 13-15: raised every round, also for those that nothing evicts.
        for position, start in started.items():
            known[position] = max(known[position], now - start)
        # Lines 23-27: what is projected is the true memory at now + 1.
        while held_next(jobs, started, now) > memory:
            victim = min(started, key=lambda position: (known[position], rank[position]))
            del started[victim]
            starts[victim] = None
            evictions += 1
        # The plan is made after the eviction, over the evicted too, with the raised beliefs.
        # An eviction alone makes no plan.  What is active keeps its place, before the new plan,
        # and what completed stays in the list without effect.
        if any(job.arrival == now for job in jobs):
            waiting = [
                Item(known[position], job.prompt, job.arrival, position)
                for position, job in enumerate(jobs)
                if job.arrival <= now and position not in done and position not in started
            ]
            planned = [item.position for item in batches(waiting, memory, phase1)]
            order = [position for position in order if position in started] + planned
        # Lines 18-20: the evicted wait again at once and may start again in this same round.
        for position in order:
            if position in done or position in started:
                continue
            tentative = {**started, position: now}
            # An active request that is not done produces at least one more token.
            active = [
                Active(jobs[p].prompt, start, max(known[p], now - start + 1))
                for p, start in tentative.items()
            ]
            if not look_ahead(active, memory):
                break
            started[position] = now
            starts[position] = now
        check_memory(jobs, started, now, memory)
        now += 1
    return finish(jobs, starts, evictions)

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

from literal.common import Job, Run, Worker, beliefs_or_truth, prefix
from literal.wang_phase1 import Item, Phase1, greedy_fill, local_swap

Plan = Callable[[int, list[Item]], list[Item]]
"""Orders the waiting requests at a round."""
Starts = Sequence[int | Fraction]
MeanStarts = Starts | Callable[[int, list[int]], Mapping[int, int | Fraction]]
"""Mean starts of all requests for good, or of the waiting positions at each plan's round."""


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


def execute(
    jobs: Sequence[Job], memory: int, plan: Plan, believed: Sequence[int] | None = None
) -> Run:
    """Run phase 2 (algorithm 1, lines 10-28); with beliefs an overflow clears everything.

    *Settled*: the paper knows one backlog at time 0.  With arrivals, a plan is made anew over
    everything that waits, at each round at which something arrives and at no other.  A batch
    that is half admitted then has no privilege: its rest is planned like all else, its active
    part stays.  A round is: completions, arrivals, plan, admission.
    """
    beliefs, order = beliefs_or_truth(jobs, believed), list[int]()
    worker = Worker(jobs, memory)
    while worker.open_round():
        if worker.memory_next() > memory:
            worker.clear()
        order = planned(worker, beliefs, order, plan)
        if worker.repeats(tuple(order)):
            return worker.report("livelock")
        admit(worker, beliefs, order)
        worker.close_round()
    return worker.report("completed")


def planned(worker: Worker, beliefs: Sequence[int], order: list[int], plan: Plan) -> list[int]:
    """Return the order in force: where something arrives, active ones before the new plan."""
    if all(job.arrival != worker.now for job in worker.jobs):
        return order
    waiting = [
        Item(beliefs[at], worker.jobs[at].prompt, worker.jobs[at].arrival, at)
        for at in sorted(worker.waiting)
    ]
    new = [item.position for item in plan(worker.now, waiting)]
    return [position for position in order if position in worker.active] + new


def admit(worker: Worker, beliefs: Sequence[int], order: Sequence[int]) -> None:
    """Start what waits, in its order, as long as it fits.

    Lines 18-20 of algorithm 5: the evicted wait again at once and may start in this same round.
    """
    waiting = [position for position in order if position in worker.waiting]
    for position in prefix(worker, beliefs, waiting, Fraction(worker.memory)):
        worker.start(position)


def sorted_f(
    jobs: Sequence[Job], memory: int, phase1: Phase1, believed: Sequence[int] | None = None
) -> Run:
    """Return the run of algorithm 1, Sorted-F."""
    return execute(jobs, memory, lambda _, waiting: batches(waiting, memory, phase1), believed)


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
    # A belief below one token would make F(X) nought; every request has at least one.
    known = [max(1, job.interval().lower) for job in jobs]
    order: list[int] = []
    worker = Worker(jobs, memory)
    while worker.open_round():
        # Lines 13-15: raised every round, also for those that nothing evicts.
        for position in worker.active:
            known[position] = max(known[position], worker.tokens(position))
        # Lines 23-27: what is projected is the true memory at now + 1.
        while worker.memory_next() > memory:
            worker.evict(min(worker.active, key=lambda at: (known[at], rank[at])))
        # The plan is made after the eviction, over the evicted too, with the raised beliefs.
        # An eviction alone makes no plan.
        order = planned(worker, known, order, lambda _, waiting: batches(waiting, memory, phase1))
        admit(worker, known, order)
        worker.close_round()
    return worker.report("completed")

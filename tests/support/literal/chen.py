"""Policies of Chen, Ye and Zhou (2025), "Adaptively Robust LLM Inference Optimization".

Wherever the paper draws at random, the choice is a parameter: ``rank`` is a permutation drawn
once, and the smaller rank goes first, among requests to admit and among requests to evict.  With
no rank the position takes its place.  The interval policies read the intervals of the jobs and
refuse beliefs.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from literal.common import Job, Run, Worker, beliefs_or_truth, by, fits, list_schedule, prefix


def rank_or_position(jobs: Sequence[Job], rank: Sequence[int] | None) -> list[int]:
    if rank is None:
        return list(range(len(jobs)))
    if sorted(rank) != list(range(len(jobs))):
        raise ValueError("rank is not a permutation")
    return list(rank)


def refuse(believed: Sequence[int] | None) -> None:
    if believed is not None:
        raise ValueError("an interval policy reads the intervals of the requests")


def a_max(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    rank: Sequence[int] | None = None,
) -> Run:
    """Algorithm 1, A_max: everything is believed to be as long as its upper bound.

    The paper has one interval and one prompt length, samples the largest feasible number of
    waiting requests at random, and so is a prefix of a random order.  With unequal bounds the
    order is ascending upper bound, then rank, and a prefix of it.
    """
    refuse(believed)
    ranks = rank_or_position(jobs, rank)
    uppers = [job.interval().upper for job in jobs]
    keys = [*zip(uppers, ranks, strict=True)]
    return list_schedule(jobs, memory, uppers, keys.__getitem__)


def a_min(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    rank: Sequence[int] | None = None,
) -> Run:
    """Algorithms 2 and 5, A_min: a learned lower bound for each request, smallest evicted first.

    ``learned`` is the paper's o-tilde, the lower bound of the request's own interval at first
    (Algorithm 5; Algorithm 2 when all are equal).  It becomes max(o-tilde, tokens generated), and
    only on eviction.  What is evicted joins the waiting requests of the same round.
    """
    refuse(believed)
    ranks = rank_or_position(jobs, rank)
    learned = [job.interval().lower for job in jobs]

    def key(position: int) -> tuple[int, int]:
        return learned[position], ranks[position]

    worker = Worker(jobs, memory)
    while worker.open_round():
        if worker.repeats(tuple(learned)):
            return worker.report("livelock")
        if worker.memory_next() > memory:
            for position in sorted(worker.active, key=key):
                if worker.memory_next() <= memory:
                    break
                learned[position] = max(learned[position], worker.tokens(position))
                worker.evict(position)
        order = sorted(worker.waiting, key=key)
        for position in prefix(worker, learned, order, Fraction(memory)):
            worker.start(position)
        worker.close_round()
    return worker.report("completed")


def h_sf(jobs: Sequence[Job], memory: int, believed: Sequence[int] | None = None) -> Run:
    """Algorithm 3, H-SF: the largest feasible set of waiting requests, by trying every set.

    What is active is forced in.  The algorithm refers to equation 1; with "for all t' >= t" that
    can only be equation 3.  Among largest sets the least sum of outputs wins.  Among those, with
    the waiting requests sorted by (output, prompt, arrival, position), the set whose ascending
    list of places in that order is lexicographically smallest.

    With beliefs, overflow evicts everything active, as for MC-SF.
    """
    beliefs = beliefs_or_truth(jobs, believed)
    worker = Worker(jobs, memory)
    while worker.open_round():
        if worker.repeats():
            return worker.report("livelock")
        if worker.memory_next() > memory:
            worker.clear()
        for position in largest_set(worker, beliefs, sorted(worker.waiting, key=by(beliefs, jobs))):
            worker.start(position)
        worker.close_round()
    return worker.report("completed")


def largest_set(worker: Worker, beliefs: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return the largest feasible subset of ``order``; see ``h_sf`` for the choice among them."""
    for size in range(len(order), 0, -1):
        best: list[int] | None = None
        # combinations come in lexicographic order of places, so the first of equal sums stays
        for places in combinations(range(len(order)), size):
            candidate = [order[place] for place in places]
            if fits(worker, beliefs, candidate, Fraction(worker.memory)) and (
                best is None
                or sum(beliefs[position] for position in candidate)
                < sum(beliefs[position] for position in best)
            ):
                best = candidate
        if best is not None:
            return best
    return []


def a_random(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    rank: Sequence[int] | None = None,
    override: int | None = None,
) -> Run:
    """Algorithm 4, auxiliary A_random: true outputs, one permutation, prefix.

    ``override`` replaces the memory altogether, for the coupling with alpha M of Definitions EC.3
    to EC.5 (rounded down: tokens are whole).  A request that does not fit it starves.
    """
    beliefs = beliefs_or_truth(jobs, believed)
    ranks = rank_or_position(jobs, rank)
    memory = memory if override is None else override
    return list_schedule(jobs, memory, beliefs, ranks.__getitem__)


def a_l(jobs: Sequence[Job], memory: int, believed: Sequence[int] | None = None) -> Run:
    """Algorithm 6, A_l (promote-l): a request unfinished after l tokens goes to the end, once.

    ``queue`` has every request that has arrived and is not completed, in its place; those that
    are active keep theirs.  Requests join it at its end in the round in which they arrive, by
    position; so what arrives after a removal stands behind what was removed.  Within one round
    arrivals come first, then the removed, in the order of the places they had.  A removed
    request is believed to be as long as its upper bound and may start again in the same round.

    As printed a request is removed with *more* than l tokens, again and again; here with l
    tokens (one that is unfinished then must be longer) and once.  A removal is an eviction.

    An output above its upper bound can make memory overflow: then everything active is evicted
    and keeps its place.
    """
    refuse(believed)
    belief = [job.interval().lower for job in jobs]
    removed = [False for _ in jobs]
    queue: list[int] = []
    worker = Worker(jobs, memory)
    while worker.open_round():
        for position in sorted(worker.waiting):
            if position not in queue:
                queue.append(position)
        queue = [position for position in queue if worker.completions[position] is None]
        if worker.repeats((tuple(queue), tuple(removed))):
            return worker.report("livelock")
        for position in list(queue):
            if (
                position in worker.active
                and not removed[position]
                and worker.tokens(position) >= belief[position]
            ):
                worker.evict(position)
                removed[position] = True
                belief[position] = jobs[position].interval().upper
                queue.remove(position)
                queue.append(position)
        if worker.memory_next() > memory:
            worker.clear()
        order = [position for position in queue if position in worker.waiting]
        for position in prefix(worker, belief, order, Fraction(memory)):
            worker.start(position)
        worker.close_round()
    return worker.report("completed")


def prefers_a_l(jobs: Sequence[Job]) -> bool:
    """Return whether alpha = l / u lies below (3 - sqrt 5) / 2, in integers.

    Section 5.1: the threshold is the root of alpha^2 - 3 alpha + 1 in (0, 1), hence alpha is
    below it iff l^2 - 3 l u + u^2 > 0 (and l < u); it is irrational, so equality is impossible.
    With unequal intervals alpha is least lower bound over greatest upper bound, as in
    Corollary 2.
    """
    if not jobs:
        return False
    lower = min(job.interval().lower for job in jobs)
    upper = max(job.interval().upper for job in jobs)
    return lower < upper and lower * lower - 3 * lower * upper + upper * upper > 0


def a_switch(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    rank: Sequence[int] | None = None,
) -> Run:
    """Section 5.1, "practical takeaway": A_l for a small alpha = l / u, A_min otherwise.

    Chosen once, from all requests of the instance, before the first round.
    """
    if prefers_a_l(jobs):
        return a_l(jobs, memory, believed)
    return a_min(jobs, memory, believed, rank=rank)

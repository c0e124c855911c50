"""Policies of Jaillet, Jiang, Mellou, Molinaro, Podimata and Zhou (2025), and close relatives.

"v2" is the second version of the paper, "v1" the first.  A request is known by its position in
the list of jobs.
"""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

from literal.common import Job, Run, Worker, beliefs_or_truth, by, exact, list_schedule


def fcfs(jobs: Sequence[Job], memory: int, believed: Sequence[int] | None = None) -> Run:
    """v2 Algorithm 2 (MC-Benchmark): by (arrival, position), prefix, look-ahead.

    The algorithm as printed reads the true outputs; with beliefs it reads those, and overflow
    evicts everything active.
    """
    beliefs = beliefs_or_truth(jobs, believed)

    def key(position: int) -> tuple[int, int]:
        return jobs[position].arrival, position

    return list_schedule(jobs, memory, beliefs, key)


def mc_sf(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    alpha: Fraction | float | str = 0,
) -> Run:
    """v2 Algorithm 1 (MC-SF): by believed output, prefix, look-ahead; alpha of section 5.2.2.

    ``alpha`` replaces M by (1 - alpha) M in the feasibility check, for what is active too, and
    nowhere else: overflow is passing M itself ("the physical limit").  It does so whether or not
    beliefs are given.  The order is by the belief at first, never by a belief that was outlived.
    """
    beliefs = beliefs_or_truth(jobs, believed)
    return list_schedule(jobs, memory, beliefs, by(beliefs, jobs), (1 - exact(alpha)) * memory)


def mc_sf_total(jobs: Sequence[Job], memory: int, believed: Sequence[int] | None = None) -> Run:
    """MC-SF_2 of Theorem 8.2 of Wang, Ye and Zhou (2025): by prompt + believed output.

    Ties are broken by (prompt, arrival, position), so among equal sums the longer output goes
    first.
    """
    beliefs = beliefs_or_truth(jobs, believed)
    peaks = [job.prompt + belief for job, belief in zip(jobs, beliefs, strict=True)]
    return list_schedule(jobs, memory, beliefs, by(peaks, jobs))


def svf(jobs: Sequence[Job], memory: int, believed: Sequence[int] | None = None) -> Run:
    """Smallest volume first (arXiv 2606.22327): by prompt * o + o (o + 1) / 2, prefix."""
    beliefs = beliefs_or_truth(jobs, believed)
    pairs = zip(jobs, beliefs, strict=True)
    volumes = [sum(job.prompt + token for token in range(1, o + 1)) for job, o in pairs]
    return list_schedule(jobs, memory, beliefs, by(volumes, jobs))


def svf_one_bit(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    threshold: int,
    short: Fraction | float | str,
    long: Fraction | float | str,
) -> Run:
    """1-bit SVF (arXiv 2606.22327): by volume with a proxy length for each of two classes."""
    beliefs = beliefs_or_truth(jobs, believed)
    lengths = [exact(short if belief <= threshold else long) for belief in beliefs]
    pairs = zip(jobs, lengths, strict=True)
    volumes = [job.prompt * o + (o * o + o) / 2 for job, o in pairs]
    return list_schedule(jobs, memory, beliefs, by(volumes, jobs))


def by_arrival(worker: Worker, positions: Sequence[int]) -> list[int]:
    jobs = worker.timed or worker.jobs  # what arrives during a round arrives with the next one
    return sorted(positions, key=lambda position: (jobs[position].arrival, position))


def admit_below(worker: Worker, threshold: Fraction) -> None:
    """Admit by (arrival, position) while memory at the next time stays within the threshold.

    The check looks one time ahead, not at the moment of admission: what is active counts with
    prompt + g + 1, a new request with prompt + 1.  The first that does not fit ends the batch.
    """
    held = worker.memory_next()
    for position in by_arrival(worker, worker.waiting):
        if held + worker.jobs[position].prompt + 1 > threshold:
            break
        held += worker.jobs[position].prompt + 1
        worker.start(position)


def alpha_protect(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    alpha: Fraction | float | str,
) -> Run:
    """v2 section 5.2, alpha-protection greedy: overflow at the next time clears everything.

    Clearing comes before admission in the same round, and what was cleared may start again in
    that round.  A request with prompt + 1 > (1 - alpha) M starves, with all that stand behind it.
    """
    del believed  # the rule never reads an output
    threshold = (1 - exact(alpha)) * memory
    worker = Worker(jobs, memory)
    while worker.open_round():
        if worker.repeats():
            return worker.report("livelock")
        if worker.memory_next() > memory:
            worker.clear()
        admit_below(worker, threshold)
        worker.close_round()
    return worker.report("completed")


def coins(beta: float, seed: int) -> Callable[[], bool]:
    """Return a coin that shows True with probability beta: ``random()`` of the seed < beta."""
    generator = random.Random(seed)
    return lambda: generator.random() < beta


def alpha_beta(
    jobs: Sequence[Job],
    memory: int,
    believed: Sequence[int] | None = None,
    *,
    alpha: Fraction | float | str,
    coin: Callable[[], bool],
    round_limit: int = 10_000,
) -> Run:
    """v2 section 5.2, alpha-protection beta-clearing: each active request evicted by a coin.

    Random numbers.  Coins are thrown only in a round in which memory at the next time would pass
    M.  One pass then throws exactly one coin for each request that is active when the pass
    begins, in ascending (arrival, position), also after enough has been evicted; True evicts.
    While it still does not fit, another pass goes over what is left active.  Nothing else
    consumes a coin.

    ``round_limit``: still unfinished at round (last arrival + round_limit) is a livelock, and so
    is a round with more than round_limit passes (a coin that never shows True).
    """
    del believed  # the rule never reads an output
    threshold = (1 - exact(alpha)) * memory
    last_arrival = max((job.arrival for job in jobs), default=0)
    worker = Worker(jobs, memory)
    while worker.open_round():
        if worker.now >= last_arrival + round_limit:
            return worker.report("livelock")
        passes = 0
        while worker.memory_next() > memory:
            if passes == round_limit:
                return worker.report("livelock")
            for position in by_arrival(worker, list(worker.active)):
                if coin():
                    worker.evict(position)
            passes += 1
        admit_below(worker, threshold)
        worker.close_round()
    return worker.report("completed")

"""Phase 1 of Sorted-F: the next batch of waiting requests.

Phase 1 of Sorted-F (wang-2025 Algorithm 1, lines 2-9) repeatedly takes the batch X of waiting
requests with the least ``F(X) = sum(o) / |X|^2`` among those that fit into memory.  A batch of n
requests that runs for o rounds delays every later request by o, so batches are best sorted by
o / n; F has the mean output instead of o.  The solvers are:

==========  =======================================================================
exact       the true optimum, by a dynamic program over descending outputs
dp          the paper's dynamic program: the optimum among batches whose peaks fit
swap        greedy fill by peak, then local swaps
quantile    a core below sampled quantiles, filled up by ratio
auto        by size, as section 5.4 of wang-2025 advises
==========  =======================================================================

*Best batches* (Algorithm 1, lines 4-5).  Take the members of a batch by descending output.  When c
of them with prompts of S tokens in all run longer, a request (s, o) completes while all of them are
still active, and then ``S + s + (c + 1) o`` tokens are held.  Whether it may join therefore depends
on c and S alone: a dynamic program over the candidates finds the best batch
(`kvopt.simulate.policies.startable_sets`).

The paper's own program (section 5.1, Algorithm 2) requires that all peaks fit together.  That
misses batches whose short members leave before the long ones have grown: with M = 2 it takes
(s, o) = (0, 1) alone, F = 1, though (0, 2) can start with it, F = 3/4.  Requests of equal output
complete together, with all peaks at one time: for these the two are the same.  As printed it keeps
the smallest number of members among equal F, in contrast to Algorithm 1: here the largest wins.

*Local swap search* (wang-2025 section 5.2, Algorithm 3).  Fill a batch greedily by peak, then
exchange a member for an outsider as long as that lowers F.  The size stays, so F falls exactly when
the outsider's output is smaller.  The paper scans pairs, members first, makes the first exchange
that helps and begins again, with up to n^2 comparisons for an exchange.  The same pair is found
with one pass: among outsiders sorted by peak, the least output up to a peak tells each member
whether any small enough is shorter.

*Quantile greedy selection* (wang-2025 section 5.3, Algorithm 4).  Half of the waiting requests are
sampled.  A request within the sample's 0.3 quantiles of peak and of output forms the core,
shortest first; the rest fills up by ascending o / (s + o), that is, long prompts with short answers
first.  Both passes skip requests that do not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from random import Random
from typing import Literal, NamedTuple

import numpy as np

from kvopt.errors import TooLarge, unknown_name
from kvopt.problem.arrays import Flags, Integers
from kvopt.simulate.policies.startable_sets import FEW_ENTRIES, Together, undominated

Phase1 = Literal["auto", "exact", "dp", "swap", "quantile"]

MAX_WAITING = 1_000
"""Up to so many candidates the best batch usually takes seconds."""
MAX_EXACT = 100
"""Up to so many candidates phase 1 is solved exactly."""
MIN_QUANTILE = 1000
"""From so many candidates on it is greedy."""
_NEVER = 2**62
"""More than any output."""


class Candidate(NamedTuple):
    """A waiting request in phase 1; candidates compare in tie order.

    Parameters
    ----------
    output
        The believed output.
    prompt, arrival, position
        As in the instance.
    """

    output: int
    prompt: int
    arrival: int
    position: int

    @property
    def peak(self) -> int:
        """Most tokens that it holds."""
        return self.prompt + self.output


Solver = Callable[[Sequence[Candidate], int], list[Candidate]]
"""Chooses one batch from candidates and a memory; takes and returns them in tie order."""


def columns(candidates: Sequence[Candidate]) -> tuple[Integers, Integers]:
    """Return the prompts and the outputs."""
    prompts, outputs = [c.prompt for c in candidates], [c.output for c in candidates]
    return np.array(prompts, dtype=np.int64), np.array(outputs, dtype=np.int64)


def batches(waiting: Sequence[Candidate], memory: int, solve: Solver) -> Iterator[list[Candidate]]:
    """Yield batch after batch until no request remains, each sorted by output.

    Batches are found lazily: with arrivals most plans are dropped before their second batch.
    """
    left = sorted(waiting)
    while left:
        batch = solve(left, memory)
        yield batch
        chosen = {candidate.position for candidate in batch}
        left = [candidate for candidate in left if candidate.position not in chosen]


def best_count(sums: Sequence[int | None]) -> int:
    """Return the count with the least ``sums[count] / count^2``, the larger one of equals.

    Parameters
    ----------
    sums
        Least sum of outputs by count, None without a batch.  Count 0 is no batch.
    """
    best, best_sum = 0, 0
    for count, total in enumerate(sums):
        if count and total is not None and (not best or total * best**2 <= best_sum * count**2):
            best, best_sum = count, total
    return best


def starts_together(batch: Sequence[Candidate], memory: int) -> bool:
    """Whether a whole batch may start at once, although short requests leave early.

    At the completion of a request, those with at least its output hold their prompts and as
    many tokens each as it has produced (Algorithm 1, line 5).
    """
    prompts = 0
    for count, candidate in enumerate(sorted(batch, reverse=True), start=1):
        prompts += candidate.prompt
        if prompts + count * candidate.output > memory:
            return False
    return True


def peaks_fit(batch: Sequence[Candidate], memory: int) -> bool:
    """Whether even the sum of all peaks fits: sufficient to start together, not necessary."""
    return sum(candidate.peak for candidate in batch) <= memory


def fill(chosen: Flags, places: Integers, peaks: Integers, memory: int) -> int:
    """Choose requests that fit, in the order of the places; return the remaining memory."""
    taken = []
    for place, peak in zip(places.tolist(), peaks[places].tolist(), strict=True):
        if peak <= memory:
            taken.append(place)
            memory -= peak
    chosen[taken] = True
    return memory


# ---- best batches -----------------------------------------------------------------------


def best_batch(
    waiting: Sequence[Candidate], memory: int, *, grows: bool, few_entries: int = FEW_ENTRIES
) -> list[Candidate]:
    """Return the batch of least F among those that fit.

    Among equal F the larger batch, then the one that is lexicographically first in tie order.

    Parameters
    ----------
    waiting, memory
        Candidates in tie order, and tokens.
    grows
        Whether a batch fits if it may start together; else all peaks have to fit together.
    few_entries
        As of `Together`.
    """
    prompts, outputs = columns(waiting)
    fits, sizes = (starts_together, prompts) if grows else (peaks_fit, prompts + outputs)
    # By the first completion n members hold n times the least output and n prompts, or n peaks.
    lowest = np.sort(sizes).cumsum() + grows * outputs[0] * np.arange(1, len(waiting) + 1)
    limit = int(lowest.searchsorted(memory, "right"))  # no batch has more members
    easy = waiting[: best_count([0, *accumulate(outputs[:limit].tolist())])]
    if fits(easy, memory):
        return list(easy)  # the shortest of each size: no batch is better, fitting or not
    if grows and len(waiting) > MAX_WAITING:
        count = f"{len(waiting):,}"
        raise TooLarge(f"phase1=exact takes {MAX_WAITING} waiting requests, here are {count}")
    places = undominated(sizes, limit)
    together = Together(
        sizes[places], outputs[places], memory, limit, grows=grows, few_entries=few_entries
    )
    best_sets = together.best(1)
    best = best_count(
        [best_sets[count][0] if count in best_sets else None for count in range(limit + 1)]
    )
    return [waiting[place] for place in places[best_sets[best][1]].tolist()]


exact: Solver = partial(best_batch, grows=True)
"""The best of all batches that may start together."""
dp: Solver = partial(best_batch, grows=False)
"""The best of the batches whose peaks fit together."""


# ---- greedy batches ---------------------------------------------------------------------


def swap(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Return the batch of the greedy fill by peak after local swaps, in the tie order given.

    Peaks are scanned in ascending order, ties by prompt, arrival, position.
    """
    prompts, outputs = columns(waiting)
    order = np.lexsort((prompts, outputs + prompts))  # stable; equal ones have equal outputs
    return swapped([waiting[place] for place in order.tolist()], memory)


def swapped(order: Sequence[Candidate], memory: int) -> list[Candidate]:
    """Fill greedily in the given order and swap while that helps, scanning in that order.

    All batches satisfy the sufficient condition that all peaks fit together.
    """
    prompts, outputs = columns(order)
    peaks, chosen = outputs + prompts, np.zeros(len(order), dtype=np.bool_)
    slack = fill(chosen, np.arange(len(order)), peaks, memory)
    _exchange(peaks, outputs, chosen, slack)
    return sorted(order[place] for place in np.flatnonzero(chosen).tolist())


def _exchange(peaks: Integers, outputs: Integers, chosen: Flags, slack: int) -> None:
    """Exchange the first member that a shorter one can replace by the first that can.

    ``chosen`` is changed as long as there is such a pair.  Places are scanned in ascending order.
    """
    by_size = peaks.argsort(kind="stable")
    sizes, rank = peaks[by_size], by_size.argsort()
    outside = np.where(chosen[by_size], _NEVER, outputs[by_size])
    while True:
        # Each member fits in its own place, so at least one size is within.
        members = np.flatnonzero(chosen)
        within = sizes.searchsorted(peaks[members] + slack, "right")
        gains = np.minimum.accumulate(outside)[within - 1] < outputs[members]
        if not gains.any():
            return
        first = gains.argmax()
        out, fitting = members[first], within[first]
        into = by_size[:fitting][outside[:fitting] < outputs[out]].min()
        chosen[out], chosen[into] = False, True
        outside[rank[out]], outside[rank[into]] = outputs[out], _NEVER
        slack += int(peaks[out] - peaks[into])


def quantile(waiting: Sequence[Candidate], memory: int, seed: int = 0) -> list[Candidate]:
    """Return a core of small requests, filled up by ratio; candidates come in tie order.

    The sample is drawn afresh for every batch, from the same seed: a batch depends on nothing
    but the candidates.
    """
    outputs, prompts, arrivals, positions = np.array(waiting, dtype=np.int64).T
    peaks = outputs + prompts
    sample = Random(seed).sample(range(len(waiting)), max(1, len(waiting) // 2))
    small = peaks <= _lower_quantile(peaks[sample])
    small &= outputs <= _lower_quantile(outputs[sample])
    chosen = np.zeros(len(waiting), dtype=np.bool_)
    memory = fill(chosen, np.flatnonzero(small), peaks, memory)
    rest = np.flatnonzero(~chosen)
    # Ratios over peaks up to P differ by at least 1 / P^2: floats distinguish them up to P = 2^26.
    keys = np.stack((positions, arrivals, prompts, outputs / peaks))
    fill(chosen, rest[np.lexsort(keys[:, rest])], peaks, memory)
    return [waiting[place] for place in np.flatnonzero(chosen).tolist()]


def _lower_quantile(values: Integers) -> int:
    """Return the 0.3 quantile, the lower one of the two values around it."""
    rank = 3 * (len(values) - 1) // 10
    return int(np.partition(values, rank)[rank])


# ---- solvers by name --------------------------------------------------------------------


class Auto:
    """Exact up to 100 candidates, greedy from 1,000 on, local swaps in between.

    The paper advises the swap for up to 500 and gives no advice for 501 to 999.  Here the swap is
    used, since section 7 of the paper finds it better even at 2,000.  The number of remaining
    candidates counts, so a plan may begin with one solver and end with another.  The swap
    replaces an exact program that would be too large.

    Parameters
    ----------
    seed
        Seed of the samples of the quantile greedy.

    Attributes
    ----------
    used
        Number of batches of each solver.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.used: Counter[str] = Counter()

    def __call__(self, waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
        """Return one batch."""
        name: Phase1 = "quantile" if len(waiting) >= MIN_QUANTILE else "swap"
        if len(waiting) <= MAX_EXACT:
            name = "exact"
        try:
            batch = solver(name, self.seed)(waiting, memory)
        except TooLarge:
            name, batch = "swap", swap(waiting, memory)
        self.used[name] += 1
        return batch


def solver(name: Phase1, seed: int = 0) -> Solver:
    """Return a solver by name; the seed is for the samples of the quantile greedy."""
    solvers: dict[Phase1, Solver] = {
        "auto": Auto(seed),
        "exact": exact,
        "dp": dp,
        "swap": swap,
        "quantile": partial(quantile, seed=seed),
    }
    if name not in solvers:
        raise unknown_name(name, solvers, "phase1")
    return solvers[name]

"""Parts of every solver of phase 1: candidates, the F-metric, and batch after batch.

Phase 1 of Sorted-F (wang-2025 Algorithm 1, lines 2-9) repeatedly takes the batch X of waiting
requests with the least ``F(X) = sum(o) / |X|^2`` among those that fit into memory.  A batch of n
requests that runs for o rounds delays every later request by o, so batches are best sorted by
o / n; F has the mean output instead of o.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kvopt.problem.arrays import Flags, Integers


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


def best_count(least: Sequence[int | None]) -> int:
    """Return the count with the least ``least[count] / count^2``, the larger one of equals.

    Parameters
    ----------
    least
        Least sum of outputs by count, None without a batch.  Count 0 is no batch.
    """
    best, best_sum = 0, 0
    for count, total in enumerate(least):
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

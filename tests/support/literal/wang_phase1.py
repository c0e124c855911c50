"""The phase-1 solvers of wang-2025 (arXiv 2508.06133), transcribed line by line.

Phase 1 of Sorted-F (algorithm 1, lines 3-9) asks for the batch X that minimises
F(X) = sum(o) / |X|^2, ties to the larger batch.  Everything is slow and literal on purpose;
fractions are compared by cross-multiplication.  Comments marked *settled* say how a gap or a
contradiction of the paper is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple


class Item(NamedTuple):
    """A waiting request as phase 1 sees it; ``output`` is the believed one.

    *Settled*: the fields are in this order so that items compare in the tie order
    (order key, prompt, arrival, position) with the output as order key.
    """

    output: int
    prompt: int
    arrival: int
    position: int


Phase1 = Callable[[Sequence[Item], int], list[Item]]
"""Chooses one batch out of the waiting items and a memory; it returns it in tie order."""
Draw = Callable[[int, int], Sequence[int]]
"""``draw(n, size)`` samples ``size`` different indexes below ``n``."""


def peak(item: Item) -> int:
    """Return s + o, the most tokens the item ever holds."""
    return item.prompt + item.output


def compare_f(left: Sequence[Item], right: Sequence[Item]) -> int:
    """Return the sign of F(left) - F(right)."""
    mine = sum(item.output for item in left) * len(right) ** 2
    other = sum(item.output for item in right) * len(left) ** 2
    return (mine > other) - (mine < other)


def better(left: Sequence[Item], right: Sequence[Item]) -> bool:
    """Whether ``left`` comes before ``right`` among the candidates of algorithm 1, line 4.

    *Settled*: least F, then the larger set (as printed), then the set whose items, listed in
    tie order, come first lexicographically.
    """
    sign = compare_f(left, right)
    if sign != 0:
        return sign < 0
    if len(left) != len(right):
        return len(left) > len(right)
    return sorted(left) < sorted(right)


def starts_together(batch: Sequence[Item], memory: int) -> bool:
    """Whether all may start at once: algorithm 1, line 5."""
    for finishing in batch:
        time = finishing.output
        held = 0
        for item in batch:
            if item.output >= time:
                held += item.prompt + time
        if held > memory:
            return False
    return True


def peaks_fit(batch: Sequence[Item], memory: int) -> bool:
    """Whether sum(s + o) <= M: sufficient for `starts_together`, not necessary."""
    return sum(peak(item) for item in batch) <= memory


def best_subset(
    waiting: Sequence[Item], memory: int, feasible: Callable[[Sequence[Item], int], bool]
) -> list[Item]:
    """Return the best of all feasible non-empty subsets."""
    best: list[Item] = []
    for size in range(1, len(waiting) + 1):
        for subset in combinations(waiting, size):
            if feasible(subset, memory) and (not best or better(subset, best)):
                best = list(subset)
    return sorted(best)


def phase1_exact_brute(waiting: Sequence[Item], memory: int) -> list[Item]:
    """Return the true optimum of algorithm 1, lines 4-5, over all subsets."""
    return best_subset(waiting, memory, starts_together)


def phase1_dp_brute(waiting: Sequence[Item], memory: int) -> list[Item]:
    """Return the optimum of the program that algorithm 2 solves, over all subsets."""
    return best_subset(waiting, memory, peaks_fit)


def phase1_dp(waiting: Sequence[Item], memory: int) -> list[Item]:
    """Return the batch of algorithm 2 (exact optimal request selection by a dynamic program).

    *Settled*: printed, the program keeps the first path of a state and the smallest k among
    equal F, against algorithm 1.  Here the requests go in from last to first in tie order, an
    equal value replaces, and among equal F the larger set wins, then tie order; this yields
    exactly `phase1_dp_brute`.
    """
    size = len(waiting)
    dp: list[list[int | None]] = [[None] * (memory + 1) for _ in range(size + 1)]
    path: list[list[tuple[Item, ...]]] = [[()] * (memory + 1) for _ in range(size + 1)]
    dp[0][0] = 0
    for item in sorted(waiting, reverse=True):
        for k in range(size - 1, -1, -1):
            for held in range(memory + 1):
                value, more = dp[k][held], held + peak(item)
                if value is None or more > memory:
                    continue
                old, new = dp[k + 1][more], value + item.output
                if old is None or new <= old:
                    dp[k + 1][more] = new
                    path[k + 1][more] = (*path[k][held], item)
    best: tuple[Item, ...] = ()
    for k in range(1, size + 1):
        for held in range(memory + 1):
            if dp[k][held] is not None and (not best or better(path[k][held], best)):
                best = path[k][held]
    return sorted(best)


def greedy_fill(order: Sequence[Item], memory: int) -> list[Item]:
    """Take, in this order, whatever keeps sum(s + o) <= M; what does not fit is skipped.

    Algorithm 3, lines 2-8, and algorithm 7, lines 6-11.
    """
    batch: list[Item] = []
    used = 0
    for item in order:
        if used + peak(item) <= memory:
            batch.append(item)
            used += peak(item)
    return batch


def local_swap(batch: Sequence[Item], order: Sequence[Item], memory: int) -> list[Item]:
    """Improve a batch by exchanges: algorithm 3, lines 9-33.

    *Settled*: both loops run in ``order``, the sorted list that filled the first batch
    (ascending s + o in algorithm 3, ascending mean start in algorithm 7).  The first improving
    exchange is made and both loops begin again.
    """
    chosen = list(batch)
    improved = True
    while improved:
        improved = False
        for out in [item for item in order if item in chosen]:
            for into in [item for item in order if item not in chosen]:
                swapped = [into if item == out else item for item in chosen]
                if peaks_fit(swapped, memory) and compare_f(swapped, chosen) < 0:
                    chosen = swapped
                    improved = True
                    break
            if improved:
                break
    return sorted(chosen)


def phase1_swap(waiting: Sequence[Item], memory: int) -> list[Item]:
    """Return the batch of algorithm 3 (local swap search).

    *Settled*: the order key of line 1 is s + o; its ties fall to prompt, arrival, position.
    """
    order = sorted(waiting, key=lambda item: (peak(item), item[1:]))
    return local_swap(greedy_fill(order, memory), order, memory)


def sample_size(count: int) -> int:
    """Return how many of ``count`` requests algorithm 4, line 2, samples."""
    return max(1, count // 2)


def lower_quantile(values: Sequence[int]) -> int:
    """Return the 0.3 quantile with lower interpolation: the value of rank floor(0.3 (m - 1))."""
    return sorted(values)[3 * (len(values) - 1) // 10]


def phase1_quantile(waiting: Sequence[Item], memory: int, sample: Sequence[int]) -> list[Item]:
    """Return the batch of algorithm 4 (quantile greedy selection) for given sample indexes.

    *Settled*: the indexes point into the waiting items sorted by output (line 1), ties by
    prompt, arrival, position.  Both thresholds are inclusive, both passes skip what does not
    fit.  The ratio of line 14 has ties by prompt, arrival, position.  No minimum is needed:
    whenever the core is empty the second pass takes at least its first request.
    """
    order = sorted(waiting)
    if len(sample) != sample_size(len(order)) or len(set(sample)) != len(sample):
        msg = "not a sample of half the waiting requests"
        raise ValueError(msg)
    most_peak = lower_quantile([peak(order[index]) for index in sample])
    most_output = lower_quantile([order[index].output for index in sample])
    chosen: list[Item] = []
    used = 0
    for item in order:
        small = peak(item) <= most_peak and item.output <= most_output
        if small and used + peak(item) <= memory:
            chosen.append(item)
            used += peak(item)
    rest = [item for item in order if item not in chosen]
    rest.sort(key=lambda item: (Fraction(item.output, peak(item)), item[1:]))
    chosen += greedy_fill(rest, memory - used)
    return sorted(chosen)


def quantile_with(draw: Draw) -> Phase1:
    """Return `phase1_quantile` with its samples drawn anew for every batch, as printed."""

    def solve(waiting: Sequence[Item], memory: int) -> list[Item]:
        size = sample_size(len(waiting))
        return phase1_quantile(waiting, memory, draw(len(waiting), size))

    return solve

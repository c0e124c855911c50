"""The literal transcriptions of wang-2025 against cases worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from literal.common import Job
from literal.wang import lp_swap, sorted_f, sorted_f_a_min, sorted_lp
from literal.wang_phase1 import (
    Item,
    Phase1,
    greedy_fill,
    local_swap,
    lower_quantile,
    phase1_dp,
    phase1_exact_brute,
    phase1_quantile,
    phase1_swap,
)

SOLVERS: list[Phase1] = [phase1_exact_brute, phase1_dp, phase1_swap]


def items(jobs: Sequence[Job]) -> list[Item]:
    return [Item(job.output, job.prompt, job.arrival, at) for at, job in enumerate(jobs)]


BATCHES: dict[str, tuple[Phase1, list[Job], int, list[int]]] = {
    # Peaks 4 + 4, but the first has left when the second holds 4: together they hold 6 at 1.
    "both together": (phase1_exact_brute, [Job(0, 3, 1), Job(0, 1, 3)], 6, [0, 1]),
    "peaks do not fit": (phase1_dp, [Job(0, 3, 1), Job(0, 1, 3)], 6, [0]),
    "the larger of equal F": (phase1_dp, [Job(0, 1, 1), Job(0, 1, 3)], 9, [0, 1]),
    "tie order": (
        phase1_dp, [Job(0, 2, 2), Job(1, 1, 2), Job(0, 1, 2), Job(0, 1, 2)], 6, [2, 3]),
    # All peaks are 3, so the list is 2, 1, 3, 0 and the first batch {2, 1}.  2 -> 3, then
    # 1 -> 0; the best exchange first, or scanning by output, would end with {0, 1}.
    "the first improvement": (
        phase1_swap, [Job(0, 2, 1), Job(0, 1, 2), Job(0, 0, 3), Job(0, 1, 2)], 7, [0, 3]),
    # The list is 1, 3, 0, 2, the first batch {1, 3}; 1 -> 2, then 3 -> 1.  The other way round
    # 3 -> 0, then 1 -> 2.
    "what goes out before what comes in": (
        phase1_swap, [Job(0, 1, 2), Job(0, 0, 2), Job(0, 2, 1), Job(0, 0, 3)], 7, [2, 1]),
    # First batch {0, 1}; 0 -> 2, then 1 -> 3.  By output or by s + o it would end with {1, 3}.
    "swaps in a given order": (
        lambda order, memory: local_swap(greedy_fill(order, memory), order, memory),
        [Job(0, 0, 4), Job(0, 0, 2), Job(0, 1, 2), Job(0, 1, 1)], 6, [3, 2]),
    # The sample is the first and the last in output order: thresholds 2 and 1, core {0};
    # then ratios 1/4 and 1/3 come before 1, and 2 + 4 + 6 leaves no room for position 2.
    "quantile": (
        lambda waiting, memory: phase1_quantile(waiting, memory, [0, 3]),
        [Job(0, 1, 1), Job(0, 3, 1), Job(0, 0, 2), Job(0, 4, 2)], 12, [0, 1, 3]),
}  # fmt: skip


@pytest.mark.parametrize(("solve", "jobs", "memory", "chosen"), BATCHES.values(), ids=list(BATCHES))
def test_batches(solve: Phase1, jobs: list[Job], memory: int, chosen: list[int]) -> None:
    assert [item.position for item in solve(items(jobs), memory)] == chosen


def test_quantiles_are_lower_ones() -> None:
    assert [lower_quantile(range(10)), lower_quantile(range(11)), lower_quantile([7])] == [2, 3, 7]


@pytest.mark.parametrize("phase1", SOLVERS)
def test_half_a_batch_has_no_privilege(phase1: Phase1) -> None:
    # At 0 the three short ones start and 3 of the batch {3, 4}; then three better ones arrive,
    # and 4, which would have started at 1, comes after them.
    short, long, late = Job(0, 2, 1), Job(0, 1, 4), Job(1, 2, 1)
    run = sorted_f([short, short, short, long, long, late, late, late], 12, phase1)
    assert run.starts == [0, 0, 0, 0, 2, 1, 1, 1]
    assert sorted_f([short, short, short, long, long], 12, phase1).starts == [0, 0, 0, 0, 1]


A_MIN: dict[str, tuple[list[Job], int, list[int], list[int], int]] = {
    # 0 is evicted at 1 and at once starts again, as 1 is believed to end at 2; evicted again at
    # 2, it must wait for 1 to end at 3.
    "the smallest belief": ([Job(0, 1, 3, 1), Job(0, 1, 3, 2)], 5, [0, 1], [3, 0], 2),
    "ties by rank": ([Job(0, 1, 3, 1)] * 2, 5, [0, 1], [3, 0], 2),
    "ties by the other rank": ([Job(0, 1, 3, 1)] * 2, 5, [1, 0], [0, 3], 2),
    # Evicted at 1, when 1 is believed to end at 2; it fits again from its first token.
    "again in the same round": ([Job(0, 1, 2, 1), Job(0, 0, 2, 2)], 4, [0, 1], [1, 0], 1),
    # 1 and 2 run when 0 is planned at 1; 1, evicted at 2, still comes before 0.
    "keeps its place": (
        [Job(1, 3, 1), Job(0, 0, 4, 2), Job(0, 0, 3, 3)], 4, [0, 1, 2], [6, 2, 0], 1),
    # 0, evicted at 2 with belief 2, is not weighed against 2 anew.
    "makes no new plan": (
        [Job(0, 0, 3, 1), Job(0, 0, 3, 1), Job(0, 3, 1)], 4, [0, 1, 2], [2, 0, 5], 1),
    # At 3 the first is believed to be 2 long, having produced two tokens: the second goes.
    "raised while active": ([Job(1, 0, 3, 1), Job(2, 0, 2, 1)], 4, [0, 1], [1, 3], 1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "memory", "rank", "starts", "evictions"), A_MIN.values(), ids=list(A_MIN)
)
def test_a_min_evictions(
    jobs: list[Job], memory: int, rank: list[int], starts: list[int], evictions: int
) -> None:
    run = sorted_f_a_min(jobs, memory, phase1_dp, rank)
    assert (run.starts, run.evictions) == (starts, evictions)


def test_mean_starts() -> None:
    jobs = [Job(0, 5, 2), Job(0, 1, 2), Job(0, 1, 1)]
    assert sorted_lp(jobs, 8, [0, 2, 1]).starts == [0, 2, 0]
    assert sorted_lp(jobs, 8, [0, 1, 2]).starts == [0, 2, 2]
    assert sorted_lp([Job(0, 5, 1), Job(0, 1, 5)], 6, [3, 3]).starts == [5, 0]  # by prompt
    jobs = [Job(0, 0, 4), Job(0, 0, 2), Job(0, 1, 2), Job(0, 1, 1)]
    assert sorted_lp(jobs, 6, [0, 1, 2, 3]).starts == [0, 0, 1, 3]
    assert lp_swap(jobs, 6, [0, 1, 2, 3]).starts == [1, 0, 0, 0]

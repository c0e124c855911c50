"""The literal transcriptions of Jaillet et al. and Chen et al., against cases worked by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest
from brute_force import optimum
from literal import chen, jaillet
from literal.common import Job, Run
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

Policy = Callable[[list[Job], int], Run]
BACKLOG = [Job(0, 1, output) for output in (1, 2, 3, 4)]


def together(prompt: int, *outputs: int, lower: int | None = None) -> list[Job]:
    upper = None if lower is None else max(outputs)
    return [Job(0, prompt, output, lower, upper) for output in outputs]


def throws(*shown: bool) -> Callable[[], bool]:
    """Return a coin that shows what is written; one throw too many is an error."""
    row: Iterator[bool] = iter(shown)
    return lambda: next(row)


def protect(alpha: float | str) -> Policy:
    return partial(jaillet.alpha_protect, alpha=alpha)


def beta(coin: Callable[[], bool], **more: float) -> Policy:
    return partial(jaillet.alpha_beta, coin=coin, **{"alpha": 0, **more})  # type: ignore[arg-type]


def believing(policy: Callable[..., Run], *believed: int, **more: float) -> Policy:
    return lambda jobs, memory: policy(jobs, memory, list(believed), **more)


def ranked(policy: Callable[..., Run], *rank: int, **more: int) -> Policy:
    return partial(policy, rank=list(rank), **more)


A_MIN, A_L, A_MAX, A_RANDOM = chen.a_min, chen.a_l, chen.a_max, chen.a_random
LOW = [*together(1, 3, 3), Job(5, 1, 1)]
PASSES = (
    False, False, False,  # round 2: 3 + 3 + 3 > 6 next, no request is evicted
    True, False, False,  # again: request 0, and 3 + 3 fits
    True, False,  # round 3: 4 + 4 > 6: request 1; 0 and 1 start beside 2, which ends at 4
    False, True,  # round 6: 4 + 4 > 6: request 1; it starts again at once
)  # fmt: skip

STARTS: dict[str, tuple[Policy, list[Job], int, Sequence[int | None], int]] = {
    "mc-sf, wang example 3.1": (
        jaillet.mc_sf, [Job(0, 63, 1)] + [Job(0, 1, 2)] * 21, 64, [0] + [1] * 21, 0),
    "h-sf, chen example 1": (chen.h_sf, [Job(0, 1, 1, 1, 4)] * 5, 10, [0] * 5, 0),
    "a-max, chen example 1": (
        ranked(A_MAX, 4, 2, 0, 1, 3), [Job(0, 1, 1, 1, 4)] * 5, 10, [2, 1, 0, 0, 1], 0),
    # Outputs 1, 2, 4 are feasible at 0 too; then 3 can start at 3 at the earliest, in all 13.
    "h-sf, chen example EC.1": (chen.h_sf, BACKLOG, 7, [0, 0, 0, 2], 0),
    # Sums 5, 6; outputs 4, 1; volumes 14, 6.
    "by sum": (jaillet.mc_sf_total, [Job(0, 1, 4), Job(0, 5, 1)], 6, [0, 4], 0),
    "by volume": (jaillet.svf, [Job(0, 1, 4), Job(0, 5, 1)], 6, [1, 0], 0),
    "by output": (jaillet.mc_sf, [Job(0, 1, 4), Job(0, 5, 1)], 6, [1, 0], 0),
    "equal sums": (jaillet.mc_sf_total, [Job(0, 5, 1), Job(0, 2, 4)], 6, [4, 0], 0),
    # 1 does not fit beside 0 and holds back 2, which would.
    "fcfs is a prefix": (
        jaillet.fcfs, [Job(0, 2, 2), Job(0, 3, 2), Job(0, 1, 1)], 6, [0, 2, 2], 0),
    "fcfs by arrival": (
        jaillet.fcfs, [Job(1, 3, 2), Job(0, 3, 2), Job(9, 0, 1)], 6, [2, 0, 9], 0),
    "memory is free at the completion": (jaillet.mc_sf, together(1, 2, 2), 3, [0, 2], 0),
    # (1 - alpha) M = 1.6: nothing beside a request that outlived its belief.
    "a margin": (believing(jaillet.mc_sf, 1, 1, alpha=0.6), together(0, 3, 3), 4, [0, 3], 0),
    # At 2 request 0 has 2 tokens and is believed to complete at 3, with 3: 1 more fits.
    "outlived": (believing(jaillet.mc_sf, 1, 1), [Job(0, 0, 4), Job(2, 0, 1)], 4, [0, 2], 0),
    "outlived, later": (
        believing(jaillet.mc_sf, 1, 1), [Job(0, 0, 4), Job(3, 0, 1)], 4, [0, 4], 0),
    # Threshold 5: 2 + 2 at 1, the third would make 6; at 2 they hold 3 + 3 = M.
    "alpha-protect": (protect("1/6"), together(1, 2, 2, 1), 6, [0, 0, 2], 0),
    # Threshold 3; round 3: 4 + 3 > 6; started together they hold 3 + 3 at 6, where 1 ends.
    "cleared and started again": (protect(0.5), [Job(0, 0, 4), Job(1, 0, 3)], 6, [3, 3], 2),
    "alpha as it is written": (protect(0.9), [Job(0, 0, 1)], 10, [0], 0),
    # Round 2: both hold 3 and would hold 4 + 4: 0 is evicted and 2 + 4 fits again.
    "a coin each": (beta(throws(True, False)), together(1, 3, 3), 6, [2, 0], 1),
    # Round 3: 5 + 3 > 6: 1 arrived first and is evicted.
    "coins by arrival": (beta(throws(True, False)), [Job(1, 0, 3), Job(0, 1, 4)], 6, [1, 3], 1),
    "coins in passes": (beta(throws(*PASSES)), together(0, 4, 4, 4), 6, [3, 6, 0], 3),
    "rounds after the last arrival": (beta(throws(), round_limit=10), [Job(50, 0, 2)], 4, [50], 0),
    # Round 2: 3 + 3 > 4, the smaller rank goes, has learned 2 and starts again at once.
    "a-min": (A_MIN, together(0, 3, 3, lower=1), 4, [2, 0], 1),
    "a-min by rank": (ranked(A_MIN, 1, 0), together(0, 3, 3, lower=1), 4, [0, 2], 1),
    # Round 2: 0 is evicted with 2 tokens; 2 has just arrived with a bound of 1; one of them fits.
    "a-min learns": (
        A_MIN, [*together(0, 3, 3, lower=1), Job(2, 0, 1, 1, 3)], 4, [3, 0, 2], 1),
    "a-min, bound before rank": (
        ranked(A_MIN, 1, 0), [Job(0, 0, 3, 1, 3), Job(0, 0, 3, 2, 3)], 4, [2, 0], 1),
    # 2 + 2 = 4 tokens at time 2; what may be 4 long waits until both are gone.
    "a-max, unequal intervals": (
        ranked(A_MAX, 0, 1, 2), [Job(0, 0, 1, 1, 4), *[Job(0, 0, 1, 1, 2)] * 2], 4, [1, 0, 0], 0),
    # Round 1: 0 and 2 are longer than l, go to the end, and 0 starts again at once.
    "a-l": (A_L, together(0, 3, 1, 3, lower=1), 4, [1, 0, 3], 2),
    # Round 1: the queue is 1, 0 and both start; round 2: 2 fits beside 0.
    "a-l, behind the removed": (
        A_L, [Job(0, 0, 3, 1, 3), Job(1, 0, 1, 1, 3), Job(2, 0, 1, 1, 3)], 3, [1, 1, 2], 1),
    # Round 1: 1 fills the memory; round 2: 0 stands before 2, both fit.
    "a-l, a full memory": (
        A_L, [Job(0, 1, 3, 1, 3), Job(1, 3, 1, 1, 3), Job(2, 0, 1, 1, 3)], 4, [2, 1, 2], 1),
    # Bounds that say 2 of an output of 4: removed at 2 tokens, not again.
    "a-l removes once": (A_L, [Job(0, 0, 4, 2, 2)], 4, [2], 1),
    "a-random": (ranked(A_RANDOM, 2, 1, 0), together(0, 1, 2, 3), 6, [0, 0, 0], 0),
    # Output 3 alone, as 2 would make 4 at 2; the prefix keeps 1 waiting too.
    "a-random, less memory": (
        ranked(A_RANDOM, 2, 1, 0, override=3), together(0, 1, 2, 3), 6, [3, 3, 0], 0),
}  # fmt: skip

LIVELOCKS: dict[str, tuple[Policy, list[Job], int, Sequence[int | None], int]] = {
    # Round 2: 3 + 3 > 4; both are evicted, and all three fit together as they are believed.
    "overflow before admission": (
        believing(jaillet.mc_sf, 2, 3, 1), [*together(0, 3, 3), Job(2, 0, 1)], 4,
        [None, None, 2], 4),
    "believed above the memory": (
        believing(jaillet.mc_sf, 1, 4), together(1, 1, 2), 4, [0, None], 0),
    "a prefix starves": (believing(jaillet.fcfs, 4, 1), together(1, 2, 1), 4, [None, None], 0),
    "alpha-protect loops": (protect(0), together(1, 3, 3), 6, [None, None], 2),
    "alpha-protect starves": (
        protect(0.2), [Job(0, 1, 2), Job(0, 4, 1), Job(0, 1, 1)], 6, [0, None, None], 0),
    # Cleared at 2, 4 and 6; the request of round 5 starts in front of them then.
    "an arrival is awaited": (protect(0), LOW, 6, [None, None, 6], 8),
    "no coin ever": (
        beta(lambda: False, round_limit=20), together(1, 3, 3), 6, [None, None], 0),
    "every coin": (beta(lambda: True, round_limit=20), together(1, 3, 3), 6, [None, None], 18),
    # Removed at 1; at 3 both hold 2 and would hold 3: cleared, and again at 5.
    "a-l above the upper bound": (A_L, [Job(0, 0, 4, 1, 1)] * 2, 4, [None, None], 4),
    **{
        f"low beliefs of {policy.__name__}": (
            believing(policy, 1, 1), together(0, 3, 3), 4, [None, None], 2)
        for policy in (jaillet.mc_sf, jaillet.fcfs, jaillet.svf, chen.h_sf)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", [*STARTS, *LIVELOCKS])
def test_literal_policies_start_what_the_papers_do(name: str) -> None:
    policy, jobs, memory, starts, evictions = {**STARTS, **LIVELOCKS}[name]
    found = policy(jobs, memory)
    assert (found.starts, found.evictions) == (starts, evictions)
    ends = [None if k is None else k + j.output for j, k in zip(jobs, starts, strict=True)]
    assert found.completions == ends
    total = sum((c or 0) - job.arrival for job, c in zip(jobs, ends, strict=True))
    expected = ("livelock", None) if name in LIVELOCKS else ("completed", total)
    assert (found.outcome, found.objective) == expected


@pytest.mark.parametrize(
    ("jobs", "memory", "value", "best"),
    [(together(1, 3, 4, 5, 7), 9, 28, 27), (together(0, 2, 2, 3, 3), 4, 16, 15)],
)
def test_mc_sf_is_not_optimal(jobs: list[Job], memory: int, value: int, best: int) -> None:
    assert jaillet.mc_sf(jobs, memory).objective == value
    assert optimum(memory, [job[:3] for job in jobs]) == best


@pytest.mark.parametrize(
    ("lower", "upper", "switched"),
    [(1, 1, False), (1, 2, False), (1, 3, True), (381, 1000, True), (382, 1000, False)],
)
def test_a_switch_prefers_a_l_for_wide_intervals(lower: int, upper: int, switched: bool) -> None:
    jobs = [Job(0, 0, lower, lower, upper), Job(0, 0, upper, lower, upper)]
    assert chen.prefers_a_l(jobs) is switched


# ---- the literal transcriptions of wang-2025 against cases worked by hand


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
def test_solvers_choose_the_batches_of_the_paper(
    solve: Phase1, jobs: list[Job], memory: int, chosen: list[int]
) -> None:
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


BY_INTERVALS: dict[str, tuple[list[Job], int, list[int], list[int], int]] = {
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
    ("jobs", "memory", "rank", "starts", "evictions"), BY_INTERVALS.values(), ids=list(BY_INTERVALS)
)
def test_a_min_evicts_what_the_paper_does(
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

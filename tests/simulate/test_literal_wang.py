"""The literal transcriptions of wang-2025 against worked cases and each other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from literal.wang import Job, Run, lp_swap, sorted_f, sorted_f_a_min, sorted_lp
from literal.wang_phase1 import (
    Item,
    Phase1,
    auto_name,
    auto_with,
    better,
    compare_f,
    greedy_fill,
    local_swap,
    lower_quantile,
    peaks_fit,
    phase1_dp,
    phase1_dp_brute,
    phase1_exact_brute,
    phase1_quantile,
    phase1_swap,
    quantile_with,
    starts_together,
)

EXAMPLE_3_1 = [Job(0, 63, 1)] + [Job(0, 1, 2)] * 21


def random_draw(rng: random.Random) -> Phase1:
    return quantile_with(lambda count, size: rng.sample(range(count), size))


SOLVERS: list[Phase1] = [
    phase1_exact_brute,
    phase1_dp,
    phase1_swap,
    random_draw(random.Random(0)),
    auto_with(lambda _, size: range(size)),
]


def random_jobs(seed: int, *, most: int = 7) -> tuple[list[Job], int]:
    rng = random.Random(seed)
    memory = rng.randint(4, 16)
    last = rng.choice([0, 0, 6])
    jobs = []
    for _ in range(rng.randint(1, most)):
        prompt = rng.randint(0, memory - 1)
        output = rng.randint(1, min(memory - prompt, rng.choice([3, 8])))
        lower = rng.randint(1, output)
        jobs.append(Job(rng.randint(0, last), prompt, output, lower, output + rng.randint(0, 3)))
    return jobs, memory


def items(jobs: Sequence[Job]) -> list[Item]:
    return [Item(job.output, job.prompt, job.arrival, at) for at, job in enumerate(jobs)]


def assert_schedule(jobs: Sequence[Job], memory: int, run: Run) -> None:
    assert (run.outcome, len(run.starts)) == ("completed", len(jobs))
    held: dict[int, int] = {}
    total = 0
    for job, start, completion in zip(jobs, run.starts, run.completions, strict=True):
        assert start is not None
        assert start >= job.arrival
        assert completion == start + job.output
        total += completion - job.arrival
        for time in range(start + 1, completion + 1):
            held[time] = held.get(time, 0) + job.prompt + time - start
    assert run.objective == total
    assert max(held.values(), default=0) <= memory


@pytest.mark.parametrize("phase1", SOLVERS[1:])
def test_example_3_1(phase1: Phase1) -> None:
    run = sorted_f(EXAMPLE_3_1, 64, phase1)
    assert run.objective == 45
    assert run.starts == [2] + [0] * 21


def test_dp_asks_for_more_than_is_needed() -> None:
    # Peaks 4 + 4, but the first has left when the second holds 4: together they hold 6 at 1.
    waiting = items([Job(0, 3, 1), Job(0, 1, 3)])
    assert phase1_exact_brute(waiting, 6) == waiting
    assert phase1_dp(waiting, 6) == waiting[:1]


def test_printed_dp_prefers_the_smaller_of_equal_f() -> None:
    waiting = items([Job(0, 1, 1), Job(0, 1, 3)])
    assert phase1_dp(waiting, 9) == waiting
    assert phase1_dp(waiting, 9, printed=True) == waiting[:1]


def test_equal_sets_fall_to_tie_order() -> None:
    waiting = items([Job(0, 2, 2), Job(1, 1, 2), Job(0, 1, 2), Job(0, 1, 2)])
    assert [item.position for item in phase1_dp(waiting, 6)] == [2, 3]


@pytest.mark.parametrize("seed", range(150))
def test_phase_1_solvers(seed: int) -> None:
    jobs, memory = random_jobs(seed)
    waiting = items(jobs)
    exact, program = phase1_exact_brute(waiting, memory), phase1_dp_brute(waiting, memory)
    assert phase1_dp(waiting, memory) == program
    assert compare_f(phase1_dp(waiting, memory, printed=True), program) == 0
    assert exact == program or better(exact, program)
    assert starts_together(program, memory)
    for solve in SOLVERS[2:]:
        batch = solve(waiting, memory)
        assert batch
        assert peaks_fit(batch, memory)
        assert compare_f(program, batch) <= 0


@pytest.mark.parametrize("seed", range(60))
def test_exact_batches_satisfy_lemma_3_3(seed: int) -> None:
    jobs, memory = random_jobs(seed)
    batch = phase1_exact_brute(items(jobs), memory)
    total = sum(item.output for item in batch)
    assert 2 * total > len(batch) * max(item.output for item in batch)


def test_swap_takes_the_first_improvement_in_the_order_of_its_list() -> None:
    # All peaks are 3, so the list is 2, 1, 3, 0 and the first batch {2, 1}.  2 -> 3, then
    # 1 -> 0; the best exchange first, or scanning by output, would end with {0, 1}.
    waiting = items([Job(0, 2, 1), Job(0, 1, 2), Job(0, 0, 3), Job(0, 1, 2)])
    assert [item.position for item in phase1_swap(waiting, 7)] == [0, 3]


def test_swap_scans_what_goes_out_before_what_comes_in() -> None:
    # The list is 1, 3, 0, 2, the first batch {1, 3}; 1 -> 2, then 3 -> 1.  The other way round
    # 3 -> 0, then 1 -> 2.
    waiting = items([Job(0, 1, 2), Job(0, 0, 2), Job(0, 2, 1), Job(0, 0, 3)])
    assert [item.position for item in phase1_swap(waiting, 7)] == [2, 1]


def test_lp_swap_scans_in_the_order_of_the_mean_starts() -> None:
    # First batch {0, 1}; 0 -> 2, then 1 -> 3.  By output or by s + o it would end with {1, 3}.
    jobs = [Job(0, 0, 4), Job(0, 0, 2), Job(0, 1, 2), Job(0, 1, 1)]
    order = items(jobs)
    swapped = local_swap(greedy_fill(order, 6), order, 6)
    assert [item.position for item in swapped] == [3, 2]
    assert sorted_lp(jobs, 6, [0, 1, 2, 3]).starts == [0, 0, 1, 3]
    assert lp_swap(jobs, 6, [0, 1, 2, 3]).starts == [1, 0, 0, 0]


def test_quantile_core_then_ratio() -> None:
    assert lower_quantile(range(10)) == 2
    assert lower_quantile(range(11)) == 3
    assert lower_quantile([7]) == 7
    waiting = items([Job(0, 1, 1), Job(0, 3, 1), Job(0, 0, 2), Job(0, 4, 2)])
    # The sample is the first and the last in output order: thresholds 2 and 1, core {0};
    # then ratios 1/4 and 1/3 come before 1, and 2 + 4 + 6 leaves no room for position 2.
    batch = phase1_quantile(waiting, 12, [0, 3])
    assert [item.position for item in batch] == [0, 1, 3]
    with pytest.raises(ValueError, match="half"):
        phase1_quantile(waiting, 12, [0])


def test_sizes_of_section_5_4() -> None:
    sizes = [1, 100, 101, 500, 999, 1000]
    assert [auto_name(size) for size in sizes] == ["dp", "dp", "swap", "swap", "swap", "quantile"]


@pytest.mark.parametrize("seed", range(60))
def test_runs_are_schedules(seed: int) -> None:
    jobs, memory = random_jobs(seed, most=8)
    rng = random.Random(seed)
    means = [Fraction(rng.randint(0, 9), rng.randint(1, 3)) for _ in jobs]
    for phase1 in SOLVERS:
        assert_schedule(jobs, memory, sorted_f(jobs, memory, phase1))
    assert_schedule(jobs, memory, sorted_lp(jobs, memory, means))
    assert_schedule(jobs, memory, lp_swap(jobs, memory, means))
    again = sorted_lp(jobs, memory, lambda _, waiting: {at: means[at] for at in waiting})
    assert again == sorted_lp(jobs, memory, means)


@pytest.mark.parametrize("seed", range(150))
def test_a_min_completes_and_equals_sorted_f_when_it_knows(seed: int) -> None:
    jobs, memory = random_jobs(seed, most=8)
    rank = random.Random(seed).sample(range(len(jobs)), len(jobs))
    assert_schedule(jobs, memory, sorted_f_a_min(jobs, memory, phase1_swap, rank))
    known = [Job(*job[:3]) for job in jobs]
    run = sorted_f_a_min(known, memory, phase1_dp, rank)
    assert run == sorted_f(known, memory, phase1_dp)
    assert run.evictions == 0


def test_a_min_evicts_the_smallest_belief() -> None:
    # 0 is evicted at 1 and at once starts again, as 1 is believed to end at 2; evicted again at
    # 2, it must wait for 1 to end at 3.
    jobs = [Job(0, 1, 3, 1), Job(0, 1, 3, 2)]
    run = sorted_f_a_min(jobs, 5, phase1_dp, [0, 1])
    assert (run.starts, run.evictions, run.objective) == ([3, 0], 2, 9)


@pytest.mark.parametrize(("rank", "starts"), [([0, 1], [3, 0]), ([1, 0], [0, 3])])
def test_a_min_breaks_ties_by_rank(rank: list[int], starts: list[int]) -> None:
    run = sorted_f_a_min([Job(0, 1, 3, 1)] * 2, 5, phase1_dp, rank)
    assert (run.starts, run.evictions) == (starts, 2)


A_MIN_CASES = {
    # Evicted at 1, when 1 is believed to end at 2; it fits again from its first token.
    "starts again in the same round": ([Job(0, 1, 2, 1), Job(0, 0, 2, 2)], [1, 0]),
    # 1 and 2 run when 0 is planned at 1; 1, evicted at 2, still comes before 0.
    "keeps its place": ([Job(1, 3, 1), Job(0, 0, 4, 2), Job(0, 0, 3, 3)], [6, 2, 0]),
    # 0, evicted at 2 with belief 2, is not weighed against 2 anew.
    "makes no new plan": ([Job(0, 0, 3, 1), Job(0, 0, 3, 1), Job(0, 3, 1)], [2, 0, 5]),
    # At 3 the first is believed to be 2 long, having produced two tokens: the second goes.
    "raised while active": ([Job(1, 0, 3, 1), Job(2, 0, 2, 1)], [1, 3]),
}


@pytest.mark.parametrize(("jobs", "starts"), A_MIN_CASES.values(), ids=list(A_MIN_CASES))
def test_a_min_eviction(jobs: list[Job], starts: list[int]) -> None:
    run = sorted_f_a_min(jobs, 4, phase1_dp, range(len(jobs)))
    assert (run.starts, run.evictions) == (starts, 1)


@pytest.mark.parametrize("phase1", SOLVERS[:3])
def test_half_a_batch_has_no_privilege(phase1: Phase1) -> None:
    # At 0 the three short ones start and 3 of the batch {3, 4}; then three better ones arrive,
    # and 4, which would have started at 1, comes after them.
    short, long, late = Job(0, 2, 1), Job(0, 1, 4), Job(1, 2, 1)
    run = sorted_f([short, short, short, long, long, late, late, late], 12, phase1)
    assert run.starts == [0, 0, 0, 0, 2, 1, 1, 1]
    assert sorted_f([short, short, short, long, long], 12, phase1).starts == [0, 0, 0, 0, 1]


def test_sorted_lp_is_a_prefix_of_the_mean_starts() -> None:
    jobs = [Job(0, 5, 2), Job(0, 1, 2), Job(0, 1, 1)]
    assert sorted_lp(jobs, 8, [0, 2, 1]).starts == [0, 2, 0]
    assert sorted_lp(jobs, 8, [0, 1, 2]).starts == [0, 2, 2]


def test_equal_mean_starts_go_by_prompt() -> None:
    assert sorted_lp([Job(0, 5, 1), Job(0, 1, 5)], 6, [3, 3]).starts == [5, 0]


def test_bad_jobs_are_refused() -> None:
    with pytest.raises(ValueError, match="alone"):
        sorted_f([Job(0, 3, 2)], 4, phase1_dp)
    with pytest.raises(ValueError, match="not a request"):
        sorted_f_a_min([Job(0, 1, 2, 3)], 9, phase1_dp, [0])

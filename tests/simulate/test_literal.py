"""The literal transcriptions of Jaillet et al. and Chen et al.: worked by hand, and sanity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from literal import chen, jaillet
from literal.common import Job, Run, Worker, exact, fits
from literal.small import optimum, peak, together

BACKLOG = [Job(0, 1, output) for output in (1, 2, 3, 4)]


def throws(*shown: bool) -> Callable[[], bool]:
    """Return a coin that shows what is written; one throw too many is an error."""
    row: Iterator[bool] = iter(shown)
    return lambda: next(row)


# --- the worked cases -----------------------------------------------------------------------


def test_mc_sf_is_not_optimal_for_equal_prompts() -> None:
    jobs = together(1, 3, 4, 5, 7)
    assert jaillet.mc_sf(jobs, 9).objective == 28
    assert optimum(jobs, 9, 9) == 27


def test_nor_without_prompts() -> None:
    jobs = together(0, 2, 2, 3, 3)
    assert jaillet.mc_sf(jobs, 4).objective == 16
    assert optimum(jobs, 4, 7) == 15


def test_wang_example_3_1() -> None:
    run = jaillet.mc_sf([Job(0, 63, 1)] + [Job(0, 1, 2)] * 21, 64)
    assert run.starts == [0] + [1] * 21
    assert run.objective == 64


def test_chen_example_1() -> None:
    jobs = [Job(0, 1, 1, 1, 4)] * 5
    assert chen.h_sf(jobs, 10) == Run([0] * 5, [1] * 5, 0, "completed", 5)
    run = chen.a_max(jobs, 10, rank=[4, 2, 0, 1, 3])
    assert run == Run([2, 1, 0, 0, 1], [3, 2, 1, 1, 2], 0, "completed", 9)


def test_chen_example_ec_1() -> None:
    run = chen.h_sf(BACKLOG, 7)
    assert run == Run([0, 0, 0, 2], [1, 2, 3, 6], 0, "completed", 12)
    assert optimum(BACKLOG, 7, 7) == 12


def test_the_choice_among_largest_sets_matters() -> None:
    # outputs 1, 2, 4 are feasible at 0 too; then 3 can start at 3 at the earliest, in all 13
    worker = Worker(BACKLOG, 7)
    worker.open_round()
    beliefs = [1, 2, 3, 4]
    assert fits(worker, beliefs, [0, 1, 3], Fraction(7))
    assert fits(worker, beliefs, [0, 1, 2], Fraction(7))
    assert not fits(worker, beliefs, [0, 2, 3], Fraction(7))
    assert not fits(worker, beliefs, [0, 1, 2, 3], Fraction(7))
    assert chen.largest_set(worker, beliefs, [0, 1, 2, 3]) == [0, 1, 2]
    assert peak(BACKLOG, [0, 0, 2, 0]) == 8
    assert peak(BACKLOG, [0, 0, 3, 0]) == 7


def test_orders_by_sum_and_by_volume() -> None:
    # sums 5, 6; outputs 4, 1; volumes 14, 6
    jobs = [Job(0, 1, 4), Job(0, 5, 1)]
    assert jaillet.mc_sf_total(jobs, 6).starts == [0, 4]
    assert jaillet.svf(jobs, 6).starts == [1, 0]
    assert jaillet.mc_sf(jobs, 6).starts == [1, 0]
    # equal sums: the smaller prompt, whose output is longer, goes first
    assert jaillet.mc_sf_total([Job(0, 5, 1), Job(0, 2, 4)], 6).starts == [4, 0]


def test_fcfs_is_a_prefix() -> None:
    # 1 does not fit beside 0 and holds back 2, which would
    jobs = [Job(0, 2, 2), Job(0, 3, 2), Job(0, 1, 1)]
    assert jaillet.fcfs(jobs, 6).starts == [0, 2, 2]
    # 1 arrived earlier than 0; 2 arrives when nothing is left
    assert jaillet.fcfs([Job(1, 3, 2), Job(0, 3, 2), Job(9, 0, 1)], 6).starts == [2, 0, 9]


def test_memory_is_free_at_the_completion_itself() -> None:
    assert jaillet.mc_sf(together(1, 2, 2), 3).starts == [0, 2]


# --- wrong beliefs --------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [jaillet.mc_sf, jaillet.fcfs, jaillet.svf, chen.h_sf])
def test_low_beliefs_evict_everything_for_ever(policy: Callable[..., Run]) -> None:
    run = policy(together(0, 3, 3), 4, [1, 1])
    assert run == Run([None, None], [None, None], 2, "livelock", None)


def test_a_margin_prevents_it() -> None:
    # (1 - alpha) M = 1.6: one at a time, and nothing beside a request that outlived its belief
    run = jaillet.mc_sf(together(0, 3, 3), 4, [1, 1], alpha=0.6)
    assert run == Run([0, 3], [3, 6], 0, "completed", 9)


def test_a_request_that_outlived_its_belief_completes_at_the_next_time() -> None:
    # at 2 request 0 has 2 tokens and is believed to complete at 3, with 3: 1 more fits
    run = jaillet.mc_sf([Job(0, 0, 4), Job(2, 0, 1)], 4, [1, 1])
    assert run == Run([0, 2], [4, 3], 0, "completed", 5)
    # one token later it does not: 4 + 1 > 4
    assert jaillet.mc_sf([Job(0, 0, 4), Job(3, 0, 1)], 4, [1, 1]).starts == [0, 4]


def test_overflow_evicts_before_admission_in_the_same_round() -> None:
    # round 2: 3 + 3 > 4; both are evicted, and all three fit together as they are believed
    # (1 + 1 + 1, then 2 + 2, then 3); request 2 leaves at 3, and rounds 4 and 6 are alike
    run = jaillet.mc_sf([Job(0, 0, 3), Job(0, 0, 3), Job(2, 0, 1)], 4, [2, 3, 1])
    assert run == Run([None, None, 2], [None, None, 3], 4, "livelock", None)


def test_believed_above_the_memory_starves() -> None:
    run = jaillet.mc_sf(together(1, 1, 2), 4, [1, 4])
    assert run == Run([0, None], [1, None], 0, "livelock", None)
    # fcfs stops at the first, so the second starves with it
    assert jaillet.fcfs(together(1, 2, 1), 4, [4, 1]).starts == [None, None]


# --- alpha-protection -----------------------------------------------------------------------


def test_alpha_protect_by_hand() -> None:
    # threshold 5: 2 + 2 at 1, the third would make 6; at 2 they hold 3 + 3 = M; at 3 they are gone
    run = jaillet.alpha_protect(together(1, 2, 2, 1), 6, alpha="1/6")
    assert run == Run([0, 0, 2], [2, 2, 3], 0, "completed", 7)


def test_alpha_protect_loops() -> None:
    run = jaillet.alpha_protect(together(1, 3, 3), 6, alpha=0)
    assert run == Run([None, None], [None, None], 2, "livelock", None)


def test_what_was_cleared_starts_again_in_the_same_round() -> None:
    # threshold 3; round 3: 4 + 3 > 6; started together they hold 3 + 3 at 6, where 1 ends
    run = jaillet.alpha_protect([Job(0, 0, 4), Job(1, 0, 3)], 6, alpha=0.5)
    assert run == Run([3, 3], [7, 6], 2, "completed", 12)


def test_an_arrival_ends_no_loop_but_is_awaited() -> None:
    # cleared at 2 and at 4; the request of round 5 is behind them in the order
    run = jaillet.alpha_protect([*together(1, 3, 3), Job(5, 1, 1)], 6, alpha=0)
    assert run.outcome == "livelock"
    assert run.evictions >= 4


def test_alpha_protect_starves() -> None:
    jobs = [Job(0, 1, 2), Job(0, 4, 1), Job(0, 1, 1)]
    assert jaillet.alpha_protect(jobs, 6, alpha=0.2).starts == [0, None, None]
    assert jaillet.alpha_protect(jobs, 6, alpha="1/6").starts == [0, 2, 3]


def test_alpha_beta_throws_one_coin_for_each_active_request() -> None:
    # at round 2 both hold 3 and would hold 4 + 4: 0 is evicted and 2 + 4 fits below 6 again
    run = jaillet.alpha_beta(together(1, 3, 3), 6, alpha=0, coin=throws(True, False))
    assert run == Run([2, 0], [5, 3], 1, "completed", 8)
    # the order is by arrival, not by position, and a whole pass is thrown
    jobs = [Job(1, 0, 3), Job(0, 1, 4)]
    shown = throws(True, False)
    run = jaillet.alpha_beta(jobs, 6, alpha=0, coin=shown)
    # round 2: 3 + 1 now, 4 + 2 fits; round 3: 5 + 3 does not: 1 arrived first and is evicted
    assert run == Run([1, 3], [4, 7], 1, "completed", 10)


def test_alpha_beta_passes_again_over_what_is_left() -> None:
    shown = [False, False, False]  # round 2: 3 + 3 + 3 > 6 next, no request is evicted
    shown += [True, False, False]  # again: request 0, and 3 + 3 fits
    shown += [True, False]  # round 3: 4 + 4 > 6: request 1; 0 and 1 start beside 2, which ends at 4
    shown += [False, True]  # round 6: 4 + 4 > 6: request 1; it starts again at once
    run = jaillet.alpha_beta(together(0, 4, 4, 4), 6, alpha=0, coin=throws(*shown))
    assert run == Run([3, 6, 0], [7, 10, 4], 3, "completed", 21)


def test_alpha_beta_gives_up() -> None:
    jobs = together(1, 3, 3)
    run = jaillet.alpha_beta(jobs, 6, alpha=0, coin=lambda: False, round_limit=20)
    assert run == Run([None, None], [None, None], 0, "livelock", None)
    run = jaillet.alpha_beta(jobs, 6, alpha=0, coin=lambda: True, round_limit=20)
    assert run.outcome == "livelock"
    assert run.evictions == 2 * 9
    jobs = [Job(0, 1, 1), Job(7, 6, 1)]
    run = jaillet.alpha_beta(jobs, 7, alpha=0.5, coin=throws(), round_limit=3)
    assert run == Run([0, None], [1, None], 0, "livelock", None)


def test_the_round_limit_counts_from_the_last_arrival() -> None:
    run = jaillet.alpha_beta([Job(50, 0, 2)], 4, alpha=0, coin=throws(), round_limit=10)
    assert run == Run([50], [52], 0, "completed", 2)


def test_a_parameter_is_the_decimal_that_is_written() -> None:
    assert exact(0.1) == exact("0.1") == Fraction(1, 10)
    # (1 - 0.9) * 10 is less than 1 in doubles
    assert jaillet.alpha_protect([Job(0, 0, 1)], 10, alpha=0.9).objective == 1


# --- intervals ------------------------------------------------------------------------------


def test_a_min_by_hand() -> None:
    # round 2: 3 + 3 > 4, the smaller rank goes and has learned 2; it starts again at once,
    # because the other is believed to complete at 3
    run = chen.a_min(together(0, 3, 3, lower=1), 4)
    assert run == Run([2, 0], [5, 3], 1, "completed", 8)
    run = chen.a_min(together(0, 3, 3, lower=1), 4, rank=[1, 0])
    assert run == Run([0, 2], [3, 5], 1, "completed", 8)


def test_a_min_learns_on_eviction() -> None:
    # round 2: 0 is evicted with 2 tokens; 2 has just arrived, its bound is 1, and one of them fits
    jobs = [*together(0, 3, 3, lower=1), Job(2, 0, 1, 1, 3)]
    assert chen.a_min(jobs, 4) == Run([3, 0, 2], [6, 3, 3], 1, "completed", 10)


def test_a_min_evicts_what_has_learned_least() -> None:
    # round 2: 3 + 3 > 4, and the lower bound decides before the rank
    jobs = [Job(0, 0, 3, 1, 3), Job(0, 0, 3, 2, 3)]
    assert chen.a_min(jobs, 4, rank=[1, 0]).starts == [2, 0]
    jobs = [Job(0, 0, 3, 2, 3), Job(0, 0, 3, 1, 3)]
    assert chen.a_min(jobs, 4, rank=[0, 1]).starts == [0, 2]


def test_a_max_with_unequal_intervals() -> None:
    jobs = [Job(0, 0, 1, 1, 4), Job(0, 0, 1, 1, 2), Job(0, 0, 1, 1, 2)]
    # 2 + 2 = 4 tokens at time 2; 4 waits until both are gone
    assert chen.a_max(jobs, 4, rank=[0, 1, 2]).starts == [1, 0, 0]
    assert chen.a_max(jobs, 3, rank=[0, 2, 1]).starts == [None, 1, 0]


def test_a_l_by_hand() -> None:
    # round 1: 0 and 2 are longer than l, go to the end, and 0 starts again at once
    run = chen.a_l(together(0, 3, 1, 3, lower=1), 4)
    assert run == Run([1, 0, 3], [4, 1, 6], 2, "completed", 11)


def test_a_l_queues_later_arrivals_behind_the_removed() -> None:
    jobs = [Job(0, 0, 3, 1, 3), Job(1, 0, 1, 1, 3), Job(2, 0, 1, 1, 3)]
    # round 1: the queue is 1, 0 and both start (1 + 1, then 2, 3); round 2: 2 fits beside 0
    run = chen.a_l(jobs, 3)
    assert run == Run([1, 1, 2], [4, 2, 3], 1, "completed", 6)
    jobs = [Job(0, 1, 3, 1, 3), Job(1, 3, 1, 1, 3), Job(2, 0, 1, 1, 3)]
    # round 1: the queue is 1, 0 and 1 fills the memory; round 2: 0 stands before 2, both fit
    run = chen.a_l(jobs, 4)
    assert run == Run([2, 1, 2], [5, 2, 3], 1, "completed", 7)


def test_a_l_removes_once() -> None:
    # bounds that say 2 of an output of 4: removed at 2 tokens, not again
    run = chen.a_l([Job(0, 0, 4, 2, 2)], 4)
    assert run == Run([2], [6], 1, "completed", 6)


def test_a_l_overflows_only_above_the_upper_bound() -> None:
    # removed at 1; at 3 both hold 2 and would hold 3: cleared, and again at 5
    run = chen.a_l([Job(0, 0, 4, 1, 1)] * 2, 4)
    assert run == Run([None, None], [None, None], 4, "livelock", None)


@pytest.mark.parametrize(
    ("lower", "upper", "switched"),
    [(1, 1, False), (1, 2, False), (1, 3, True), (381, 1000, True), (382, 1000, False)],
)
def test_the_switch(lower: int, upper: int, switched: bool) -> None:
    jobs = [Job(0, 0, lower, lower, upper), Job(0, 0, upper, lower, upper)]
    assert chen.prefers_a_l(jobs) is switched
    if upper < 4:
        expected = chen.a_l(jobs, 4) if switched else chen.a_min(jobs, 4)
        assert chen.a_switch(jobs, 4) == expected


def test_a_random_with_less_memory() -> None:
    jobs = together(0, 1, 2, 3)
    assert chen.a_random(jobs, 6, rank=[2, 1, 0]).starts == [0, 0, 0]
    # output 3 alone, as 2 would make 4 at 2, 5 at 3 or 4 at 3; the prefix keeps 1 waiting too
    assert chen.a_random(jobs, 6, rank=[2, 1, 0], override=3).starts == [3, 3, 0]
    assert chen.a_random(jobs, 6, rank=[2, 1, 0], override=2).starts == [None, None, None]


def test_bad_arguments() -> None:
    jobs = together(0, 1, 2)
    with pytest.raises(ValueError, match="permutation"):
        chen.a_min(jobs, 4, rank=[0, 0])
    with pytest.raises(ValueError, match="intervals"):
        chen.a_max(jobs, 4, [1, 1])
    with pytest.raises(ValueError, match="each"):
        jaillet.mc_sf(jobs, 4, [1])

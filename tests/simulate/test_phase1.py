"""Every solver of phase 1 against a search over all subsets, and against its pseudo-code."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from literal import wang_phase1 as literal

from kvopt.errors import InvalidInput
from kvopt.simulate.policies.phase1 import Auto, Candidate, Phase1, batches, solver
from kvopt.simulate.policies.phase1.batch import best_count, starts_together
from kvopt.simulate.policies.phase1.greedy import quantile, swap, swapped
from kvopt.simulate.policies.phase1.programs import dp, exact

Problem = tuple[list[Candidate], int]
SOLVERS: tuple[Phase1, ...] = ("exact", "dp", "swap", "quantile", "auto")


def problem(rng: random.Random, most: int = 8) -> Problem:
    """Draw a few candidates in tie order: narrow and wide, many alike."""
    memory = rng.randint(1, rng.choice([6, 14, 30]))
    pool = []
    for _ in range(rng.choice([2, 9])):
        prompt = rng.choice([0, rng.randint(0, memory - 1), min(memory - 1, rng.randint(0, 3))])
        output = rng.randint(1, min(memory - prompt, rng.choice([2, 6, 30])))
        pool.append((output, prompt))
    shapes = [rng.choice(pool) for _ in range(rng.randint(1, most))]
    return sorted(Candidate(*s, rng.randint(0, 2), at) for at, s in enumerate(shapes)), memory


def problems(count: int, seed: int, most: int = 8) -> Iterator[Problem]:
    rng = random.Random(seed)
    for _ in range(count):
        yield problem(rng, most)


def items(candidates: Sequence[Candidate]) -> list[literal.Item]:
    return [literal.Item(*candidate) for candidate in candidates]


@pytest.mark.slow
def test_exact_is_the_optimum_over_all_subsets() -> None:
    for waiting, memory in problems(3000, 1):
        assert items(exact(waiting, memory)) == literal.phase1_exact_brute(items(waiting), memory)


def test_dp_is_the_optimum_over_subsets_whose_peaks_fit() -> None:
    for waiting, memory in problems(3000, 2):
        assert items(dp(waiting, memory)) == literal.phase1_dp_brute(items(waiting), memory)


def test_dp_is_its_pseudo_code_on_larger_sets() -> None:
    for waiting, memory in problems(60, 3, most=30):
        assert items(dp(waiting, memory)) == literal.phase1_dp(items(waiting), memory)


def test_swap_is_its_pseudo_code() -> None:
    for waiting, memory in problems(2000, 5, most=20):
        assert items(swap(waiting, memory)) == literal.phase1_swap(items(waiting), memory)


def test_swaps_in_any_order_are_the_pseudo_code() -> None:
    rng = random.Random(6)
    for waiting, memory in problems(2000, 6, most=20):
        rng.shuffle(waiting)
        order = items(waiting)
        filled = literal.greedy_fill(order, memory)
        assert items(swapped(waiting, memory)) == literal.local_swap(filled, order, memory)


def test_ratios_of_large_peaks_are_exact() -> None:
    for seed, (waiting, memory) in enumerate(problems(300, 12, most=20)):
        large = [c._replace(output=c.output * 10**9, prompt=c.prompt * 10**9) for c in waiting]
        sample = random.Random(seed).sample(range(len(waiting)), max(1, len(waiting) // 2))
        expected = literal.phase1_quantile(items(large), memory * 10**9, sample)
        assert items(quantile(large, memory * 10**9, seed)) == expected


def test_quantile_is_its_pseudo_code() -> None:
    for seed, (waiting, memory) in enumerate(problems(2000, 7, most=20)):
        sample = random.Random(seed).sample(range(len(waiting)), max(1, len(waiting) // 2))
        expected = literal.phase1_quantile(items(waiting), memory, sample)
        assert items(quantile(waiting, memory, seed)) == expected


def test_a_batch_may_hold_more_than_all_peaks() -> None:
    waiting = [Candidate(1, 3, 0, 0), Candidate(3, 1, 0, 1)]
    assert exact(waiting, 6) == waiting
    assert dp(waiting, 6) == waiting[:1]
    assert starts_together(waiting, 6)
    assert not starts_together(waiting, 5)


def test_equal_batches_go_by_tie_order_whatever_they_weigh() -> None:
    # Positions 0 and 2 weigh least; 0 and 1 are as short and come first.
    waiting = [Candidate(2, 0, 0, 0), Candidate(2, 3, 0, 1), Candidate(2, 4, 0, 2)]
    assert [c.position for c in exact(waiting, 8)] == [0, 1]


def test_larger_batches_win_ties() -> None:
    assert best_count([0, 1, 4]) == 2  # 1 / 1 = 4 / 4
    assert best_count([0, 1, 5]) == 1
    assert best_count([0, None, 7, None]) == 2


@pytest.mark.parametrize("name", SOLVERS)
def test_batches_take_everybody_once(name: Phase1) -> None:
    solve = solver(name)
    for waiting, memory in problems(100, 9, most=12):
        shuffled = random.Random(9).sample(waiting, len(waiting))
        parts = list(batches(shuffled, memory, solve))
        assert all(part == sorted(part) for part in parts)
        assert sorted(c for part in parts for c in part) == waiting


def test_a_batch_is_solved_for_when_it_is_asked_for() -> None:
    asked = []

    def alone(waiting: Sequence[Candidate], memory: int) -> list[Candidate]:
        asked.append(memory)
        return [waiting[0]]

    parts = batches([Candidate(1, 1, 0, at) for at in range(3)], 9, alone)
    assert next(parts) == [Candidate(1, 1, 0, 0)]
    assert asked == [9]


def test_auto_goes_by_size() -> None:
    def used(count: int) -> dict[str, int]:
        solve = Auto()
        solve([Candidate(1, 1, 0, at) for at in range(count)], 20)
        return dict(solve.used)

    for count in (1, 100):
        assert used(count) == {"exact": 1}
    for count in (101, 999):
        assert used(count) == {"swap": 1}
    assert used(1000) == {"quantile": 1}


def test_memory_may_be_huge_when_everybody_fits() -> None:
    waiting = [Candidate(at, 10**12, 0, at) for at in range(1, 9)]
    assert exact(waiting, 10**15) == waiting


def test_unknown_solvers_are_refused() -> None:
    with pytest.raises(InvalidInput, match="phase1"):
        solver("best")  # type: ignore[arg-type]

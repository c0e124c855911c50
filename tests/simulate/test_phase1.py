"""Every solver of phase 1 and H-SF against all subsets, a table, and pseudo-code."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations

import numpy as np
import pytest
from effort import many
from literal import wang_phase1 as literal

from kvopt.errors import TooLarge
from kvopt.simulate.policies import startable_sets
from kvopt.simulate.policies.h_sf import largest_set
from kvopt.simulate.policies.phase1 import (
    Auto,
    Candidate,
    Phase1,
    batches,
    best_batch,
    best_count,
    columns,
    dp,
    exact,
    quantile,
    solver,
    starts_together,
    swap,
    swapped,
)

Running = Sequence[tuple[int, int]]
Problem = tuple[list[Candidate], int]
SOLVERS: tuple[Phase1, ...] = ("exact", "dp", "swap", "quantile", "auto")


def problem(rng: random.Random, most: int = 8, largest: int | None = None) -> Problem:
    """Draw a few candidates in tie order: narrow and wide, many alike."""
    memory = rng.randint(1, largest or rng.choice([6, 14, 30]))
    pool = []
    for _ in range(rng.choice([2, most])):
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


PSEUDO_CODE = {
    "exact, by all subsets": (exact, literal.phase1_exact_brute, 3000, 8),
    "dp, by all subsets": (dp, literal.phase1_dp_brute, 3000, 8),
    "dp, larger sets": (dp, literal.phase1_dp, 60, 30),
    "swap": (swap, literal.phase1_swap, 2000, 20),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PSEUDO_CODE)
def test_phase_1_is_its_pseudo_code(name: str) -> None:
    solve, slow, count, most = PSEUDO_CODE[name]
    for waiting, memory in problems(count, 1, most):
        assert items(solve(waiting, memory)) == slow(items(waiting), memory)


def test_swaps_in_any_order_are_the_pseudo_code() -> None:
    rng = random.Random(6)
    for waiting, memory in problems(2000, 6, most=20):
        rng.shuffle(waiting)
        order = items(waiting)
        filled = literal.greedy_fill(order, memory)
        assert items(swapped(waiting, memory)) == literal.local_swap(filled, order, memory)


@pytest.mark.parametrize(("count", "scale"), [(2000, 1), (300, 10**9)])
def test_quantile_is_its_pseudo_code_also_of_large_peaks(count: int, scale: int) -> None:
    for seed, (waiting, memory) in enumerate(problems(count, 7, most=20)):
        large = [c._replace(output=c.output * scale, prompt=c.prompt * scale) for c in waiting]
        sample = random.Random(seed).sample(range(len(waiting)), max(1, len(waiting) // 2))
        expected = literal.phase1_quantile(items(large), memory * scale, sample)
        assert items(quantile(large, memory * scale, seed)) == expected


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


def test_batches_are_solved_lazily() -> None:
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


# ---- sets that may start together


def in_a_table(waiting: list[Candidate], memory: int) -> list[Candidate]:
    """Return the best batch with an entry for each count and sum of prompts."""
    easy = waiting[: best_count([0, *accumulate(c.output for c in waiting)])]
    if starts_together(easy, memory):
        return easy
    count = sum(1 for held in accumulate(sorted(c.peak for c in waiting)) if held <= memory)
    count = max(count, 1)
    while True:  # with more members than peaks fit, until a further one finds no place
        sums = np.full((count + 2, memory + 1), 2**62)
        sums[0, 0], joined = 0, []
        for c in reversed(waiting):
            fits = np.add.outer(np.arange(count + 2) * c.output, np.arange(memory + 1)) <= memory
            total = np.full_like(sums, 2**62)
            total[1:, c.prompt :] = sums[:-1, : memory + 1 - c.prompt] + c.output
            joined.append(fits & (total <= sums) & (total < 2**62))
            sums = np.where(joined[-1], total, sums)
        if sums[count + 1].min() == 2**62:
            break
        count *= 2
    least = [int(total) if total < 2**62 else None for total in sums.min(axis=1)]
    size = best_count(least)
    alive, batch = sums[size] == least[size], []
    for c, taken in zip(waiting, reversed(joined), strict=True):
        here = taken[size] & alive
        if size and here.any():
            batch.append(c)
            alive = np.append(here[c.prompt :], np.zeros(c.prompt, np.bool_))
            size -= 1
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 10**9])
def test_the_best_batch_is_that_of_the_table(few: int) -> None:
    rng = random.Random(few)
    for most, largest, rounds in ((14, 40, 150), (90, 300, 40), (200, 2000, 4)):
        for _ in range(rounds if few == 0 else rounds // 6):
            waiting, memory = problem(rng, most, largest)
            best = best_batch(waiting, memory, grows=True, few_entries=few)
            assert best == in_a_table(waiting, memory)


@pytest.mark.slow
def test_many_equal_sums_go_by_tie_order() -> None:
    rng = random.Random(3)
    for _ in range(many(60)):
        memory = rng.randint(20, 400)
        waiting = sorted(
            Candidate(rng.randint(1, 4), rng.randint(0, 12), rng.randint(0, 1), at)
            for at in range(rng.randint(40, 120))
        )
        assert exact(waiting, memory) == in_a_table(waiting, memory)


def test_numbers_may_be_large() -> None:
    rng = random.Random(4)
    for _ in range(60):
        waiting, memory = problem(rng, 40, 300)
        large = [c._replace(output=c.output * 10**11, prompt=c.prompt * 10**11) for c in waiting]
        expected = [c.position for c in exact(waiting, memory)]
        assert [c.position for c in exact(large, memory * 10**11)] == expected


def fits(chosen: Sequence[Candidate], running: Running, memory: int) -> bool:
    ends = {candidate.output for candidate in chosen} | {rest for _, rest in running}
    return all(
        sum(c.prompt + end for c in chosen if c.output >= end)
        + sum(held + end for held, rest in running if rest >= end)
        <= memory
        for end in ends
    )


def largest_of_all(waiting: list[Candidate], running: Running, memory: int) -> list[int]:
    for size in range(len(waiting), 0, -1):
        sets = [
            (sum(waiting[place].output for place in places), places)
            for places in combinations(range(len(waiting)), size)
            if fits([waiting[place] for place in places], running, memory)
        ]
        if sets:
            return list(min(sets)[1])
    raise AssertionError("no request fits")


@pytest.mark.parametrize("few", [0, 10**9])
def test_the_largest_set_is_that_of_all_subsets(few: int) -> None:
    rng, sizes = random.Random(5), set()
    for _ in range(150):
        waiting, memory = problem(rng, 9, rng.choice([12, 30, 80]))
        running = [
            (rng.randint(0, memory // 2), rng.randint(1, memory)) for _ in range(rng.randint(0, 4))
        ]
        if not any(fits([candidate], running, memory) for candidate in waiting):
            continue
        found = largest_set(*columns(waiting), running, memory, few_entries=few)
        assert found == largest_of_all(waiting, running, memory)
        sizes.add(len(found))
    assert len(sizes) > 5


def test_too_many_sets_are_refused_and_auto_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startable_sets, "LARGEST", 1)
    waiting = sorted(Candidate(2 + at % 3, 5 - at % 3, 0, at) for at in range(9))
    with pytest.raises(TooLarge, match="sets"):
        exact(waiting, 20)
    solve = Auto()
    assert solve(waiting, 20) == swap(waiting, 20)
    assert solve.used == {"swap": 1}

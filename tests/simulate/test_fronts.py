"""Sets that may start together: against all subsets, and against a table of every weight."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate, combinations

import numpy as np
import pytest
from effort import many

from kvopt.errors import TooLarge
from kvopt.kernels.interruptible import interruptible
from kvopt.simulate.policies import fronts
from kvopt.simulate.policies.h_sf import largest_set
from kvopt.simulate.policies.phase1 import Auto, Candidate
from kvopt.simulate.policies.phase1.batch import best_count, columns, starts_together
from kvopt.simulate.policies.phase1.greedy import swap
from kvopt.simulate.policies.phase1.programs import exact

Running = Sequence[tuple[int, int]]


def waiting_and_memory(rng: random.Random, most: int, largest: int) -> tuple[list[Candidate], int]:
    memory = rng.randint(2, largest)
    shapes = []
    for at in range(rng.randint(1, most)):
        prompt = rng.choice([0, rng.randint(0, memory - 1), rng.randint(0, min(memory - 1, 9))])
        output = rng.randint(1, min(memory - prompt, rng.choice([3, 9, memory])))
        shapes.append(Candidate(output, prompt, rng.randint(0, 2), at))
    return sorted(shapes), memory


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
def test_the_best_batch_is_that_of_the_table(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "_FEW", few)
    rng = random.Random(few)
    for most, largest, rounds in ((14, 40, 150), (90, 300, 40), (200, 2000, 4)):
        for _ in range(rounds if few == 0 else rounds // 6):
            waiting, memory = waiting_and_memory(rng, most, largest)
            assert exact(waiting, memory) == in_a_table(waiting, memory)


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
        waiting, memory = waiting_and_memory(rng, 40, 300)
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
def test_the_largest_set_is_that_of_all_subsets(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "_FEW", few)
    rng, sizes = random.Random(5), set()
    for _ in range(150):
        waiting, memory = waiting_and_memory(rng, 9, rng.choice([12, 30, 80]))
        running = [
            (rng.randint(0, memory // 2), rng.randint(1, memory)) for _ in range(rng.randint(0, 4))
        ]
        if not any(fits([candidate], running, memory) for candidate in waiting):
            continue
        found = largest_set(*columns(waiting), running, memory)
        assert found == largest_of_all(waiting, running, memory)
        sizes.add(len(found))
    assert len(sizes) > 5


def test_too_many_sets_are_refused_and_auto_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "LARGEST", 1)
    waiting = sorted(Candidate(2 + at % 3, 5 - at % 3, 0, at) for at in range(9))
    with pytest.raises(TooLarge, match="sets"):
        exact(waiting, 20)
    solve = Auto()
    assert solve(waiting, 20) == swap(waiting, 20)
    assert solve.used == {"swap": 1}


def test_ctrl_c_in_compiled_code_is_ctrl_c() -> None:
    def raising(cause: BaseException) -> None:
        raise SystemError("a result with an exception set") from cause

    with pytest.raises(KeyboardInterrupt):
        interruptible(raising)(KeyboardInterrupt())
    with pytest.raises(SystemError):
        interruptible(raising)(ValueError())

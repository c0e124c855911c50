"""What pausing is worth: instances and families of ``docs/pausing.md``, by brute force."""

from __future__ import annotations

import pause_oracle
import pytest
from oracle import Triple, optimum

from kvopt import Instance, Request, Schedule, solve

FOUND: list[tuple[int, list[Triple], int, int]] = [
    (2, [(0, 0, 2)] * 2, 6, 5),
    (8, [(0, 0, 8)] * 3, 48, 37),
    (7, [(0, 0, 7)] * 2 + [(0, 1, 6)], 39, 30),
    (6, [(0, 0, 6)] * 4, 60, 44),
    (5, [(0, 0, 5)] * 4 + [(0, 1, 4)], 70, 50),
    (6, [(0, 0, 6), (2, 5, 1), (5, 5, 1)], 14, 10),
    (4, [(0, 0, 2), (0, 2, 2), (3, 2, 1), (4, 2, 1)], 10, 7),
]
"""Memory, requests, the optimum of runs and the one with pauses."""


@pytest.mark.parametrize(("memory", "requests", "runs", "paused"), FOUND)
def test_the_instances_that_hunts_found(
    memory: int, requests: list[Triple], runs: int, paused: int
) -> None:
    assert optimum(memory, requests)[0] == runs
    assert pause_oracle.optimum(memory, requests) == paused


@pytest.mark.parametrize(("count", "memory"), [(1, 4), (2, 4), (2, 7), (3, 4), (3, 6)])
def test_requests_that_need_all_memory_at_last_run_one_by_one(count: int, memory: int) -> None:
    requests = [(0, 0, memory)] * count
    assert 2 * optimum(memory, requests)[0] == memory * count * (count + 1)
    least = (memory + 1) * count * (count + 1) / 4  # by volume
    assert pause_oracle.optimum(memory, requests) >= least


def family(k: int, gap: int) -> tuple[int, list[Triple]]:
    """Return a long request, and short ones that keep interrupting it."""
    memory, shorts = k * gap, k * (k - 1) // 2
    return memory, [(0, 0, memory), *((j * gap, memory - 1, 1) for j in range(1, shorts + 1))]


@pytest.mark.parametrize(("k", "gap"), [(2, 3), (2, 5), (3, 4)])
def test_short_requests_make_pauses_worth_any_factor(k: int, gap: int) -> None:
    memory, requests = family(k, gap)
    shorts = k * (k - 1) // 2
    assert optimum(memory, requests)[0] >= (k + shorts) * gap + shorts
    assert pause_oracle.optimum(memory, requests) <= k * gap + shorts + k


@pytest.mark.slow
def test_the_factor_grows() -> None:
    memory, requests = family(5, 40)
    instance = Instance(memory, [Request(*triple) for triple in requests])
    runs = solve(instance, time_limit=30).lower_bound
    arrivals = [arrival for arrival, _, _ in requests[1:]]
    long = [time for time in range(1, 2 * memory) if time - 1 not in arrivals][:memory]
    paused = Schedule.at_times(instance, [long, *([a + 1] for a in arrivals)])
    assert paused.check().feasible
    assert (runs, paused.objective) == (611, 215)

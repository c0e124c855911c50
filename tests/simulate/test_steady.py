"""The steady family, and the paced policy."""

from __future__ import annotations

from itertools import pairwise

import pytest
from brute_force import load
from hypothesis import given
from hypothesis import strategies as st
from strategies import instances, plain

from kvopt import Instance, generate, run


def test_the_default_cache_holds_one_request_of_each_age() -> None:
    instance = generate("steady", parameters={"rate": 3, "rounds": 50, "output": 7, "prompt": 2})
    assert instance.memory == sum(2 + age for age in range(1, 8))
    found = run(instance, "paced")
    assert found.peak_memory == instance.memory
    starts = sorted(start for start in found.starts if start is not None)
    assert starts == list(range(len(instance)))


@pytest.mark.slow
@given(instances(), st.integers(1, 4))
def test_paced_keeps_its_pace_its_memory_and_its_order(instance: Instance, gap: int) -> None:
    found = run(instance, f"paced:gap={gap}")
    assert found.schedule is not None
    order = sorted(range(len(instance)), key=lambda i: (instance.requests[i].arrival, i))
    starts = [found.schedule.starts[i] for i in order]
    assert all(after - before >= gap for before, after in pairwise(starts))
    memory, requests = plain(instance)
    for time in range(found.makespan + 1):
        assert load(requests, found.schedule.starts, time) <= memory
    for k, i in enumerate(order):  # each starts as early as the pause and the others let it
        request, earlier = instance.requests[i], order[:k]
        begin = max(request.arrival, starts[k - 1] + gap if k else 0)
        for start in range(begin, starts[k]):
            chosen = [requests[j] for j in (*earlier, i)]
            tried = [*(found.schedule.starts[j] for j in earlier), start]
            ends = [k + o for (_, _, o), k in zip(chosen, tried, strict=True)]
            assert max(load(chosen, tried, end) for end in ends) > memory


def test_outputs_are_drawn_between_their_ends() -> None:
    keys = {"rounds": 300, "output": 5, "least": 2}
    outputs = {r.output for r in generate("steady", seed=2, parameters=keys)}
    assert outputs == {2, 3, 4, 5}

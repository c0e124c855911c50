"""Volumes and staircases: the fluid is what it is said to be, claims above are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from certificates import proved, verified
from definitions import fluid
from effort import many
from hypothesis import given
from hypothesis import strategies as st
from known import known
from literal.configurations import staircase
from strategies import Problem, instance_of, random_feasible_starts, random_instances

from kvopt import Certificate, Instance, Request, Schedule, bound, generate, run, verify
from kvopt.bounds.staircases import units_needed
from kvopt.bounds.volume import fluid_completions, volume_bound, volume_bounds_without_each
from kvopt.certificates import write_certificate
from kvopt.incumbent.proofs import CheckedBound, Staircase, VolumeProof
from kvopt.verify.certified_problem import Request as Plain
from kvopt.verify.step_budget import Unreadable


def test_no_schedule_completes_before_the_fluid() -> None:
    source = random.Random(11)
    for instance in random_instances(many(300), seed=11, most_requests=9, most_memory=14):
        fluid = fluid_completions([(r.arrival, r.volume) for r in instance], instance.memory)
        starts = random_feasible_starts(instance, source)
        completions = sorted(Schedule(instance, starts).completions)
        assert all(f <= c for f, c in zip(fluid, completions, strict=True))


@pytest.mark.parametrize(
    ("problem", "best"), [((4, ((0, 0, 2), (0, 2, 1))), 3), ((5, ((2, 2, 3), (4, 3, 2))), 6)]
)
def test_combining_by_request_or_a_fixed_priority_would_pass_the_optimum(
    problem: Problem, best: int
) -> None:
    assert optimum(*problem) == volume_bound(instance_of(*problem)) == best


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=8), st.integers(1, 12))
def test_the_fluid_is_served_drop_by_drop(jobs: list[tuple[int, int]], memory: int) -> None:
    requests = [Plain(arrival, 0, 1) for arrival, _ in jobs]
    literal = fluid(requests, [volume for _, volume in jobs], memory)
    assert fluid_completions(jobs, memory) == literal


def test_fluid_counts_rounds_of_astronomic_length_exactly() -> None:
    memory = 2**53 - 1
    assert fluid_completions([(10**15, memory), (10**15, 1)], memory) == [10**15 + 1, 10**15 + 2]


def test_bounds_without_each_equal_removing_it() -> None:
    for instance in random_instances(many(150), seed=7, most_requests=7):
        requests = instance.requests
        rests = ([*requests[:i], *requests[i + 1 :]] for i in range(len(requests)))
        removed = [volume_bound(Instance(instance.memory, rest)) for rest in rests]
        assert volume_bounds_without_each(instance) == removed


def test_bounds_without_each_of_many_kinds_stay_valid() -> None:
    kinds = [Request(arrival, 1, output) for arrival in range(101) for output in range(1, 11)]
    instance = Instance(12, kinds)
    cheap = volume_bounds_without_each(instance)
    for i in (0, 500, len(kinds) - 1):
        rest = Instance(12, kinds[:i] + kinds[i + 1 :])
        assert rest.total_output == cheap[i] <= volume_bound(rest)


def test_nothing_to_do_costs_nothing() -> None:
    empty = Instance(3, [])
    assert volume_bound(empty) == 0
    assert volume_bounds_without_each(empty) == []
    assert fluid_completions([], 3) == []


# ---- volumes of staircases


def drawn(source: random.Random, memory: int) -> Staircase:
    steps = source.randint(1, min(memory, 5))
    return tuple(sorted(source.randint(1, memory) for _ in range(steps)))


def test_units_are_the_states_that_a_request_passes() -> None:
    source = random.Random(1)
    for _ in range(300):
        memory = source.randint(1, 16)
        thresholds = drawn(source, memory)
        chosen = staircase(memory, thresholds)
        shapes = [(s, o) for s in range(memory) for o in range(1, memory - s + 1)]
        passed = [sum((s + g, o - g) in chosen for g in range(1, o + 1)) for s, o in shapes]
        prompts, outputs = np.array(shapes, dtype=np.int64).T
        assert units_needed(memory, thresholds, prompts, outputs).tolist() == passed


def test_it_raises_the_bound_of_papers_families() -> None:
    instance = generate("arrival-1", seed=0)
    found = bound(instance, "volume")
    assert known(found.value) > 1.15 * volume_bound(instance)
    verified(Certificate(instance, known(run(instance, "svf").schedule), found.checked))


def test_a_claim_above_is_refused(tmp_path: Path) -> None:
    instance = generate("arrival-1", seed=0)
    schedule = Schedule(instance, run(instance, "svf").starts)
    found = known(bound(instance, "volume").checked)
    assert isinstance(found.proof, VolumeProof)
    assert found.proof.staircases
    path = tmp_path / "certificate.json"
    write_certificate(
        Certificate(instance, schedule, CheckedBound(found.value + 1, "volume", found.proof)), path
    )
    assert verify(path).exit_status == 1
    write_certificate(
        Certificate(instance, schedule, CheckedBound(found.value, "volume", VolumeProof())), path
    )
    assert verify(path).exit_status == 1


@pytest.mark.slow
def test_too_many_staircases_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 1_000_000)
    instance = generate("arrival-1", n=5, seed=0)
    proof: dict[str, Any] = {"kind": "volume", "staircases": [[1]] * 20_000}
    with pytest.raises(Unreadable):
        proved(instance, proof)


@pytest.mark.parametrize("many", [64, 2_100])
def test_outputs_near_the_limit_leave_the_volume_bound(many: int) -> None:
    """Sums of completions would not fit into 64 bits."""
    most = 2**53 - 1
    instance = Instance(most, [Request(0, 0, most)] * many)
    assert bound(instance, "volume").value == volume_bound(instance)

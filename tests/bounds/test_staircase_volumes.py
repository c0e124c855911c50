"""Volumes of staircases: counted literally, below the optimum, checked by the verifier."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certificates import proved
from known import known
from literal.configurations import staircase

from kvopt import Certificate, Instance, Request, Schedule, bound, generate, run, verify
from kvopt.bounds.staircases import units_needed
from kvopt.bounds.volume import volume_bound
from kvopt.certificates import write_certificate
from kvopt.incumbent.proofs import CheckedBound, Staircase, VolumeProof
from kvopt.verify.work import Invalid, Unreadable


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


def test_it_raises_the_bound_of_papers_families(tmp_path: Path) -> None:
    instance = generate("arrival-1", seed=0)
    found = bound(instance, "volume")
    assert known(found.value) > 1.15 * volume_bound(instance)
    schedule = run(instance, "svf").schedule
    path = tmp_path / "certificate.json"
    write_certificate(Certificate(instance, known(schedule), found.checked), path)
    assert verify(path).valid


def test_a_claim_above_is_refused(tmp_path: Path) -> None:
    instance = generate("arrival-1", seed=0)
    schedule = Schedule(instance, run(instance, "svf").starts)
    found = bound(instance, "volume").checked
    assert found is not None
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


@pytest.mark.parametrize("thresholds", [[], [0], [-1, 2], [3, 2]])
def test_thresholds_that_are_none(thresholds: list[int]) -> None:
    instance = generate("arrival-1", n=5, seed=0)
    with pytest.raises(Invalid):
        proved(instance, {"kind": "volume", "staircases": [thresholds]})


@pytest.mark.slow
def test_too_many_staircases_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvopt.verify.work.STEPS", 1_000_000)
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

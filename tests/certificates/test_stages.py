"""`certify` works in stages on one incumbent: what one found, the next goes on with."""

from __future__ import annotations

import random

import pytest
from certificates import verified
from known import known

from kvopt import Instance, Request, bound, certify, solve
from kvopt.incumbent.proofs import ConfigurationProof, PriceProof, SplitProof
from kvopt.search import stages

pytestmark = pytest.mark.slow

MEMORY = 30_000


def with_many_configurations(n: int, seed: int = 3) -> Instance:
    """Return an instance with too many configurations to price."""
    source = random.Random(seed)
    drawn = [(source.randrange(4000, 12_000), source.randrange(50, 300)) for _ in range(n)]
    return Instance(MEMORY, [Request(source.randrange(20), *each) for each in drawn])


@pytest.fixture
def unsearched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not search cases: what proves the bound are the prices."""
    monkeypatch.setattr(stages, "has_few_cases", lambda _: False)


@pytest.mark.usefixtures("unsearched")
def test_a_claim_of_a_solver_has_a_note_and_no_certificate() -> None:
    instance = with_many_configurations(7)
    found = certify(instance, time_limit=20)
    assert found.objective == solve(instance, "cpsat", time_limit=60).lower_bound
    assert found.objective is not None
    assert known(found.lower_bound) < found.objective
    assert any(f"claims that no schedule is below {found.objective:,}" in n for n in found.notes)
    assert found.provenance["stop_reason"] == "no-engine"
    assert found.provenance["bounded_by"] in ("lp", "lagrangian")
    verified(found)


@pytest.mark.usefixtures("processor_clock", "unsearched")
def test_each_part_keeps_the_best_proof_of_all_stages() -> None:
    """Prices come from the first stage, where they are needed, configurations from the second."""
    large, source = with_many_configurations(7), random.Random(2)
    drawn = [(source.randrange(6000, 14_000), source.randrange(3, 9)) for _ in range(7)]
    small = Instance(MEMORY, [Request(source.randrange(4), *each) for each in drawn])
    later = [Request(r.arrival + 10_000, r.prompt, r.output) for r in small]
    found = certify(Instance(MEMORY, [*large.requests, *later]), time_limit=2)
    assert found.lower is not None
    assert isinstance(found.lower.proof, SplitProof)
    first, last = (part.proof for part in found.lower.proof.parts)
    assert isinstance(first, PriceProof)
    assert isinstance(last, ConfigurationProof)
    at_first, quickly = bound(large, time_limit=20).value, bound(small, "volume").value
    assert at_first is not None
    optimum = known(solve(small, "cpsat", time_limit=60).objective)
    assert at_first + known(quickly) < found.lower.value <= at_first + optimum
    verified(found)

"""`SolveResult.certificate` writes what `certify` writes, for each kind of problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import brute_force
import pytest
from certificates import verified
from known import known

from kvopt import BatchTime, Instance, Line, Request, certify, read_certificate, solve
from kvopt.certificates import write_certificate

pytestmark = pytest.mark.usefixtures("few_steps")

ROWS = [(0, 3, 2), (1, 0, 4), (2, 2, 3), (2, 1, 5)]
MODEL = BatchTime([Line(9, 0), Line(0, 3)], kv_ns=1, prompt_ns=1)


def made(**more: Any) -> Instance:
    return Instance(8, [Request(*row) for row in ROWS], round_ms=1e-5, **more)


WEIGHTED = Instance(8, [Request(0, 3, 2, weight=3), Request(1, 0, 4), Request(2, 2, 3)])
KINDS: dict[str, tuple[Instance, dict[str, Any]]] = {
    "rounds": (made(), {}),
    "nothing": (Instance(8, []), {}),
    "a fleet": (made(workers=2), {}),
    "blocks": (made(block_size=4), {}),
    "pauses": (made(), {"scope": "pauses"}),
    "weights": (WEIGHTED, {}),
    "a limit of active requests": (made(max_active=1), {}),
    "a service level": (made(), {"slo": "e2e=5"}),
    "seconds": (made(), {"clock": "seconds", "batch_time": MODEL}),
    "a fleet in seconds": (made(workers=2), {"clock": "seconds", "batch_time": MODEL}),
    "a service level in seconds": (
        made(), {"clock": "seconds", "batch_time": MODEL, "slo": "ttft=30ns,tpot=9ns"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_certificate_of_a_result_is_valid_and_holds_both_sides(kind: str, tmp_path: Path) -> None:
    instance, options = KINDS[kind]
    result = solve(instance, checkable=True, **options)
    found, path = result.certificate(), tmp_path / "cert.json"
    verified(found)
    write_certificate(found, path)
    again = read_certificate(path)
    assert (again.objective, again.scope) == (result.objective, result.scope)
    assert again.lower_bound == known(result.checked).value
    assert (found.provenance["seed"], found.clock) == (result.seed, result.clock)
    if result.in_time is not None:
        assert known(again.in_time).ceiling == result.in_time.ceiling
    theirs = certify(instance, **options)
    assert (found.objective, found.lower_bound) == (theirs.objective, theirs.lower_bound)
    assert found.provenance.keys() == theirs.provenance.keys()


def test_certificate_leaves_out_a_bound_that_only_a_solver_claims() -> None:
    instance = Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)])
    result = solve(instance, "highs", quick_start=False)
    best = brute_force.optimum(9, [(0, 1, o) for o in (3, 4, 5, 7)])
    assert (result.objective, result.lower_bound, result.bound_source) == (best, best, "solver")
    found = result.certificate()
    assert found.lower_bound is None
    assert any("claims" in note for note in found.notes)
    assert found.provenance["stop_reason"] == "no-engine"
    verified(found)


def test_certificate_without_a_schedule_names_its_instance() -> None:
    result = solve(made(), time_limit=0, quick_start=False)
    found = result.certificate()
    assert (found.instance, found.objective) == (result.instance, result.objective)
    verified(found)

"""Shares of prefixes: plain instances below every schedule with sharing, against brute force."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from brute_force import optimum
from effort import many
from known import known
from msgspec import to_builtins
from strategies import drawn_with_prefixes, optimum_of, plain

from kvopt import (
    Instance,
    InvalidInput,
    Request,
    Scope,
    bound,
    certify,
    generate,
    run,
    solve,
    verify,
)
from kvopt.bounds import prefix_shares
from kvopt.bounds.prefix_shares import shared_out, users_together
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.verify.certified_problem import hash_of, problem_of, relaxed

pytestmark = pytest.mark.usefixtures("processor_clock")


def least(instance: Instance) -> int:
    """Return the optimum of an instance without prefixes by brute force."""
    return optimum(*plain(instance))


def test_no_share_passes_an_optimum() -> None:
    exact = 0
    for seed in range(many(150)):
        instance = drawn_with_prefixes(seed, is_common=seed % 4 == 0)
        shared, best = shared_out(instance), optimum_of(instance)
        assert not shared.extras
        assert least(shared) <= best, seed
        if not instance.without_common_prefix().extras:
            assert least(shared) == best, seed
            exact += 1
    assert exact > many(150) // 10


def test_all_of_a_common_prefix_leaves_memory_and_prompts() -> None:
    requests = [
        Request(0, 9, 2, prefix=[*"ab"]),
        Request(1, 8, 3, prefix=[*"ab"]),
        Request(2, 8, 1, prefix=[*"ab"]),
    ]
    instance = Instance(14, requests, block_tokens=4)
    assert shared_out(instance) == Instance(
        6, [Request(0, 1, 2), Request(1, 0, 3), Request(2, 0, 1)]
    )
    result = solve(instance)
    assert (result.objective, result.lower_bound) == (least(shared_out(instance)),) * 2
    assert result.schedule is not None
    assert (result.schedule.instance, result.schedule.scope) == (instance, Scope.SHARING)
    for workers in (1, 2):
        fleet = replace(instance, workers=workers)
        engine = "exact" if workers == 1 else "cpsat"
        found = solve(fleet, engine)
        assert (found.objective, found.lower_bound) == (optimum_of(fleet),) * 2
        assert (found.engine, found.scope) == (engine, Scope.SHARING)
    with pytest.raises(InvalidInput, match="prefix: is not known by the engine exact"):
        solve(FOREST, "exact")


def test_no_more_users_of_a_node_count_than_fit_together() -> None:
    path = [Request(0, 4 + own, 2, prefix=("a",)) for own in (0, 1, 2, 3)]
    alone = Request(0, 0, 1)
    assert users_together(Instance(11, [*path, alone], block_tokens=4)) == [3]  # 4 + 1 + 2 + 3 fit
    assert users_together(Instance(10, [*path, alone], block_tokens=4)) == [3]
    assert users_together(Instance(9, [*path, alone], block_tokens=4)) == [2]
    assert users_together(Instance(99, [*path, alone], block_tokens=4)) == [4]
    assert users_together(Instance(99, [*path, alone], block_tokens=4, max_active=2)) == [2]
    prompts = [
        request.prompt for request in shared_out(Instance(9, [*path, alone], block_tokens=4))
    ]
    assert prompts == [2, 3, 4, 5, 0]


def test_floors_are_of_whole_sums() -> None:
    paths = [[*"ab"], [*"ab"], [*"ac"], [*"ac"], [*"ac"]]
    requests = [Request(0, 10, 1, prefix=path) for path in paths]
    instance = Instance(99, [*requests, Request(0, 0, 1)], block_tokens=5)
    assert [request.prompt for request in shared_out(instance)] == [3, 3, 2, 2, 2, 0]


def certificate_of(instance: Instance) -> dict[str, Any]:
    found = certify(instance, ["lpm"], time_limit=10.0)
    value: dict[str, Any] = json.loads(certificate_text(found))
    return value


FOREST = Instance(
    12,
    [
        Request(0, 5, 2, prefix=("a", "b")),
        Request(0, 4, 3, prefix=("a", "b")),
        Request(1, 4, 2, prefix=("a", "c")),
        Request(1, 7, 1),
    ],
    block_tokens=2,
)


def verdict(value: dict[str, Any], path: Path) -> str:
    path.write_text(json.dumps(value))
    return verify(path).lines[-1]


def test_false_claims_about_shares_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, value = tmp_path / "some.json", certificate_of(FOREST)
    assert verdict(value, path) == "VALID"
    lines = verify(path).lines
    assert any("with a share of its prefix for each request" in line for line in lines)
    assert Scope.SHARING.sentence in lines
    lost = json.loads(json.dumps(value))
    del lost["instance"]["requests"][0]["prefix"][1]
    assert "hash" in verdict(lost, path)
    lost["hash"] = hash_of(lost["instance"])
    assert verdict(lost, path).startswith("INVALID: upper: 1")  # holds a block of its own more
    twice = json.loads(json.dumps(value))
    twice["instance"]["requests"][3]["prefix"] = ["b"]
    twice["hash"] = hash_of(twice["instance"])
    assert "follows two others" in verdict(twice, path)
    for scope in ("runs", "pauses"):
        assert verdict({**value, "scope": scope}, path).startswith("INVALID: instance: prefixes")
    for method in ("volume", "lagrangian"):
        monkeypatch.setattr(prefix_shares, "users_together", lambda _, **__: [3, 2])
        right = bound(FOREST, method).checked
        monkeypatch.setattr(prefix_shares, "users_together", lambda _, **__: [1, 1])
        wrong = bound(FOREST, method).checked
        assert right is not None
        assert wrong is not None
        assert right.value < wrong.value
        for found, expected in ((right, "VALID"), (wrong, "INVALID: lower: says")):
            steps = {"relaxations": found.relaxations}
            lower = {"value": found.value, **steps, "proof": to_builtins(found.proof)}
            assert verdict({**value, "lower": lower}, path).startswith(expected)


def test_the_checker_shares_out_as_bounds_do() -> None:
    for seed in range(many(100)):
        instance = drawn_with_prefixes(seed, is_common=seed % 4 == 0)
        if "prefix" not in instance.extras:
            continue
        text = certificate_text(Certificate(instance, None, None, scope=Scope.SHARING))
        problem, _, _ = relaxed(problem_of(json.loads(text)), ["shares"])
        shared = shared_out(instance)
        assert (problem.memory, [tuple(r) for r in problem.requests]) == (
            shared.memory, [r.kind for r in shared]
        )  # fmt: skip


def test_blocks_that_nobody_shares_cost_nothing() -> None:
    alone = [Request(i, 6 + i, 2 + i, prefix=(f"a{i}",)) for i in range(4)]
    instance = Instance(14, alone, block_tokens=3)
    assert shared_out(instance) == instance.without_prefixes()
    assert bound(instance, "volume").value == bound(instance, "volume", scope="runs").value


def test_a_short_limit_leaves_time_for_a_scheduler() -> None:
    instance = generate("agents", n=60, seed=1, parameters={"rate": 0.05})
    found = solve(instance, time_limit=0.7, threads=1)
    waiting = run(instance, "svf").objective
    assert known(found.objective) <= known(waiting)

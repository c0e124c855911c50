"""Prices of tokens and shared nodes, against brute force and by the checker."""

from __future__ import annotations

import json
import random
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certificates import prices_proof
from definitions import by_definition
from drawn_claims import shared_prices
from effort import many
from known import known
from msgspec import convert, to_builtins
from strategies import drawn_with_prefixes, optimum_of

from kvopt import Instance, Request, Scope, bound, verify
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.limits import limits_of
from kvopt.incumbent.proofs import CheckedBound, PriceProof, Proof
from kvopt.kernels.budget import Budget
from kvopt.problem.problem import as_problem
from kvopt.search.stages import bound_by_shared_prices
from kvopt.verify.certified_problem import Problem, problem_of
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import Invalid, Work

pytestmark = pytest.mark.usefixtures("processor_clock")


def shared(seed: int) -> Instance | None:
    """Return a small instance that shares more than one prefix of all, of two workers at times."""
    instance = drawn_with_prefixes(seed, 4, is_common=seed % 4 == 0)
    if not instance.without_common_prefix().forest.weights:
        return None
    return replace(instance, workers=2) if seed % 5 == 0 else instance


def offered(instance: Instance, seconds: float = 0.05) -> CheckedBound:
    search = Search(as_problem(instance), limits_of({}), checkable=True)
    bound_by_shared_prices(search, Budget(seconds))
    return known(search.checked)


def problem_from(instance: Instance) -> Problem:
    text = certificate_text(Certificate(instance, None, None, scope=Scope.SHARING))
    return problem_of(json.loads(text))


def test_no_prices_pass_an_optimum_and_the_checker_finds_the_same() -> None:
    tight = 0
    for seed in range(many(30)):
        if (instance := shared(seed)) is None:
            continue
        found, best = offered(instance), optimum_of(instance)
        assert found.value <= best, seed
        tight += found.value == best
        said = to_builtins(found.proof)
        assert convert(said, Proof) == found.proof
        for evaluated in (nullcontext, by_definition):
            with evaluated():
                value, _ = value_of_proof(problem_from(instance), said, Work())
            assert value == found.value, seed
    assert tight


def test_whatever_the_checker_takes_is_below_the_optimum() -> None:
    taken = refused = 0
    for seed in range(many(60)):
        if (instance := shared(seed)) is None:
            continue
        problem, best, rng = problem_from(instance), optimum_of(instance), random.Random(seed)
        for _ in range(20):
            proof = shared_prices(problem, rng)
            try:
                value, _ = value_of_proof(problem, proof, Work())
            except Invalid:
                refused += 1
                continue
            assert value <= best, (seed, proof)
            with by_definition():
                assert value_of_proof(problem, proof, Work())[0] == value
            taken += 1
    assert taken > refused > 0


PAIR = Instance(
    13, [Request(0, 8, 2, prefix=("a",)), Request(5, 9, 2, prefix=("a",)), Request(0, 3, 9)],
    block_tokens=6,
)  # fmt: skip
SHARES: dict[str, Any] = {
    "name": "prefixes", "denominator": 2, "times": [0, 5, 9], "numerators": [[2, 1], [9, 1]],
}  # fmt: skip


def by_shares(**changed: Any) -> dict[str, Any]:
    """Return prices of tokens, with shares of prefixes."""
    proof = prices_proof(4, 1, [1] * 8)
    return {**proof, "resources": [*proof["resources"], {**SHARES, **changed}]}


def test_a_user_pays_for_all_until_the_next_one_comes() -> None:
    value, _ = value_of_proof(problem_from(PAIR), by_shares(), Work())
    halves = by_shares(numerators=[[1, 1], [1, 1]])
    assert value > value_of_proof(problem_from(PAIR), halves, Work())[0]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"numerators": [[2, 2], [9, 1]]}, "active together pass 1"),
        ({"times": [0, 6, 9]}, "active together pass 1"),
        ({"numerators": [[2, 1]]}, "has not a share of each node"),
        ({"numerators": [[2, 1], [0, 1], [0, 0]]}, "has not a share of each node"),
        ({"numerators": [[2, 1], [0]]}, "negative or missing"),
        ({"numerators": [[2, -1], [0, 1]]}, "negative or missing"),
        ({"denominator": 0}, "denominators, .* are at least 1"),
        ({"times": [5, 0, 9]}, "ascend from 0"),
    ],
)
def test_wrong_shares_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        value_of_proof(problem_from(PAIR), by_shares(**changed), Work())


def test_users_that_do_not_fit_together_pay_for_all_each() -> None:
    together = replace(PAIR, requests=[replace(r, arrival=0) for r in PAIR])
    both = by_shares(numerators=[[2, 2], [2, 2]])
    with pytest.raises(Invalid, match="pass 1"):
        value_of_proof(problem_from(together), both, Work())
    for apart in (replace(together, memory=12), replace(together, max_active=1)):
        value_of_proof(problem_from(apart), both, Work())


def sessions(count: int) -> Instance:
    """Return pairs of requests that share most of their prompts, the second one much later."""
    rows = []
    for i in range(count):
        rows.append(Request(0, 40 + i % 7, 5 + i % 3, prefix=(f"s{i}",)))
        rows.append(Request(60 + i, 44 + i % 5, 2 + i % 9, prefix=(f"s{i}",)))
    return Instance(200, rows, block_tokens=32)


def test_sessions_are_bounded_by_shares_that_change(tmp_path: Path) -> None:
    instance = sessions(20)
    found, plain = offered(instance, 0.3), bound(instance, "lagrangian", time_limit=0.3)
    assert found.value > 1.03 * known(plain.value)
    assert isinstance(known(bound(instance, time_limit=0.5).checked).proof, PriceProof)
    certificate = Certificate(instance, None, found, scope=Scope.SHARING)
    (tmp_path / "c.json").write_text(certificate_text(certificate))
    lines = verify(tmp_path / "c.json").lines
    assert lines[-1] == "VALID"
    assert any("prices of tokens and prefixes" in line for line in lines)

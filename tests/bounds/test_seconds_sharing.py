"""Bounds in seconds with shared prefixes: below every optimum, and checked in integers."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from brute_force import Row, Server, optimum
from definitions import by_definition
from effort import many
from msgspec import structs
from strategies import batch_time, drawn_with_prefixes, rows_of
from test_seconds_bounds import MODELS

from kvopt import Instance, Progress, Request, Scope, bound, certify, solve, verify
from kvopt.bounds.prefix_shares import Processed, processed, shared_out
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.seconds_evaluation import FULL, shares_bound
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.proofs import SharesProof
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.problem import Problem
from kvopt.verify.certified_problem import problem_of
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import Work


def before_moves(now: Progress) -> bool:
    """End a search once all runs have been tried: moves prove nothing, and go on for long."""
    return now.engine == "routers"


def drawn_in_seconds(seed: int, most: int = 4) -> tuple[Instance, Server, list[Row]]:
    """Return a small instance, a server, and its requests as rows that arrive in nanoseconds."""
    rng = Random(seed)
    server, late = Server(*rng.choice(MODELS)), rng.choice((0, 3, 11))
    instance = drawn_with_prefixes(seed, most, is_common=seed % 4 == 0)
    requests = [replace(r, arrival_seconds=r.arrival * late / 10**9) for r in instance]
    rows = [(row[0] * late, *row[1:]) for row in rows_of(instance)]
    return replace(instance, requests=requests), server, rows


def drawn_proof(rng: Random, lines: int, count: int) -> SharesProof:
    """Return any proof that fits."""
    weights = [rng.choice((0, 1, 20, FULL - 1, FULL)) for _ in range(count)]
    company = [rng.choice((0, (FULL - w) // 2, FULL - w)) for w in weights]
    chosen = tuple(rng.sample(range(lines), rng.randint(1, lines)))
    return SharesProof(chosen, tuple(weights), tuple(company), parts=rng.randint(0, 3))


def least(instance: Instance, server: Server, rows: list[Row], **more: Any) -> int:
    """Return the optimum; workers have caches of their own."""
    workers, unit = instance.workers, instance.block_tokens or 1
    return optimum(instance.memory, rows, workers=workers, unit=unit, server=server, **more)


@pytest.mark.parametrize("part", range(4))
def test_no_bound_passes_an_optimum(part: int) -> None:
    tight, count = 0, many(30)
    for seed in range(part * count, (part + 1) * count):
        instance, server, rows = drawn_in_seconds(seed)
        best = least(instance, server, rows)
        model, rng = batch_time(server), Random(seed)
        value = seconds_bound(instance, model, scope="sharing").value_ns
        assert value <= best, seed
        tight += value > 0.999 * best
        shared, done = shared_out(instance), processed(instance, [row[0] for row in rows])
        for _ in range(3):
            proof = drawn_proof(rng, len(server.lines), len(instance))
            assert shares_bound(shared, model, proof, done=done) <= best, seed
    assert tight > count // 20


@pytest.mark.parametrize("scope", ["pauses", "chunks", "pauses+chunks"])
def test_whoever_computes_a_block_and_in_pieces_it_is_computed(scope: str) -> None:
    """The first user to arrive counts it, although others may compute it, and parts of it."""
    tight, count = 0, many(25)
    covered, chunks = Scope.parse(scope).joined(Scope.SHARING), "chunks" in scope
    for seed in range(count):
        instance, server, rows = drawn_in_seconds(seed, 3)
        best = least(instance, server, rows, scope=scope)
        model, rng = batch_time(server), Random(seed)
        value = seconds_bound(instance, model, scope=covered).value_ns
        assert value <= best, seed
        tight += value > 0.9 * best
        shared = shared_out(instance, chunks=chunks)
        done = processed(instance, [row[0] for row in rows])
        for _ in range(3):
            proof = drawn_proof(rng, len(server.lines), len(instance))
            proof = structs.replace(proof, lines=proof.lines[:1], parts=0)
            assert shares_bound(shared, model, proof, chunks=chunks, done=done) <= best, seed
    assert tight > count // 20


def test_work_spread_over_later_users_is_no_bound() -> None:
    """The first of two computes what they share: half of it each says that neither is done soon."""
    server, late = Server([(0, 1)], 99, 0), 10_000 / 10**9
    requests = [
        Request(0, 10, 1, prefix=("a",), arrival_seconds=0.0),
        Request(0, 10, 1, prefix=("a",), arrival_seconds=late),
        Request(0, 10, 1, arrival_seconds=late),
    ]
    instance, model = Instance(30, requests, block_tokens=10), batch_time(server)
    rows: list[Row] = [(0, 10, 1, ("a",)), (10_000, 10, 1, ("a",)), (10_000, 10, 1, ())]
    best, shared = optimum(30, rows, unit=10, server=server), shared_out(instance)
    assert best == 1001 + 1 + 1002
    right = Processed((0, 0, 10), [[10], [], []])
    assert processed(instance, [0, 10_000, 10_000]) == right
    assert seconds_bound(instance, model, scope="sharing").value_ns == best
    assert shares_bound(shared, model, SharesProof((0,)), done=right) == best
    halves = Processed((5, 5, 10), [[], [], []])
    assert shares_bound(shared, model, SharesProof((0,)), done=halves) > best


def test_what_nobody_shares_costs_nothing() -> None:
    requests = [Request(0, 5 + i, 2, prefix=(f"a{i}",)) for i in range(4)]
    instance = Instance(20, requests, block_tokens=3)
    model = batch_time(Server([(7, 1)], 2, 1))
    values = [seconds_bound(instance, model, scope=scope) for scope in ("sharing", "runs")]
    assert values[0] == values[1]


def test_the_checker_evaluates_as_bounds_do() -> None:
    for seed in range(many(60)):
        instance, server, _ = drawn_in_seconds(seed)
        if "prefix" not in instance.extras:
            continue
        model = batch_time(server)
        found = Certificate(instance, None, None, scope=Scope.SHARING, clock=Seconds(model))
        problem = problem_of(json.loads(certificate_text(found)))
        proof = drawn_proof(Random(seed), len(server.lines), len(instance))
        said = {
            "kind": "shares", "lines": [*proof.lines], "weights": [*proof.weights],
            "company": [*proof.company], "parts": proof.parts,
        }  # fmt: skip
        done = processed(instance, arrivals_ns(instance))
        mine = shares_bound(shared_out(instance), model, proof, done=done)
        for evaluated in (nullcontext, by_definition):
            with evaluated():
                assert value_of_proof(problem, said, Work(), ["shares"])[0] == mine, seed


def test_a_larger_claim_is_refused(tmp_path: Path) -> None:
    requests = [Request(0, 9, 2, prefix=("a", "b")), Request(0, 8, 3, prefix=("a",)),
                Request(0, 8, 1, prefix=("a", "b")), Request(0, 3, 1)]  # fmt: skip
    instance = Instance(14, requests, block_tokens=4)
    model = batch_time(Server([(7, 1)], 20, 1))
    problem = Problem(instance, Seconds(model))
    value = json.loads(certificate_text(certify(problem, ["lpm"], time_limit=0.2)))
    plain = seconds_bound(instance, model, scope="runs").value_ns
    assert plain > value["lower"]["value"]
    upper = {**value["upper"], "value": value["upper"]["value"] - 1}
    for changed, reason in (
        ({"lower": {**value["lower"], "value": plain}}, "INVALID: lower: says"),
        ({"scope": "runs"}, "INVALID: instance: prefixes go with the scope sharing"),
        ({"upper": upper}, "INVALID: upper: says"),
    ):
        (tmp_path / "c.json").write_text(json.dumps({**value, **changed}))
        assert verify(tmp_path / "c.json").lines[-1].startswith(reason)


def test_a_bound_without_sharing_is_compared_with_no_run_that_shares() -> None:
    """All of the shared prompts fit and are computed once: below the bound without sharing."""
    requests = [Request(0, 20, 2, prefix=("a",)) for _ in range(4)]
    instance, model = Instance(60, requests, block_tokens=20), batch_time(Server([(1, 1)], 9, 0))
    found = solve(instance, clock=Seconds(model), stop=before_moves)
    without = bound(Problem(instance, Seconds(model), Scope.RUNS))
    assert found.schedule is not None
    assert found.scope is Scope.SHARING
    assert without.value is not None
    assert (found.lower_bound or 0) <= (found.objective or 0) < without.value
    apart = solve(Problem(instance, Seconds(model), Scope.RUNS), stop=before_moves)
    assert apart.scope is Scope.RUNS
    assert (apart.objective or 0) >= without.value

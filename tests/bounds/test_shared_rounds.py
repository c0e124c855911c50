"""Prices of shared rounds: below every optimum, as `kvopt.verify` evaluates them, and of use."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force import Server, Triple, optimum
from certificates import problem_of
from effort import many
from msgspec import convert, structs, to_builtins
from strategies import batch_time
from test_seconds_bounds import MODELS
from test_seconds_sharing import drawn_in_seconds, least

from kvopt import BatchTime, Instance, Line, Request, Scope
from kvopt.bounds.backlog import FINE
from kvopt.bounds.cheapest_services import CellGrid, RoundColumns
from kvopt.bounds.prefix_shares import Processed, shared_out
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.shared_rounds import queue_of, shared_rounds_value
from kvopt.bounds.shared_rounds_ascent import shared_rounds_bound
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.incumbent.proofs import Proof, SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.verify.certified_problem import Clock
from kvopt.verify.certified_problem import problem_of as in_file
from kvopt.verify.check_proofs import missing, value_of_proof
from kvopt.verify.step_budget import Invalid, Work

SCOPES = ("runs", "pauses", "chunks", "pauses+chunks")
CHAT = BatchTime([Line(20_000_000, 15_000), Line(7_000_000, 73_000)], kv_ns=31)


def drawn(source: random.Random) -> tuple[Server, Instance, str]:
    """Return a server, requests with weights or a limit or machines now and then, and a scope."""
    server, memory = Server(*source.choice(MODELS)), source.randint(4, 12)
    requests = []
    for _ in range(source.choice((1, 2, 3, 3))):
        output = source.randint(1, 3)
        prompt = source.randint(0, min(4, memory - output))
        arrival = source.choice((0, 0, 4, 9, 25))
        weight = source.choice((1, 1, 1, 2, 3))
        requests.append(Request(0, prompt, output, arrival_seconds=arrival / 10**9, weight=weight))
    workers, limit = source.choice((1, 1, 1, 2)), source.choice((None, None, None, 1, 2))
    return (
        server,
        Instance(memory, requests, workers=workers, max_active=limit),
        source.choice(SCOPES),
    )


def best_of(server: Server, instance: Instance, scope: str) -> int:
    """Return the optimum by brute force."""
    triples: list[Triple] = [
        (arrival, request.prompt, request.output)
        for arrival, request in zip(arrivals_ns(instance), instance, strict=True)
    ]
    weights = [request.weight for request in instance]
    more: dict[str, Any] = {"most_active": instance.max_active} if instance.max_active else {}
    return optimum(
        instance.memory, triples, weights=weights, workers=instance.workers, server=server,
        scope=scope, **more,
    )  # fmt: skip


def random_proof(
    source: random.Random,
    server: Server,
    instance: Instance,
    chunks: bool,
    done: Processed | None = None,
) -> SharedRoundsProof:
    """Return any proof that fits."""
    places, unit, cell = range(len(server.lines)), 1024, source.choice((1, 2, 5, 9))
    sizes = [1 if chunks else source.randint(1, len(places)) for _ in range(source.randint(1, 2))]
    rows = [tuple(source.sample(places, size)) for size in sizes]
    has_fixed = max(server.lines[line][0] for line in rows[0]) > 0
    weights = [request.weight for request in instance]
    fixed = tuple(unit * w * has_fixed * source.randint(0, 15) for w in weights)
    beside = tuple(source.choice((0, 0, 30, 64)) * w * (instance.workers == 1) for w in weights)
    prices = tuple(
        tuple(source.choice((0, 0, unit // 2, unit)) for _ in range(40 // cell)) for _ in rows
    )
    part = source.choice((64, 64, 20, 0)) if instance.max_active else 64
    slopes = tuple(price // source.choice((5, 20, 60)) for price in fixed)
    proof = SharedRoundsProof(tuple(rows), unit, cell, fixed, slopes, beside, prices, part)
    if chunks or instance.workers > 1:
        return proof
    return with_backlog(source, server, instance, proof, done)


def with_backlog(
    source: random.Random,
    server: Server,
    instance: Instance,
    proof: SharedRoundsProof,
    done: Processed | None,
) -> SharedRoundsProof:
    """Return a proof with prices of the backlog, and shares that they allow."""
    unit, count, model = proof.unit, len(instance), batch_time(server)
    columns = RoundColumns.of(instance, model, proof.rows, arrivals_ns(instance), done=done)
    queue = queue_of(columns, CellGrid(unit, proof.cell, len(proof.row_prices[0])))
    parts = [[source.choice((0, 0, 5, 60, 200, unit)) for _ in range(count)] for _ in range(3)]
    sums = (queue.part_sizes(3) * np.array(parts, dtype=object)).sum(axis=0)
    weights = [request.weight for request in instance]
    grown = [source.choice((0, 20, 64)) * weight for weight in weights]
    beside, waits = list(proof.interference), [0] * count
    wait = source.randint(0, unit * FINE // max(1, *columns.prompts[-1]))
    for i in queue.order:
        grown[i] = min(grown[i], int(sums[i]) * 64 // unit)
        beside[i] = min(beside[i], 64 * weights[i] - grown[i])
        limit = grown[i] * (unit // 64) * FINE // max(1, columns.prompts[-1][i])
        waits[i] = min(limit, wait // source.choice((1, 1, 2)))
    backlog = tuple(map(tuple, parts))
    return structs.replace(
        proof, interference=tuple(beside), grown=tuple(grown), backlog=backlog, waits=tuple(waits)
    )


def without_backlog(proof: SharedRoundsProof) -> SharedRoundsProof:
    """Return a proof without windows that grow."""
    return structs.replace(proof, grown=(), backlog=(), waits=())


def verified(instance: Instance, server: Server, scope: str, proof: SharedRoundsProof) -> int:
    """Return what the checker makes of a proof, from its JSON."""
    clock = Clock.of(batch_time(server).to_json())
    weights = tuple(request.weight for request in instance)
    problem = replace(
        problem_of(instance, clock=clock).arriving(arrivals_ns(instance)).within(scope),
        weights=weights if max(weights) > 1 else (),
        max_active=instance.max_active,
    )
    assert not missing(problem, {"kind": "shared-rounds"})
    written = json.loads(json.dumps(to_builtins(proof)))
    assert convert(written, Proof) == proof
    return value_of_proof(problem, written, Work())[0]


@pytest.mark.slow
def test_whatever_proves_it_a_bound_is_below_the_optimum_and_verified() -> None:
    source, tight = random.Random(3), 0
    for _ in range(many(20)):
        server, instance, scope = drawn(source)
        best, model, chunks = (
            best_of(server, instance, scope),
            batch_time(server),
            "chunks" in scope,
        )
        for _ in range(10):
            proof = random_proof(source, server, instance, chunks)
            value = shared_rounds_value(instance, model, proof, chunks=chunks)
            assert value == verified(instance, server, scope, proof) <= best
        found = shared_rounds_bound(instance, model, scope=scope)
        if found is not None:
            assert isinstance(found.proof, SharedRoundsProof)
            assert verified(instance, server, scope, found.proof) == found.value_ns <= best
            tight += found.value_ns > 0.9 * best
    assert tight > many(3)


def with_block_shares(
    source: random.Random, instance: Instance, proof: SharedRoundsProof
) -> SharedRoundsProof:
    """Return a proof with any weights of the users of blocks."""
    period, weights = source.randint(1, 4), list[tuple[int, ...]]()
    for _ in instance:
        count = source.choice((1, 3, 30))
        weights.append(tuple(source.choice((0, 1, 1, 5, 40)) for _ in range(count)))
    return structs.replace(proof, block_shares=tuple(weights), period=period)


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["sharing", "sharing+pauses", "sharing+pauses+chunks"])
def test_users_of_a_block_share_it_over_time(scope: str) -> None:
    source, bounds, tight = random.Random(17), 0, 0
    for seed in range(many(12)):
        instance, server, rows = drawn_in_seconds(seed, 3)
        if "prefix" not in instance.extras:
            continue
        model = batch_time(server)
        plain = scope.removeprefix("sharing").lstrip("+") or "runs"
        best = least(instance, server, rows, scope=plain)
        empty = Certificate(instance, None, None, scope=Scope(scope), clock=Seconds(model))
        problem = in_file(json.loads(certificate_text(empty))).within(scope)
        found = shared_rounds_bound(instance, model, scope=scope)
        drawn = (random_proof(source, server, instance, chunks=True) for _ in range(9))
        proofs = [with_block_shares(source, instance, proof) for proof in drawn]
        for proof in [*proofs, *([found.proof] if found else [])]:
            assert isinstance(proof, SharedRoundsProof)
            value = shared_rounds_value(instance, model, proof, chunks=True)
            written = json.loads(json.dumps(to_builtins(proof)))
            assert value_of_proof(problem, written, Work())[0] == value <= best, seed
            bounds += value > best / 2
        tight += bool(found and found.value_ns > 0.6 * best)
    assert bounds > many(2)
    assert tight > many(1)


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["sharing", "sharing+pauses+chunks"])
def test_with_prefixes_private_tokens_count(scope: str) -> None:
    source, bounds = random.Random(7), 0
    for seed in range(many(12)):
        instance, server, rows = drawn_in_seconds(seed, 3)
        model, chunks = batch_time(server), "chunks" in scope
        best = least(
            instance, server, rows, scope=scope.removeprefix("sharing").lstrip("+") or "runs"
        )
        empty = Certificate(instance, None, None, scope=Scope(scope), clock=Seconds(model))
        if "prefix" not in instance.extras:
            continue
        problem = in_file(json.loads(certificate_text(empty))).within(scope)
        shared, done = shared_out(instance, chunks=chunks), Processed(instance.forest.private)
        proofs = [random_proof(source, server, shared, chunks, done) for _ in range(9)]
        for proof in [*proofs, *map(without_backlog, proofs)]:
            written = json.loads(json.dumps(to_builtins(proof)))
            value, _ = value_of_proof(problem, written, Work(), ["shares"])
            assert value <= best, seed
            bounds += value > best / 2
    assert bounds > many(2)


def test_a_roof_is_not_of_prompts_in_pieces() -> None:
    server, requests = Server([(9, 0), (0, 3), (2, 2)], 0, 0), [(3, 7, 2), (5, 8, 2)]
    rows = [Request(0, s, o, arrival_seconds=a / 10**9) for a, s, o in requests]
    proof = SharedRoundsProof(((0, 1),), 64, 5, (0, 0), (0, 0), (0, 0), ((64,) * 10,))
    with pytest.raises(Invalid, match="does not cover prompts in pieces"):
        verified(Instance(11, rows), server, "chunks", proof)


def test_what_is_no_proof_is_refused() -> None:
    server, fleet = Server([(9, 0), (0, 3)], 0, 0), Instance(9, [Request(0, 2, 1)] * 2, workers=2)
    good = SharedRoundsProof(((0, 1),), 64, 5, (9, 9), (1, 1), (0, 0), ((0, 0),))
    assert verified(fleet, server, "runs", good) > 0
    spoiled = {
        "multiple of 64": structs.replace(good, unit=65),
        "cell of 1": structs.replace(good, cell=0),
        "needs lines": structs.replace(good, rows=((0, 2),)),
        "needs lines of": structs.replace(good, rows=((),)),
        "two prices": structs.replace(good, slopes=(1,)),
        "each row and cell": structs.replace(good, row_prices=((0, 0), (0, 0))),
        "negative": structs.replace(good, fixed=(9, -9)),
        "0 .. 64 for each": structs.replace(good, interference=(0, 65)),
        "one worker": structs.replace(good, interference=(0, 9)),
        "by_memory": structs.replace(good, by_memory=9),
        "no fixed part": structs.replace(good, rows=((1,),)),
    }
    for reason, proof in spoiled.items():
        with pytest.raises(Invalid, match=reason):
            verified(fleet, server, "runs", proof)


def test_spoiled_prices_of_the_backlog_are_refused() -> None:
    server = Server([(9, 0), (0, 3)], 0, 0)
    rows = [Request(0, 4, 3, arrival_seconds=i / 10**8) for i in range(3)]
    instance, nothing = Instance(30, rows), (0,) * 3
    good = SharedRoundsProof(
        ((0, 1),), 64, 5, nothing, nothing, nothing, ((0,) * 40,), grown=(64,) * 3,
        backlog=((0,) * 3, (32,) * 3), waits=(FINE,) * 3,
    )  # fmt: skip
    # Fewer cells than requests are no window, and no error.
    short = structs.replace(good, row_prices=((0,),), grown=nothing, waits=nothing)
    for proof in (good, short):
        assert 0 < verified(instance, server, "runs", proof) <= best_of(server, instance, "runs")
    spoiled = {
        "below its share": structs.replace(good, backlog=((0,) * 3, (1,) * 3)),
        "negative": structs.replace(good, backlog=((-1,) * 3, (64,) * 3)),
        "more than the share": structs.replace(good, waits=(64 * FINE,) * 3),
        "each request": structs.replace(good, waits=()),
        "for each of its weight": structs.replace(good, interference=(1,) * 3),
        "two prices": structs.replace(good, grown=(64,)),
    }
    for reason, proof in spoiled.items():
        with pytest.raises(Invalid, match=reason):
            verified(instance, server, "runs", proof)
    good = structs.replace(good, rows=((0,),))
    with pytest.raises(Invalid, match="of whole prompts"):
        verified(instance, server, "chunks", good)
    blocks = with_block_shares(random.Random(1), instance, good)
    with pytest.raises(Invalid, match="without block shares"):
        verified(instance, server, "runs", blocks)


def test_windows_grow_at_a_low_load() -> None:
    source, server = random.Random(2), Server([(20_000, 15), (7_000, 73)], 0, 0)
    times = [0]
    for _ in range(60):
        times.append(times[-1] + int(source.expovariate(1 / 250_000)))
    rows = [
        Request(0, source.randint(500, 1500), source.randint(30, 80), arrival_seconds=time / 10**9)
        for time in times
    ]
    instance = Instance(10**6, rows)
    bound = shared_rounds_bound(instance, batch_time(server), scope="runs")
    assert bound is not None
    assert any(bound.proof.grown)
    plain = without_backlog(bound.proof)
    assert verified(instance, server, "runs", bound.proof) == bound.value_ns
    assert bound.value_ns > verified(instance, server, "runs", plain)
    users = [replace(row, prefix=("a",)) for row in rows]
    shared = Instance(10**6, users, block_tokens=200)
    bound = shared_rounds_bound(shared, batch_time(server), scope="sharing")
    assert bound is not None
    assert bound.proof.block_shares
    assert not bound.proof.grown


def test_numbers_beyond_64_bits_are_exact() -> None:
    """Costs of this size go on in integers of Python."""
    server = Server([(10**13, 10**12), (0, 3 * 10**12)], 0, 10**6)
    rows = [Request(0, 10**5, 10**5, arrival_seconds=60.0 * i) for i in range(3)]
    instance = Instance(10**6, rows)
    proof = SharedRoundsProof(
        ((0, 1), (1,)), 2**18, 10**16, (2**61,) * 3, (40,) * 3, (20,) * 3, ((2**18,) * 12,) * 2
    )
    value = shared_rounds_value(instance, batch_time(server), proof)
    assert value == verified(instance, server, "runs", proof) > 0


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["pauses", "pauses+chunks"])
def test_it_gains_where_memory_is_slack(scope: str) -> None:
    source = random.Random(1)
    times = sorted(source.uniform(0, 50) for _ in range(300))
    requests = [
        Request(0, source.randint(200, 2000), source.randint(20, 400), arrival_seconds=time)
        for time in times
    ]
    instance = Instance(400_000, requests)
    fluid = seconds_bound(instance, CHAT, scope=scope).value_ns
    found = shared_rounds_bound(instance, CHAT, scope=scope, threads=2)
    assert found is not None
    assert found.value_ns > 1.005 * fluid


def test_without_time_requests_or_fixed_parts_there_is_none() -> None:
    pair = Instance(9, [Request(0, 2, 1)] * 2)
    assert shared_rounds_bound(pair, CHAT, budget=Budget(0.0)) is None
    assert shared_rounds_bound(Instance(9, []), CHAT) is None
    assert shared_rounds_bound(pair, BatchTime([Line(0, 7)])) is None

"""Prices of shared rounds: below every optimum, as `kvopt.verify` evaluates them, and of use."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from brute_force import Server
from certificates import in_file, problem_from
from effort import many
from known import known
from msgspec import convert, structs
from strategies import batch_time, drawn_in_seconds, optimum_of
from test_seconds_bounds import SCOPES, covering

from kvopt import BatchTime, Instance, Line, Request
from kvopt.bounds.backlog import FINE
from kvopt.bounds.cheapest_services import CellGrid, RoundColumns
from kvopt.bounds.prefix_shares import Processed, shared_out
from kvopt.bounds.round_prices import RoundPrices
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.shared_rounds import queue_of, shared_rounds_value
from kvopt.bounds.shared_rounds_ascent import shared_rounds_bound
from kvopt.incumbent.proofs import Proof, SharedRoundsProof
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.verify.check_proofs import missing, value_of_proof
from kvopt.verify.step_budget import Invalid, Work

CHAT = BatchTime([Line(20_000_000, 15_000), Line(7_000_000, 73_000)], kv_ns=31)


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
    written = in_file(proof)
    assert convert(written, Proof) == proof
    problem = problem_from(instance, Seconds(batch_time(server)), covering(scope, instance))
    return value_of_proof(problem, written, Work(), missing(problem, written))[0]


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
@pytest.mark.parametrize("scope", SCOPES)
def test_whatever_proves_it_a_bound_is_below_the_optimum_and_verified(scope: str) -> None:
    """Users of a block share it over time, or each request has a share of its prefix."""
    source, chunks, counts = random.Random(3), "chunks" in scope, Counter[str]()
    for seed in range(many(24)):
        instance, server = drawn_in_seconds(seed)
        best, model = optimum_of(instance, server=server, scope=scope), batch_time(server)
        shares = "prefix" in instance.extras
        private, done = shared_out(instance, chunks=chunks), Processed(instance.forest.private)
        drawn = [random_proof(source, server, private, chunks, done) for _ in range(8)]
        proofs = [*drawn, *map(without_backlog, drawn)]
        if shares:
            whole = (random_proof(source, server, instance, chunks=True) for _ in range(8))
            proofs += [with_block_shares(source, instance, proof) for proof in whole]
        found = shared_rounds_bound(instance, model, scope=covering(scope, instance))
        for proof in [*proofs, *([found.proof] if found else [])]:
            assert isinstance(proof, SharedRoundsProof)
            value = verified(instance, server, scope, proof)
            assert value <= best, (seed, proof)
            if proof.block_shares or not shares:
                assert value == shared_rounds_value(instance, model, proof, chunks=chunks)
            counts.update({"block shares" if proof.block_shares else "shares": value > best / 2})
        counts["tight"] += bool(found and found.value_ns > 0.6 * best)
    assert min(counts[name] for name in ("block shares", "shares", "tight")) > many(2), counts


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
        assert 0 < verified(instance, server, "runs", proof) <= optimum_of(instance, server=server)
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
    bound = known(shared_rounds_bound(instance, batch_time(server), scope="runs"))
    assert any(bound.proof.grown)
    plain = without_backlog(bound.proof)
    assert verified(instance, server, "runs", bound.proof) == bound.value_ns
    assert bound.value_ns > verified(instance, server, "runs", plain)
    users = [replace(row, prefix=("a",)) for row in rows]
    shared = Instance(10**6, users, block_tokens=200)
    bound = known(shared_rounds_bound(shared, batch_time(server), scope="sharing"))
    assert bound.proof.block_shares
    assert not bound.proof.grown


@pytest.mark.parametrize(("apart", "grows"), [(1, True), (4, False)])
def test_windows_grow_at_a_load_that_is_nowhere_high(apart: int, grows: bool) -> None:
    """The mean load is 0.4 both times: with gaps it is 1.6 in a quarter of the time."""
    period = 8_000_000 * 20
    times = [i // 20 * period + i % 20 * period // (20 * apart) for i in range(400)]
    rows = [Request(0, 999, 8, arrival_seconds=time / 10**9) for time in times]
    model = BatchTime([Line(100, 3_200)])
    prices = RoundPrices(Instance(10**6, rows), model, [(0,)], False, False, 1)
    assert (prices.quiet is not None) is grows


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
    found = known(shared_rounds_bound(instance, CHAT, scope=scope, threads=2))
    assert found.value_ns > 1.005 * fluid


def test_without_time_requests_or_fixed_parts_there_is_none() -> None:
    pair = Instance(9, [Request(0, 2, 1)] * 2)
    assert shared_rounds_bound(pair, CHAT, budget=Budget(0.0)) is None
    assert shared_rounds_bound(Instance(9, []), CHAT) is None
    assert shared_rounds_bound(pair, BatchTime([Line(0, 7)])) is None

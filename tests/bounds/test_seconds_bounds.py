"""Bounds in seconds: below every optimum, evaluated exactly, and no weaker than their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random

import numpy as np
import pytest
from brute_force import Row, Server, Triple, optimum
from certificates import in_file, problem_from
from definitions import by_definition
from effort import many
from known import known
from msgspec import structs
from strategies import (
    SERVERS,
    batch_time,
    drawn_in_seconds,
    instance_of,
    optimum_of,
    timed_instance,
)

from kvopt import (
    BatchTime,
    Instance,
    Line,
    Progress,
    Request,
    Scope,
    bound,
    certify,
    generate,
    solve,
    verify,
)
from kvopt.bounds.prefix_shares import Processed, processed, shared_out
from kvopt.bounds.seconds import MIX, seconds_bound
from kvopt.bounds.seconds_evaluation import FULL, request_times, served, shares_bound
from kvopt.certificates.certificate_files import certificate_text
from kvopt.errors import InvalidInput
from kvopt.incumbent.proofs import SharesProof
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds, arrivals_ns
from kvopt.problem.problem import Problem
from kvopt.simulate.run_policy import run as simulate
from kvopt.verify.check_proofs import missing, value_of_proof
from kvopt.verify.step_budget import Work

SCOPES = ("runs", "pauses", "chunks", "pauses+chunks")


def covering(scope: str, instance: Instance) -> Scope:
    """Return a scope with what the requests of an instance share."""
    return Scope.parse(scope).joined(Scope.SHARING) if "prefix" in instance.extras else Scope(scope)


def drawn_shares(rng: Random, instance: Instance, lines: int, *, chunks: bool) -> SharesProof:
    """Return any proof that fits."""
    counts = [request.weight for request in instance]
    weights = [n * rng.choice((0, 1, 20, FULL - 1, FULL)) for n in counts]
    pairs = zip(counts, weights, strict=True)
    company = [rng.choice((0, (FULL * n - w) // 2, FULL * n - w)) for n, w in pairs]
    chosen = rng.sample(range(lines), 1 if chunks else rng.randint(1, lines))
    mix: list[int] = []
    if rng.random() < 0.4:
        chosen = [*range(lines)]
        mix = [rng.randint(1, 9) for _ in chosen]
    is_plain = rng.random() < 0.3
    return SharesProof(
        tuple(chosen), () if is_plain else tuple(weights),
        () if is_plain or instance.workers > 1 else tuple(company), tuple(mix),
        parts=0 if chunks else rng.choice((0, 1, 3, 8)),
        by_memory=rng.choice((20, 0)) if instance.max_active and rng.random() < 0.5 else FULL,
    )  # fmt: skip


def values_of(
    instance: Instance, server: Server, scope: str, proof: SharesProof, *, literally: bool = True
) -> Iterator[int]:
    """Yield what a proof gives: to kvopt, to the checker, and to the checker by definition."""
    chunks, model = "chunks" in scope, batch_time(server)
    done = processed(instance, arrivals_ns(instance))
    shared = shared_out(instance, chunks=chunks)
    yield shares_bound(shared, model, proof, arrivals_ns(instance), chunks=chunks, done=done)
    problem = problem_from(instance, Seconds(model), covering(scope, instance))
    for evaluated in (nullcontext, by_definition) if literally else (nullcontext,):
        with evaluated():
            written = in_file(proof)
            yield value_of_proof(problem, written, Work(), missing(problem, written))[0]


@pytest.mark.slow
@pytest.mark.parametrize("scope", SCOPES)
def test_whatever_proves_it_a_bound_is_below_the_optimum_and_verified(scope: str) -> None:
    tight, count = 0, many(60)
    for seed in range(count):
        instance, server = drawn_in_seconds(seed)
        best, rng = optimum_of(instance, server=server, scope=scope), Random(seed)
        found = seconds_bound(instance, batch_time(server), scope=covering(scope, instance))
        drawn = (
            drawn_shares(rng, instance, len(server.lines), chunks="chunks" in scope)
            for _ in range(3)
        )
        for proof in (found.proof, *drawn):
            (value,) = {*values_of(instance, server, scope, proof, literally=seed % 4 == 1)}
            assert value <= best, (seed, proof)
            assert value == found.value_ns or proof != found.proof
        tight += found.value_ns > 0.9 * best
    assert tight > count // 20


@pytest.mark.parametrize("scope", ["runs", "chunks"])
def test_evaluations_agree_on_larger_requests(scope: str) -> None:
    for seed in range(many(60)):
        rng = Random(seed)
        requests = [
            Request(0, rng.randint(0, 40), rng.randint(1, 40), arrival_seconds=at / 10**9)
            for at in rng.choices(range(300), k=rng.randint(0, 5))
        ]
        server, instance = rng.choice(SERVERS), Instance(80, requests)
        proof = drawn_shares(rng, instance, len(server.lines), chunks=scope == "chunks")
        assert len({*values_of(instance, server, scope, proof)}) == 1, (seed, proof)


def test_floats_are_near_the_exact_numbers() -> None:
    instance = generate("conversation-summarisation", 300, 16_492, seed=2)
    model = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)
    for lines in (model.lines, model.lines[1:]):
        exact, near = (request_times(instance, model, lines, kind) for kind in (object, float))
        for name in ("takes", "delays", "alone"):
            wanted = getattr(exact, name).astype(float)
            assert getattr(near, name) == pytest.approx(wanted, rel=1e-9)


def test_it_serves_with_interruptions() -> None:
    # 0 .. 2 the first, then the steeper one until 5, then the rest of the first.
    for kind in (object, float):
        arrivals, takes, slopes = np.array([(0, 2), (4, 3), (1, 2)], dtype=kind)
        assert served(arrivals, takes, slopes).tolist() == [4 + (49 - 25), 25 - 4]


A100 = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)


@pytest.mark.parametrize("arrivals", [False, True])
def test_no_policy_is_below_it(arrivals: bool) -> None:
    drawn = generate("conversation", 80, 3000, seed=4)
    source = Random(1)
    requests = [
        Request(0, r.prompt, r.output, arrival_seconds=source.uniform(0, 40) * arrivals)
        for r in drawn
    ]
    instance = Instance(3000, requests)
    bound = seconds_bound(instance, A100).value_ns
    for policy in (
        "svf",
        "fcfs",
        "alpha-beta:alpha=0,beta=0.3",
        "a-min:intervals=relative,eps=0.5",
    ):
        assert bound <= known(simulate(instance, policy, clock=Seconds(A100)).objective)
    assert bound > 0.4 * (simulate(instance, "svf", clock=Seconds(A100)).objective or 0)


def test_weights_help_where_the_server_is_mostly_idle() -> None:
    requests = [Request(0, 20, 30, arrival_seconds=5.0 * i) for i in range(8)]
    instance = Instance(4000, requests)
    plain = shares_bound(instance, A100, SharesProof((0, 1)))
    found = seconds_bound(instance, A100)
    alone = request_times(instance, A100, A100.lines, object).alone.sum()
    assert found.value_ns > 1.5 * plain
    assert found.value_ns == pytest.approx(alone, rel=1e-6)
    assert simulate(instance, "fcfs", clock=Seconds(A100)).objective == alone


def test_company_counts_prompts_that_others_wait_for() -> None:
    """Requests that overlap a little: alone each takes 1.6 s, and prompts take 0.3 s."""
    requests = [Request(0, 1000, 30, arrival_seconds=0.8 * i) for i in range(40)]
    instance = Instance(16_000, requests)
    alone = request_times(instance, A100, A100.lines, object).alone.sum()
    found = seconds_bound(instance, A100)
    run = simulate(instance, "fcfs", clock=Seconds(A100))
    assert any(found.proof.company)
    assert 1.1 * alone < found.value_ns <= known(run.objective)
    without = seconds_bound(instance, A100, budget=Budget(0.0))
    assert not without.proof.company
    assert without.value_ns < found.value_ns


def test_parts_count_the_work_of_tokens_and_rounds_that_take_their_time() -> None:
    """Requests that decode side by side: no prompt to speak of, rounds get longer by tokens."""
    requests = [Request(0, 1, 60, arrival_seconds=0.4 * i) for i in range(40)]
    instance = Instance(16_000, requests)
    model = BatchTime([Line(10_000_000, 2_000_000)], 80)
    found = seconds_bound(instance, model)
    assert found.proof.parts > 0
    assert any(found.proof.company)
    assert found.value_ns > 1.03 * shares_bound(
        instance, model, structs.replace(found.proof, parts=0)
    )
    run = simulate(instance, "fcfs", clock=Seconds(model))
    assert found.value_ns <= (run.objective or 0)


def test_a_limit_is_kept_and_gives_a_bound() -> None:
    instance = generate("conversation", 3000, 16_492, seed=1)
    found = seconds_bound(instance, A100, budget=Budget(0.0))
    assert found.proof.weights == ()
    assert found.value_ns == shares_bound(instance, A100, found.proof)


def test_it_is_exact_where_floats_and_64_bits_end() -> None:
    big, most = 2**52, 2**53 - 1
    rows = [Request(0, big, 900, arrival_seconds=0.0), Request(0, 1, big, arrival_seconds=0.0)]
    server = Server([(most, most)], most, most)
    proof = SharesProof((0,), (20, 64), (9, 0), parts=3)
    assert len({*values_of(Instance(most, rows), server, "runs", proof, literally=False)}) == 1
    alone = request_times(
        Instance(most, rows), batch_time(server), batch_time(server).lines, object
    ).alone
    assert seconds_bound(Instance(most, rows), batch_time(server)).value_ns > alone[0]


def test_large_caches_and_long_rounds_pass_64_bits() -> None:
    """Machine time counts in nanoseconds times M, which 64 bits hold less often than the times."""
    requests = [Request(0, 0, 1), Request(1, 0, 1), Request(0, 0, 3)]
    instance = Instance(2**31, requests, round_ms=1.0)
    model = BatchTime([Line(10**12, 10**11)], kv_ns=93, prompt_ns=26)
    optimum = known(solve(instance, clock="seconds", batch_time=model).objective)
    assert 0 < seconds_bound(instance, model).value_ns <= optimum


def test_nothing_to_do_costs_nothing_and_unknown_times_are_refused() -> None:
    assert seconds_bound(Instance(5, []), A100).value_ns == 0
    with pytest.raises(InvalidInput, match="round_ms"):
        seconds_bound(Instance(5, [Request(3, 1, 1)]), A100)
    with pytest.raises(InvalidInput, match="'r1': arrival: is 1e\\+300 seconds away"):
        seconds_bound(timed_instance(5, [(0, 1, 1), (10**309, 1, 1)]), A100)
    in_rounds = Instance(5, [Request(3, 1, 1)], round_ms=50)
    assert seconds_bound(in_rounds, A100).value_ns == 45_000_000 + 2 * 160_000 + 2 * 80


def test_same_input_same_bound() -> None:
    instance = generate("conversation", 200, 16_492, seed=3)
    found = [seconds_bound(instance, A100) for _ in range(2)]
    assert found[0].value_ns == found[1].value_ns
    assert found[0].proof == found[1].proof
    assert np.isfinite(found[0].value_ns)


@pytest.mark.parametrize("first", [0.0, 1.7e9])
@pytest.mark.parametrize("gap", [40.0, 1e9])
def test_late_clocks_and_long_gaps_cost_nothing(first: float, gap: float) -> None:
    def bound_from(first: float, gap: float) -> int:
        times = [first + gap * (k // 6) + 0.25 * (k % 6) for k in range(18)]
        requests = [Request(0, 5 + k, 7 + k, arrival_seconds=at) for k, at in enumerate(times)]
        return seconds_bound(Instance(100, requests), BatchTime([Line(40_000_000, 100)])).value_ns

    assert bound_from(first, gap) == bound_from(0.0, 40.0)


# ---- shared prefixes ---------------------------------------------------------------


def before_moves(now: Progress) -> bool:
    """End a search once all runs have been tried: moves prove nothing, and go on for long."""
    return now.engine == "routers"


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
    assert (found.lower_bound or 0) <= (found.objective or 0) < known(without.value)
    apart = solve(Problem(instance, Seconds(model), Scope.RUNS), stop=before_moves)
    assert apart.scope is Scope.RUNS
    assert (apart.objective or 0) >= known(without.value)


# ---- pauses, and prompts in pieces -------------------------------------------------


def proved(
    problem: tuple[Server, int, list[Triple]], proof: SharesProof, *, chunks: bool = False
) -> int:
    server, memory, requests = problem
    arrivals = [a for a, _, _ in requests]
    return shares_bound(
        instance_of(memory, requests), batch_time(server), proof, arrivals, chunks=chunks
    )


def test_a_roof_does_not_cover_chunks() -> None:
    """It says more than there is with prompts in pieces, a single line does not."""
    problem = (Server([(9, 0), (0, 3), (2, 2)], 0, 0), 11, [(3, 7, 2), (5, 8, 2)])
    optima = [
        optimum(problem[1], problem[2], server=problem[0], scope=scope)
        for scope in ("chunks", "pauses")
    ]
    assert optima == [94, 100]
    assert [proved(problem, SharesProof(lines)) for lines in ((0, 1), (1,))] == [95, 93]


def test_the_worked_case_of_pieces_is_below_that_of_runs() -> None:
    """Pieces of the prompt reach 3,020 ns where runs take 3,740."""
    model = BatchTime([Line(100, 0), Line(0, 10)])
    instance = Instance(200, [Request(0, 0, 20), Request(0, 90, 1)])
    runs, pieces = (seconds_bound(instance, model, scope=scope) for scope in ("pauses", "chunks"))
    assert runs.value_ns == 3720
    assert 2010 < pieces.value_ns <= 3020
    assert len(pieces.proof.lines) == 1


def test_company_of_whole_prompts_does_not_cover_chunks() -> None:
    """A piece of the second prompt is processed before its first token, which delays it less."""
    problem = (Server([(9, 1), (0, 4)], 1, 0), 11, [(0, 0, 1), (0, 5, 3)])
    company = SharesProof((1,), (4, 5), (56, 0))
    whole, pieces = (proved(problem, company, chunks=chunks) for chunks in (False, True))
    assert pieces <= optimum(11, problem[2], server=problem[0], scope="chunks") < whole


def test_company_of_pieces_raises_the_bound() -> None:
    instance = Instance(60, [Request(40 * i, 9, 4) for i in range(12)], round_ms=1e-6)
    model = BatchTime([Line(12, 1), Line(0, 2)])
    found = seconds_bound(instance, model, scope="chunks")
    assert any(found.proof.company)
    alone = shares_bound(instance, model, structs.replace(found.proof, company=()), chunks=True)
    assert found.value_ns > 1.05 * alone


class TestMixes:
    """Lines mixed into one."""

    def test_no_single_line_proves_as_much(self) -> None:
        # Long outputs make the first line count, long prompts the second.
        requests = [Request(0, 0, 36)] * 16 + [Request(0, 77, 2)] * 11
        instance, model = Instance(100, requests), BatchTime([Line(417, 0), Line(0, 45)])
        found = seconds_bound(instance, model, scope="chunks")
        assert sum(found.proof.mix) == MIX
        for line in model.lines:
            alone = seconds_bound(instance, BatchTime([line]), scope="chunks")
            assert found.value_ns > 1.1 * alone.value_ns

    def test_of_huge_numbers_single_lines_are_left(self) -> None:
        instance = Instance(200, [Request(0, 0, 20), Request(0, 90, 1)])
        huge = BatchTime([Line(100, 0), Line(0, 10), Line(2**52, 0)])
        assert not seconds_bound(instance, huge, scope="chunks").proof.mix

"""Bounds in seconds: below every optimum, evaluated exactly, and no weaker than their parts."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from brute_force import Lines, Server, optimum
from hypothesis import given
from hypothesis import strategies as st
from known import known
from msgspec import structs
from strategies import batch_time, timed_instance

from kvopt import BatchTime, Instance, Line, Request, generate, solve
from kvopt.bounds.seconds import seconds_bound
from kvopt.bounds.seconds_evaluation import (
    FULL,
    fixed_parts,
    parts_of,
    request_times,
    served,
    shares_bound,
)
from kvopt.errors import InvalidInput
from kvopt.incumbent.proofs import SharesProof
from kvopt.kernels.budget import Budget
from kvopt.problem.clocks import Seconds
from kvopt.simulate.run_policy import run as simulate

MODELS: list[tuple[Lines, int, int]] = [
    ([(10, 0)], 0, 0),
    ([(0, 3)], 0, 0),
    ([(7, 1)], 2, 1),
    ([(10, 0), (4, 3)], 0, 0),
    ([(20, 1), (12, 2), (0, 5)], 0, 1),
    ([(3, 3), (5, 0)], 1, 0),
]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Server, int, list[tuple[int, int, int]]]:
    """Draw a server, its memory and a few requests."""
    lines, prompt_ns, kv_ns = draw(st.sampled_from(MODELS))
    memory = draw(st.integers(3, 9))
    outputs = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    late = draw(st.sampled_from([0, 15, 60]))
    triples = [(draw(st.integers(0, late)), draw(st.integers(0, memory - o)), o) for o in outputs]
    return Server(lines, prompt_ns, kv_ns), memory, triples


@st.composite
def proofs(draw: st.DrawFn, lines: int, requests: int) -> SharesProof:
    """Draw any proof that fits."""
    chosen = draw(st.lists(st.integers(0, lines - 1), min_size=1, max_size=lines, unique=True))
    weight = st.sampled_from([0, 1, 20, FULL - 1, FULL])
    weights = draw(st.just([]) | st.lists(weight, min_size=requests, max_size=requests))
    left = [FULL - weight for weight in weights] or [0] * requests
    company = [draw(st.sampled_from([0, most // 2, most])) for most in left]
    beside, parts = draw(st.sampled_from([(), tuple(company)])), draw(st.integers(0, 3))
    return SharesProof(tuple(chosen), tuple(weights), beside, parts=parts)


@pytest.mark.slow
@given(data=st.data())
def test_whatever_proves_it_a_bound_is_below_the_optimum(data: st.DataObject) -> None:
    server, memory, triples = data.draw(problems())
    least = optimum(memory, triples, server=server)
    instance, model = timed_instance(memory, triples), batch_time(server)
    for _ in range(4):
        proof = data.draw(proofs(len(server.lines), len(triples)))
        assert shares_bound(instance, model, proof) <= least
    assert seconds_bound(instance, model).value_ns <= least


# ---- what a request takes ----------------------------------------------------------


def literal_part(
    server: Server, memory: int, chosen: Lines, prompt: int, output: int
) -> tuple[Fraction, Fraction, int]:
    """Return X, X e and E phase by phase, with fractions."""
    part = Server(chosen, server.prompt_ns, server.kv_ns)
    base = Fraction(max(fixed for fixed, _ in chosen))
    takes, delays, after = Fraction(0), Fraction(0), 0
    for j in range(output, 0, -1):
        held, prompts = prompt + j, prompt if j == 1 else 0
        work = part.round_ns(1 + prompts, prompts, held) - base
        share = base * held / memory
        takes += work + share
        delays += work * (after + base + work / 2) + share * (after + base / 2)
        after += server.round_ns(1 + prompts, prompts, held)
    return takes, delays, after


@given(
    model=st.sampled_from(MODELS),
    prompt=st.integers(0, 40),
    output=st.integers(1, 40),
    data=st.data(),
)
def test_closed_forms_are_the_sums_over_rounds(
    model: tuple[Lines, int, int], prompt: int, output: int, data: st.DataObject
) -> None:
    server, memory = Server(*model), 80
    chosen = data.draw(st.lists(st.sampled_from(server.lines), min_size=1, unique=True))
    instance = Instance(memory, [Request(0, prompt, output)])
    found = request_times(instance, batch_time(server), [Line(*line) for line in chosen], object)
    takes, delays, alone = literal_part(server, memory, chosen, prompt, output)
    assert found.takes[0] == takes * memory
    assert found.delays[0] == 2 * delays * memory
    assert found.alone[0] == alone


@given(
    model=st.sampled_from(MODELS),
    prompt=st.integers(0, 40),
    output=st.integers(1, 40),
    count=st.integers(1, 9),
    kind=st.sampled_from([object, float]),
)
def test_parts_are_the_rounds_they_say(
    model: tuple[Lines, int, int], prompt: int, output: int, count: int, kind: type
) -> None:
    server, memory = Server(*model), 80
    chosen, lines = batch_time(server), [Line(*server.lines[-1])]
    instance = Instance(memory, [Request(0, 1, 1), Request(0, prompt, output)])
    whole = request_times(instance, chosen, lines, kind)
    found = parts_of(instance, chosen, lines, whole, count, fixed_parts(instance, lines, FULL))
    assert sorted(set(found.owners)) == [0, 1]
    rows = [
        (begin, takes, work, early)
        for i, begin, takes, work, early in zip(
            found.owners, found.begins, found.takes, found.works, found.early, strict=True
        )
        if i == 1
    ]
    edges = [1 + (output - 1) * part // count for part in range(count + 1)]
    groups = [range(1, 2), *(range(a + 1, b + 1) for a, b in pairwise(edges) if a < b)]
    part, none = Server(server.lines[-1:], server.prompt_ns, server.kv_ns), max(x for x, _ in server.lines)  # fmt: skip  # noqa: E501
    base, began = server.lines[-1][0], 0
    for (begin, takes, work, early), group in zip(rows, groups, strict=True):
        given = [(1 + prompt * (j == 1), prompt * (j == 1), prompt + j) for j in group]
        alone = [server.round_ns(*each) for each in given]
        assert begin == began
        assert takes == sum(
            memory * (part.round_ns(*each) - base) + base * each[2] for each in given
        )
        assert work == sum(alone) - len(alone) * none
        assert early == sum(alone[:-1])
        began += sum(alone)


def test_floats_are_near_the_exact_numbers() -> None:
    instance = generate("conversation-summarisation", 300, 16_492, seed=2)
    model = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)
    for lines in (model.lines, model.lines[1:]):
        exact, near = (request_times(instance, model, lines, kind) for kind in (object, float))
        for name in ("takes", "delays", "alone"):
            wanted = getattr(exact, name).astype(float)
            assert getattr(near, name) == pytest.approx(wanted, rel=1e-9)


def test_no_round_is_shorter_than_what_its_requests_take() -> None:
    """The inequality that everything stands on, for random batches and lines."""
    source = random.Random(3)
    for _ in range(1000):
        lines, prompt_ns, kv_ns = source.choice(MODELS)
        server, memory = Server(lines, prompt_ns, kv_ns), source.randint(5, 40)
        chosen = source.sample(lines, source.randint(1, len(lines)))
        batch, held = [], 0
        while (h := source.randint(1, memory)) + held <= memory:
            held += h
            batch.append((h, h - 1 if source.random() < 0.5 else 0))  # starts: h = prompt + 1
        if not batch:
            continue
        prompts = sum(p for _, p in batch)
        length = server.round_ns(len(batch) + prompts, prompts, held)
        part, base = Server(chosen, prompt_ns, kv_ns), max(fixed for fixed, _ in chosen)
        taken = sum(
            Fraction(base * h, memory) + part.round_ns(1 + p, p, h) - base for h, p in batch
        )
        assert taken <= length


# ---- the fluid ---------------------------------------------------------------------


@given(
    jobs=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(0, 5)), max_size=6),
    data=st.data(),
)
def test_no_other_service_has_less(jobs: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Against services that pick any request that is there, or none, for each unit of time."""
    arrivals, takes, slopes = np.array(jobs, dtype=object).reshape(-1, 3).T
    least = (slopes * served(arrivals, takes, slopes)).sum()
    left, now, other = list(takes), 0, 0
    source = random.Random(data.draw(st.integers(0, 10**6)))
    while any(left):
        there = [i for i, a in enumerate(arrivals) if a <= now and left[i]]
        if there and source.random() < 0.8:
            i = source.choice(there)
            left[i] -= 1
            other += slopes[i] * (2 * now + 1)  # 2 * integral of t over one unit
        now += 1
    assert least <= other


def test_it_serves_with_interruptions() -> None:
    # 0 .. 2 the first, then the steeper one until 5, then the rest of the first.
    for kind in (object, float):
        arrivals, takes, slopes = np.array([(0, 2), (4, 3), (1, 2)], dtype=kind)
        assert served(arrivals, takes, slopes).tolist() == [4 + (49 - 25), 25 - 4]


# ---- the whole bound ---------------------------------------------------------------

A100 = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)


@pytest.mark.parametrize("arrivals", [False, True])
def test_no_policy_is_below_it(arrivals: bool) -> None:
    drawn = generate("conversation", 80, 3000, seed=4)
    source = random.Random(1)
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
        run = simulate(instance, policy, clock=Seconds(A100))
        assert bound <= known(run.objective)
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


def test_exact_where_floats_and_64_bits_end() -> None:
    big = 2**52
    instance = Instance(2**53 - 1, [Request(0, big, 900), Request(0, 1, big)])
    model = BatchTime([Line(2**53 - 1, 2**53 - 1)], 2**53 - 1, 2**53 - 1)
    found = request_times(instance, model, model.lines, object)
    takes, delays, alone = literal_part(
        Server([(2**53 - 1, 2**53 - 1)], 2**53 - 1, 2**53 - 1), 2**53 - 1,
        [(2**53 - 1, 2**53 - 1)], big, 900,
    )  # fmt: skip
    assert found.takes[0] == takes * instance.memory
    assert found.delays[0] == 2 * delays * instance.memory
    assert found.alone[0] == alone
    assert seconds_bound(instance, model).value_ns > alone


def test_large_caches_and_long_rounds_pass_64_bits() -> None:
    """Machine time counts in nanoseconds times M, which 64 bits hold less often than the times."""
    requests = [Request(0, 0, 1), Request(1, 0, 1), Request(0, 0, 3)]
    instance = Instance(2**31, requests, round_ms=1.0)
    model = BatchTime([Line(10**12, 10**11)], kv_ns=93, prompt_ns=26)
    optimum = solve(instance, clock="seconds", batch_time=model).objective
    assert optimum is not None
    assert 0 < seconds_bound(instance, model).value_ns <= optimum


def test_nothing_to_do_and_unknown_times() -> None:
    assert seconds_bound(Instance(5, []), A100).value_ns == 0
    with pytest.raises(InvalidInput, match="round_ms"):
        seconds_bound(Instance(5, [Request(3, 1, 1)]), A100)
    with pytest.raises(InvalidInput, match="'r1': arrival: is 1e\\+300 seconds away"):
        seconds_bound(timed_instance(5, [(0, 1, 1), (10**309, 1, 1)]), A100)
    known = Instance(5, [Request(3, 1, 1)], round_ms=50)
    assert seconds_bound(known, A100).value_ns == 45_000_000 + 2 * 160_000 + 2 * 80


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

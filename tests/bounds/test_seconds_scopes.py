"""Bounds in seconds for schedulers that pause requests, or process prompts in pieces."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import pytest
from oracle import Triple
from timed_oracle import Server

from kvopt.bounds.seconds import MIX, seconds_bound
from kvopt.bounds.seconds_evaluation import shares_bound
from kvopt.model.batch_time import BatchTime, Line
from kvopt.model.instance import Instance, Request
from kvopt.search.proofs import SharesProof
from kvopt.verify import Request as Row
from kvopt.verify import _by_shares, _Clock, _Work

State = tuple[int, int]
"""Of a request: tokens that it holds, and tokens that it has made."""


def moves(
    state: State, request: Triple, pauses: bool, chunks: bool
) -> Iterator[tuple[State, int, int]]:
    """Yield what a request may do in a round: its next state, prompt tokens, and 1 for a token."""
    (held, made), (_, prompt, output) = state, request
    missing = prompt + made - held
    if made == output:
        yield state, 0, 0
        return
    yield (held + missing + 1, made + 1), missing, 1
    if pauses or not held:
        yield (0, made), 0, 0
    if chunks:
        for piece in range(missing + (pauses or not made)):
            if pauses or piece or not made:
                yield (held + piece, made), piece, 0


def least_latency(
    memory: int, requests: Sequence[Triple], server: Server, pauses: bool, chunks: bool
) -> int:
    """Return the least total latency in nanoseconds, trying everything."""
    arrivals = sorted({a for a, _, _ in requests})
    alone = sum(
        server.round_ns(1 + (s if j == 1 else 0), s if j == 1 else 0, s + j)
        for _, s, o in requests
        for j in range(1, o + 1)
    )
    last = arrivals[-1] + alone  # by then one after another is done

    @cache
    def best(now: int, states: tuple[State, ...]) -> float:
        if now > last:
            return math.inf
        if all(made == o for (_, made), (_, _, o) in zip(states, requests, strict=True)):
            return 0
        found = [best(a, states) for a in arrivals if a > now][:1]
        there = [
            list(moves(state, r, pauses, chunks)) if r[0] <= now else [(state, 0, 0)]
            for state, r in zip(states, requests, strict=True)
        ]
        for choice in product(*there):
            after = tuple(state for state, _, _ in choice)
            open_ = [i for i, (_, made) in enumerate(states) if made < requests[i][2]]
            held = sum(after[i][0] for i in open_)
            prompts, active = sum(p for _, p, _ in choice), sum(t for _, _, t in choice)
            if held <= memory and prompts + active:
                end = now + server.round_ns(prompts + active, prompts, held)
                done = sum(end - requests[i][0] for i in open_ if after[i][1] == requests[i][2])
                found.append(done + best(end, after))
        return min(found, default=math.inf)

    return int(best(0, ((0, 0),) * len(requests)))


def random_case(
    source: random.Random, most: int = 3
) -> tuple[Instance, list[Triple], BatchTime, Server]:
    memory = source.randint(3, 7)
    requests = []
    for _ in range(2):
        output = source.randint(1, most)
        prompt = source.randint(0, min(most, memory - output))
        requests.append((source.choice((0, 0, source.randint(0, 12))), prompt, output))
    lines = [(source.randint(0, 6), source.randint(0, 4)) for _ in range(source.randint(1, 3))]
    lines = [line for line in lines if any(line)] or [(3, 1)]
    kv, prompt_ns = source.choice((0, 0, 1)), source.choice((0, 0, 2))
    instance = Instance(
        memory,
        [Request(0, s, o, arrival_seconds=a / 1e9) for a, s, o in requests],
    )
    model = BatchTime([Line(*line) for line in lines], kv, prompt_ns)
    return instance, requests, model, Server(lines, prompt_ns, kv)


CHUNKS_HELP = (
    Instance(200, [Request(0, 0, 20), Request(0, 90, 1)]),
    BatchTime([Line(100, 0), Line(0, 10)]),
)
"""Bounded by 3,720 ns where prompts are processed at once; pieces reach 3,020."""


class TestAgainstEverySchedule:
    """No bound is above what a schedule of its scope reaches."""

    @pytest.mark.slow
    @pytest.mark.parametrize(("pauses", "chunks"), [(True, False), (False, True), (True, True)])
    def test_bounds_hold(self, pauses: bool, chunks: bool) -> None:
        source, tight = random.Random(f"{pauses} {chunks}"), 0
        for _ in range(300):
            instance, requests, model, server = random_case(source, 2 if pauses and chunks else 3)
            least = least_latency(instance.memory, requests, server, pauses, chunks)
            found = seconds_bound(instance, model, chunks=chunks)
            assert found.value_ns <= least
            tight += found.value_ns >= 0.9 * least
        assert tight > 100

    def test_pieces_beat_the_bound_of_whole_prompts(self) -> None:
        instance, model = CHUNKS_HELP
        assert seconds_bound(instance, model).value_ns == 3720
        assert seconds_bound(instance, model, chunks=True).value_ns <= 3020

    def test_the_oracle_finds_what_pieces_and_pauses_are_worth(self) -> None:
        server = Server([(6, 0), (0, 2)], 0, 0)
        pair = [(0, 0, 3), (0, 3, 1)]
        whole, pieces = (least_latency(7, pair, server, False, c) for c in (False, True))
        assert pieces < whole
        pair = [(0, 0, 3), (4, 2, 1)]
        steady = Server([(4, 0)], 0, 0)
        runs, pauses = (least_latency(3, pair, steady, p, False) for p in (False, True))
        assert pauses < runs


class TestMixes:
    """Lines mixed into one."""

    def test_no_single_line_proves_as_much(self) -> None:
        # Long outputs make the first line count, long prompts the second.
        requests = [Request(0, 0, 36)] * 16 + [Request(0, 77, 2)] * 11
        instance, model = Instance(100, requests), BatchTime([Line(417, 0), Line(0, 45)])
        found = seconds_bound(instance, model, chunks=True)
        assert sum(found.proof.mix) == MIX
        for line in model.lines:
            alone = seconds_bound(instance, BatchTime([line]), chunks=True)
            assert found.value_ns > 1.1 * alone.value_ns

    def test_the_verifier_computes_the_same(self) -> None:
        source = random.Random(5)
        for _ in range(300):
            instance, requests, model, _ = random_case(source)
            mix = tuple(source.randint(1, 9) for _ in model.lines)
            weights = tuple(source.randint(0, 64) for _ in requests)
            proof = SharesProof(tuple(range(len(mix))), weights, (), mix)
            rows = [Row(0, s, o) for _, s, o in requests]
            arrivals = [a for a, _, _ in requests]
            claim = {"lines": proof.lines, "weights": weights, "company": [], "mix": mix}
            clock = _Clock(model.to_json())
            value, _ = _by_shares(instance.memory, rows, arrivals, clock, _Work(), claim, True)
            assert value == shares_bound(instance, model, proof)

    def test_of_huge_numbers_single_lines_are_left(self) -> None:
        instance, model = CHUNKS_HELP
        huge = BatchTime([*model.lines, Line(2**52, 0)])
        assert not seconds_bound(instance, huge, chunks=True).proof.mix

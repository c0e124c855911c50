"""Bounds in seconds by scope: below brute force with pauses, and with prompts in pieces."""

from __future__ import annotations

import random

from brute_force import Server, Triple, optimum
from msgspec import structs
from strategies import instance_of

from kvopt import BatchTime, Instance, Line, Request
from kvopt.bounds.seconds import MIX, seconds_bound
from kvopt.bounds.seconds_evaluation import shares_bound
from kvopt.incumbent.proofs import SharesProof
from kvopt.verify.certified_problem import Clock, Problem
from kvopt.verify.certified_problem import Request as Row
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import Work

LINES = [[(9, 0), (0, 3)], [(9, 0), (0, 3), (2, 2)], [(5, 1)], [(4, 0), (1, 2)], [(9, 1), (0, 4)]]


def random_problem(source: random.Random) -> tuple[Server, int, list[Triple]]:
    server = Server(source.choice(LINES), source.choice((0, 0, 1)), source.choice((0, 0, 1)))
    memory = source.randint(3, 8)
    requests = []
    for _ in range(source.randint(1, 3)):
        output = source.randint(1, 3)
        requests.append(
            (source.choice((0, 0, 7)), source.randint(0, min(3, memory - output)), output)
        )
    return server, memory, requests


def proved(
    problem: tuple[Server, int, list[Triple]], proof: SharesProof, *, chunks: bool = False
) -> int:
    server, memory, requests = problem
    model = BatchTime([Line(*line) for line in server.lines], server.kv_ns, server.prompt_ns)
    arrivals = [a for a, _, _ in requests]
    return shares_bound(instance_of(memory, requests), model, proof, arrivals, chunks=chunks)


def least(problem: tuple[Server, int, list[Triple]], scope: str) -> int:
    server, memory, requests = problem
    return optimum(memory, requests, server=server, scope=scope)


def test_a_roof_does_not_cover_chunks() -> None:
    """It says more than there is with prompts in pieces, a single line does not."""
    problem = (Server([(9, 0), (0, 3), (2, 2)], 0, 0), 11, [(3, 7, 2), (5, 8, 2)])
    optima = [least(problem, scope) for scope in ("chunks", "pauses")]
    assert optima == [94, 100]
    assert [proved(problem, SharesProof(lines)) for lines in ((0, 1), (1,))] == [95, 93]


def test_the_worked_case_of_pieces() -> None:
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
    assert pieces <= least(problem, "chunks") < whole


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

    def test_the_verifier_computes_the_same(self) -> None:
        source = random.Random(5)
        for _ in range(300):
            server, memory, requests = random_problem(source)
            model = BatchTime(
                [Line(*line) for line in server.lines], server.kv_ns, server.prompt_ns
            )
            instance = instance_of(memory, requests)
            lines: tuple[int, ...] = (source.randrange(len(model.lines)),)
            mix: tuple[int, ...] = ()
            if source.random() < 0.5:
                lines = tuple(range(len(model.lines)))
                mix = tuple(source.randint(1, 9) for _ in lines)
            weights = tuple(source.randint(0, 64) for _ in requests)
            company = tuple(source.choice((0, 64 - weight)) for weight in weights)
            proof = SharesProof(lines, weights, company, mix)
            arrivals = [a for a, _, _ in requests]
            claim = {"kind": "shares", "lines": proof.lines, "weights": weights}
            clock = Clock.of(model.to_json())
            problem = Problem(
                instance.memory, [Row(*request) for request in requests], clock=clock, chunks=True
            )
            claim |= {"company": company} | ({"mix": mix} if mix else {})
            value, _ = value_of_proof(problem, claim, Work())
            assert value == shares_bound(instance, model, proof, arrivals, chunks=True)

    def test_of_huge_numbers_single_lines_are_left(self) -> None:
        instance = Instance(200, [Request(0, 0, 20), Request(0, 90, 1)])
        huge = BatchTime([Line(100, 0), Line(0, 10), Line(2**52, 0)])
        assert not seconds_bound(instance, huge, scope="chunks").proof.mix

"""Certificates where memory is given out in whole blocks, and what is wrong in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from certificates import prices_proof
from effort import few_steps
from known import known

from kvopt import Instance, Request, certify, read_certificate, verify, write_certificate
from kvopt.incumbent.proofs import PriceProof
from kvopt.problem.scopes import Scope
from kvopt.verify.problem import hash_of

FIVE = Instance(20, [Request(0, 3, 9), Request(1, 2, 7), Request(2, 5, 4)], block_size=4)


@pytest.mark.usefixtures("processor_clock")
@pytest.mark.parametrize("scope", ["runs", "pauses"])
def test_a_certificate_says_that_it_counts_blocks(scope: str, tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    with few_steps(300):
        found = certify(FIVE, ["vllm-fcfs", "svf"], scope=scope, time_limit=4)
    write_certificate(found, file)
    verdict = verify(file)
    assert verdict.valid, verdict.lines
    assert "memory in 5 whole blocks of 4 tokens" in verdict.lines
    again = read_certificate(file)
    assert again.instance == FIVE
    assert again.upper is not None
    assert known(again.lower_bound) <= known(again.objective)
    if again.scope is Scope.PAUSES:
        assert isinstance(known(again.lower).proof, PriceProof)
        assert "prices of whole blocks" in "".join(verdict.lines)


def certificate(block: int | None, **more: Any) -> dict[str, Any]:
    """Return one of three requests, two blocks of four tokens or eight tokens, all started at 0."""
    rows = [{"arrival": 0, "prompt": 0, "output": o} for o in (2, 2, 1)]
    instance = {"schema": "kvopt.instance/2", "memory": 8, "requests": rows}
    if block is not None:
        instance["block_size"] = block
    steps = {} if block is None else {"relaxations": ["tokens"]}
    said = {
        "schema": "kvopt.certificate/4",
        "clock": "rounds",
        "scope": "runs",
        "instance": instance,
        "hash": hash_of(instance),
        "upper": {"value": 5, "starts": [0, 0, 0]},
        "lower": {"value": 5, **steps, "proof": {"kind": "volume"}},
    }
    return {**said, **more}


def judged(tmp_path: Path, said: dict[str, Any]) -> str:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(said))
    return verify(path).lines[-1]


def test_a_schedule_that_fits_in_tokens_and_not_in_blocks(tmp_path: Path) -> None:
    assert judged(tmp_path, certificate(None)) == "VALID"
    assert judged(tmp_path, certificate(2)) == "VALID"
    said = judged(tmp_path, certificate(4))
    assert said == "INVALID: upper: 3 blocks are held at one time, there are 2"
    segments = {"value": 5, "segments": [[[1, 2]], [[1, 2]], [[1, 1]]]}
    pausing = certificate(4, upper=segments, scope="pauses")
    assert "3 blocks are held" in judged(tmp_path, pausing)
    run = {"policy": "p", "outcome": "completed", "value": 5, "starts": [0, 0, 0]}
    assert "'p': 3 blocks" in judged(tmp_path, certificate(4, upper=None, policies=[run]))
    lost = {**run, "value": 7, "starts": [0, 0, 2], "lost": [[2, 0, 1]]}
    assert "cannot lose" in judged(tmp_path, certificate(4, upper=None, policies=[lost]))


def test_blocks_of_which_a_request_needs_too_many(tmp_path: Path) -> None:
    said = certificate(5)
    said["instance"]["requests"][0]["output"] = 6
    said["hash"] = hash_of(said["instance"])
    assert judged(tmp_path, said) == (
        "INVALID: instance: request 0 needs more than the memory, so none is feasible"
    )


def test_prices_of_blocks_are_paid_for_all_blocks_and_no_more(tmp_path: Path) -> None:
    """Three requests pay four tokens each for their first time, of eight: 5 + (12 - 8) / 8."""
    prices = prices_proof(8, 1, [1])
    proof = {"value": 6, "proof": prices}
    assert judged(tmp_path, certificate(4, upper=None, lower=proof)) == "VALID"
    more = {"value": 7, "proof": prices}
    assert "the proof gives 6" in judged(tmp_path, certificate(4, upper=None, lower=more))
    tokens = {"value": 6, "relaxations": ["tokens"], "proof": prices}
    assert "the proof gives 5" in judged(tmp_path, certificate(4, upper=None, lower=tokens))
    negative = {"value": 5, "proof": prices_proof(8, 1, [-1])}
    assert "is negative" in judged(tmp_path, certificate(4, upper=None, lower=negative))
    inside = {"value": 5, "proof": {"kind": "split", "parts": [{"from": 0, "proof": prices}]}}
    assert "need the relaxation tokens" in judged(
        tmp_path, certificate(4, upper=None, lower=inside)
    )


def test_a_bound_of_tokens_says_so(tmp_path: Path) -> None:
    for workers in (1, 2):
        said = certificate(4, upper=None)
        if workers > 1:
            said["instance"]["workers"] = workers
            said["hash"] = hash_of(said["instance"])
        assert judged(tmp_path, said) == "VALID"
        del said["lower"]["relaxations"]
        assert judged(tmp_path, said).endswith("volume of this problem need the relaxation tokens")

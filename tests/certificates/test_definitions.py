"""Definitions agree with fast evaluators; modules that a check names are those that it runs."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType

import pytest
from certificates import EC1, certificate, paused_certificate, with_slo
from configuration_proofs import content_of as content_of_proof
from configuration_proofs import drawn_cuts, drawn_problem, drawn_stage, with_cuts
from definitions import by_definition
from drawn_claims import Content, bound_of, drawn, proof_of, restricted, shared_prices
from effort import many

import kvopt.verify as checker
from kvopt import BatchTime, Instance, Line, Request
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.certificate import Certificate
from kvopt.problem.clocks import Seconds
from kvopt.verify import verify_text
from kvopt.verify.certified_problem import held_together, problem_of
from kvopt.verify.check_proofs import KINDS, missing, value_of_proof
from kvopt.verify.report import report_on
from kvopt.verify.step_budget import Invalid, Work, resources_of

FOLDER = Path(checker.__file__).parent


def found(content: Content, proof: Content) -> int | str:
    """Return what a proof gives, or why it is refused; which schedule refutes it may differ."""
    problem = problem_of(content).within(content["scope"])
    try:
        return value_of_proof(problem, proof, Work(), missing(problem, proof))[0]
    except Invalid as error:
        return str(error).partition(" total latency of ")[0]


@pytest.mark.slow
def test_definitions_give_what_fast_evaluators_give() -> None:
    source, known = random.Random(18), Counter[str]()
    for _ in range(many(200)):
        content = restricted(source) if source.random() < 0.1 else drawn(source)
        proof = proof_of(content, source)
        with by_definition():
            slow = found(content, proof)
        assert found(content, proof) == slow, (content, proof)
        known.update(
            {name: isinstance(slow, int) for name in (proof["kind"], *resources_of(proof))}
        )
    assert known.keys() >= {"tokens", "slots", "volume", "configurations", "shares"}
    assert min(known[name] for name in ("tokens", "slots", "volume", "shares")) > 1


@pytest.mark.slow
def test_searches_with_completion_bounds_agree_with_all_schedules() -> None:
    source, refuted = random.Random(4), 0
    for _ in range(many(30)):
        problem = drawn_problem(source, most=3)
        stage = drawn_stage(source, problem, source.randint(1, 6))
        proof = with_cuts([stage], source.randint(3, 12), drawn_cuts(source, stage))
        content = content_of_proof(problem, proof, 0)
        with by_definition():
            slow = found(content, proof)
        assert found(content, proof) == slow, (problem, proof)
        refuted += isinstance(slow, str)
    assert 0 < refuted < many(30)


@pytest.mark.slow
def test_ceilings_agree_with_their_definition() -> None:
    source = random.Random(5)
    for made in (certificate, paused_certificate):
        for _ in range(many(8)):
            content = with_slo(made(EC1, source), source)
            with by_definition():
                slow = report_on(json.loads(json.dumps(content)))
            fast = report_on(content)
            assert [line for line in slow if "  lower" not in line] == [
                line for line in fast if "  lower" not in line
            ]


def executed(text: str) -> tuple[set[str], str]:
    """Return the modules of which a check runs a function, and the line that names them."""
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.parent == FOLDER:
            ran.add(path.stem)

    sys.setprofile(note)
    try:
        verdict = verify_text(text)
    finally:
        sys.setprofile(None)
    assert verdict.valid, verdict.lines
    return ran - {"__init__"}, verdict.lines[-2]


def test_a_ceiling_by_shared_rounds_names_its_modules() -> None:
    instance = Instance(9, [Request(0, 2, 1, arrival_seconds=0.0)] * 2)
    clock = Seconds(BatchTime([Line(10**9, 0)]))
    content = json.loads(certificate_text(Certificate(instance, None, None, clock=clock)))
    proof = {"kind": "shared-rounds", "rows": [[0]], "unit": 64, "cell": 10**9, "fixed": [0, 0],
             "slopes": [], "interference": [], "row_prices": [[0, 0]]}  # fmt: skip
    slo = {"limits": {"e2e": "9s"}, "ceiling": 2, "proof": proof, "attained": [], "best": None}
    modules, line = executed(json.dumps({**content, "slo": slo}))
    assert "check_shared_rounds" in modules
    assert modules <= set(line.partition(": ")[2].split(", "))


def with_nodes(source: random.Random) -> Content:
    """Return a certificate of runs in rounds that share blocks."""
    while True:
        content = restricted(source)
        is_even = content["clock"] == "rounds" and "pauses" not in content["scope"]
        if is_even and held_together(problem_of(content))[2]:
            return content


@pytest.mark.slow
def test_modules_that_are_named_are_those_that_run() -> None:
    source = random.Random(1)
    ran, named = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for number in range(many(240)):
        content = drawn(source)
        proof = proof_of(content, source)
        if number % 10 == 0:
            problem = drawn_problem(source, most=3)
            stage = drawn_stage(source, problem, 6)
            proof = with_cuts([stage], 3, drawn_cuts(source, stage))
            content = content_of_proof(problem, proof, 0)
        if number % 3 == 1:
            content = restricted(source)
            proof = proof_of(content, source)
        if number % 10 == 5:
            content = with_nodes(source)
            proof = shared_prices(problem_of(content), source)
        if proof["kind"] == "branches":
            proof["target"] = 1  # no schedule is below it
        content["lower"] = bound_of(content, proof, -1000)
        try:
            inner = problem_of(content).within(content["scope"])
            value_of_proof(inner, proof, Work(), content["lower"].get("relaxations", ()))
        except Invalid:
            continue
        modules, line = executed(json.dumps(content))
        names = set(line.partition(": ")[2].split(", "))
        assert modules <= names, (modules, line)
        assert line.startswith(f"checked by {len(names)} modules of kvopt/verify: ")
        parts = proof["parts"] if proof["kind"] == "split" else [{"proof": proof}]
        for part in parts:
            ran[part["proof"]["kind"]] |= modules
            named[part["proof"]["kind"]] |= names
    assert named.keys() == KINDS.keys()
    more = set().union(*named.values()) - set().union(*ran.values())
    assert more <= {"check_runs"}  # of schedules
    # the volume of a part without requests is not computed
    assert named["prices"] - ran["prices"] <= {"check_runs", "check_volume"}

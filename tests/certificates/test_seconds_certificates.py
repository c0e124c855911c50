"""Certificates in seconds: what is true passes, what is changed is refused or still true."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from certificates import Place, changed, claiming, in_file, judged, verified
from commands import Run
from known import known
from msgspec import convert

from kvopt import BatchTime, Instance, Line, Request, certify, generate
from kvopt.bounds.seconds import seconds_bound
from kvopt.certificates.certificate_files import certificate_text
from kvopt.incumbent.proofs import Proof
from kvopt.problem.clocks import Seconds
from kvopt.problem.instance_files import instance_from_json
from kvopt.simulate.policies import policy
from kvopt.verify import verify_text

pytestmark = pytest.mark.usefixtures("processor_clock")

ROOF = BatchTime([Line(10, 0), Line(4, 3)], kv_ns=1, prompt_ns=2, name="roof")
A100 = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)
NANOSECOND = 1e-9


def tiny(times: tuple[float, ...] = (0, 0, 5, 90)) -> Instance:
    """Return four requests; at 90 ns the server has long been idle."""
    shapes = ((0, 2), (3, 1), (1, 2), (4, 1))
    pairs = zip(times, shapes, strict=True)
    return Instance(5, [Request(0, s, o, arrival_seconds=t * NANOSECOND) for t, (s, o) in pairs])


@cache
def text_of(instance: Instance, model: BatchTime, *policies: str) -> str:
    return certificate_text(certify(instance, policies, clock=Seconds(model)))


def content(instance: Instance, model: BatchTime, *policies: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(instance, model, *policies))
    return found


def test_means_count_each_latency_as_often_as_its_weight(tmp_path: Path) -> None:
    requests = [Request(0, 0, 1, weight=w, arrival_seconds=0) for w in (9, 1)]
    found = certify(Instance(9, requests), ["fcfs"], clock=Seconds(BatchTime([Line(10**9, 0)])))
    assert found.objective == 10 * 10**9
    assert found.worded_total(found.objective, up=True) == "1.000000"
    assert "a mean latency of 1.000000 s" in known(found.eager_sentence)
    lines = judged(tmp_path / "c.json", json.loads(certificate_text(found))).lines
    assert any("has a mean latency below 1.000000 s" in line for line in lines)


def test_certificates_of_traffic_verify() -> None:
    drawn = generate("conversation", 80, 3000, seed=4)
    source = random.Random(1)
    requests = [
        Request(0, r.prompt, r.output, arrival_seconds=source.uniform(0, 10)) for r in drawn
    ]
    policies = ("svf", "fcfs", "a-min:intervals=relative,eps=0.5")
    found = certify(Instance(3000, requests), policies, clock=Seconds(A100))
    text = verified(found)
    assert [run.policy for run in found.runs] == list(policies)
    assert found.runs[2].lost
    assert 0 < known(found.gap) < 0.5
    for run in found.runs:
        at_least, at_most = found.ratio(run)
        assert 1 <= known(at_least) <= known(at_most)
    assert "no schedule of these 80 requests has a mean latency below" in text
    assert "'a-min:intervals=relative,eps=0.5' is at most" in text


def test_parts_are_written_read_and_checked(tmp_path: Path) -> None:
    requests = [Request(0, 1, 60, arrival_seconds=0.4 * i) for i in range(40)]
    side_by_side = Instance(16_000, requests)
    model = BatchTime([Line(10_000_000, 2_000_000)], 80)
    found = content(side_by_side, model)
    bound = seconds_bound(side_by_side, model)
    proof = in_file(bound.proof)
    found["lower"] = {"value": bound.value_ns, "proof": proof}
    assert proof["parts"] > 0
    assert judged(tmp_path / "c", found).valid
    again = in_file(convert(proof, Proof))
    assert again == proof
    for parts, status in ((0, 1), (-1, 1), (65, 1), ("8", 2), (8.0, 2)):
        proof["parts"] = parts
        assert judged(tmp_path / "c", found).exit_status == status
    proof.update(again)
    assert judged(tmp_path / "c", {**found, "scope": "chunks"}).exit_status == 1


WRONG: list[tuple[Place, Any]] = [
    (("clock", "lines"), []),
    (("clock", "lines", 0, "round_ns"), -1),
    (("clock", "kv_ns"), 2**53),
    (("clock", "lines", 1), {"round_ns": 0, "token_ns": 0}),
    (("upper", "waits"), [[1]]),
    (("upper", "waits"), [[0, -1]]),
    (("upper", "starts"), [0]),
    (("upper", "starts", 0), -1),
    (("upper", "lost"), [[0, 0, 1]]),
    (("lower", "proof", "lines"), []),
    (("lower", "proof", "lines"), [2]),
    (("lower", "proof", "lines"), [-1]),
    (("lower", "proof", "weights"), [64]),
    (("lower", "proof", "weights"), [64, 64, 65, 64]),
    (("lower", "proof", "weights"), [64, 64, -1, 64]),
    (("lower", "proof", "company"), [0, 0, 0]),
    (("lower", "proof", "company"), [0, 0, 0, -1]),
    (("lower", "proof", "company"), [0, 0, 0, 1]),
    (("hash",), "sha256:0"),
]


class TestHostile:
    @pytest.mark.parametrize(("place", "value"), WRONG)
    def test_false_fields_are_invalid(self, tmp_path: Path, place: Place, value: object) -> None:
        found = content(tiny((0, 0, 0, 0)), ROOF, "fcfs")
        assert judged(tmp_path / "c", found).valid
        verdict = judged(tmp_path / "c", changed(found, place, lambda _: value))
        assert (verdict.exit_status, len(verdict.lines)) == (1, 1), verdict.lines
        assert verdict.lines[0].isprintable()

    def test_arrivals_must_have_a_time(self, tmp_path: Path) -> None:
        found = content(tiny(), ROOF)
        del found["instance"]["requests"][0]["arrival_seconds"]
        found["hash"] = instance_from_json(found["instance"]).hash
        verdict = judged(tmp_path / "c", found)
        assert verdict.exit_status == 1
        assert "which second" in verdict.lines[0]

    def test_huge_numbers_are_not_counted_one_by_one(self, tmp_path: Path) -> None:
        """Outputs of 2^52 rounds, starts and waits of 300 digits."""
        big, far = 2**52, 10**298
        requests = [{"arrival": 0, "prompt": 1, "output": big, "arrival_seconds": 1e300},
                    {"arrival": 0, "prompt": 0, "output": 1, "arrival_seconds": 0}]  # fmt: skip
        instance = {"schema": "kvopt.instance/1", "memory": 2**53 - 1, "requests": requests}
        upper = {"value": 0, "starts": [far, 0], "waits": [[far, 10**299]]}
        found = claiming(instance, clock=ROOF.to_json(), upper=upper)
        verdict = judged(tmp_path / "c", found)
        assert verdict.exit_status == 1
        assert "begins too early" in verdict.lines[0]
        found["upper"] = None
        proof = {"kind": "shares", "lines": [0, 1], "weights": [1, 60], "company": [9, 4]}
        found["lower"] = {"value": 1, "proof": proof}
        assert judged(tmp_path / "c", found).valid

    def test_company_that_keeps_the_checker_busy_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        requests = [Request(0, 5, 90, arrival_seconds=t * NANOSECOND) for t in range(400)]
        clock = Seconds(ROOF)
        found = json.loads(
            certificate_text(certify(Instance(100, requests), clock=clock, time_limit=0))
        )
        share = [[1, 62][i % 2] for i in range(400)]
        found["lower"]["value"] = 0
        found["lower"]["proof"].update(weights=[0] * 400, company=share)
        assert judged(tmp_path / "c", found).valid
        monkeypatch.setattr("kvopt.verify.step_budget.STEPS", 600_000)
        del found["budget"]
        verdict = judged(tmp_path / "c", found)
        assert verdict.exit_status == 2
        assert "lower: shares: " in verdict.lines[0]


# ---- the command line ---------------------------------------------------------------


class TestCommand:
    def test_no_time_is_enough_for_both_sides(self, run: Run, tmp_path: Path, ec1: Path) -> None:
        arguments = ("certify", ec1, "--seconds", "-P", "svf", "-t", 0, "-o", tmp_path / "c.json")
        out, err = run.done(*arguments)
        assert "unfinished" in out
        assert "svf: was not run, as the limit came first" in err
        assert run("verify", tmp_path / "c.json")[0] == 0

    def test_ctrl_c_writes_what_was_found(
        self, run: Run, tmp_path: Path, ec1: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: object) -> Iterable[int]:
            raise KeyboardInterrupt

        monkeypatch.setattr(type(policy("svf")), "admit", interrupted)
        arguments = ("certify", ec1, "--seconds", "-P", "fcfs", "-P", "svf", "-P", "mc-sf")
        code, _, _ = run(*arguments, "-o", tmp_path / "c.json")
        assert code == 130
        found = json.loads((tmp_path / "c.json").read_text())
        assert [p["outcome"] for p in found["policies"]] == ["completed"] + ["unfinished"] * 2
        assert run("verify", tmp_path / "c.json")[0] == 0


def test_a_cache_of_whole_blocks_keeps_what_the_schedule_says() -> None:
    shapes = ((2, 2, 5, ("a",)), (0, 3, 0, ()), (3, 1, 0, ("a",)), (0, 1, 5, ()))
    requests = [
        Request(0, prompt, output, arrival_seconds=time * NANOSECOND, prefix=prefix)
        for prompt, output, time, prefix in shapes
    ]
    instance = Instance(7, requests, block_size=2, block_tokens=2)
    clock = Seconds(BatchTime([Line(2, 3), Line(3, 2)]))
    made = certify(instance, ["svf"], clock=clock, scope="sharing", time_limit=1)
    assert made.runs[0].objective == 108  # by tokens "a" would stay, and save 6
    assert verify_text(certificate_text(made)).valid

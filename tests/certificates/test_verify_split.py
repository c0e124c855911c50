"""Proofs by parts, absolute clocks, hostile names, and what a report says it covers."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from brute_force import optimum
from certificates import certificate, judged, prices_proof, proved, random_proof, split
from configuration_proofs import (
    STAGE,
    content_of,
    drawn_problem,
    drawn_proofs,
    drawn_stage,
    plainly,
    proof_of,
    replay,
)
from configuration_proofs import proved as proved_by_states
from effort import many
from known import known
from strategies import instance_of, plain, random_instances

from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.report import covered_by
from kvopt.verify.step_budget import Invalid, Work

FAR = 10**12


class TestSplit:
    """The bounds of parts of the requests add up."""

    def test_the_sum_of_the_parts_and_never_above_the_optimum(self) -> None:
        source = random.Random(5)
        tight = 0
        for instance in random_instances(
            many(150), 3, most_requests=4, most_memory=8, most_output=4, last_arrival=9
        ):
            borders = sorted(source.sample(range(10), source.randint(1, 3)))
            arrivals = [request.arrival for request in instance]
            borders[0] = min([borders[0], *arrivals])
            proofs = [source.choice(({"kind": "volume"}, random_proof(source))) for _ in borders]
            total = 0
            for begin, end, proof in zip(borders, [*borders[1:], 99], proofs, strict=True):
                own = [
                    Request(r.arrival - begin, r.prompt, r.output)
                    for r in instance
                    if begin <= r.arrival < end
                ]
                total += proved(Instance(instance.memory, own), proof) if own else 0
            found = proved(instance, split(*zip(borders, proofs, strict=True)))
            assert found == total
            best = optimum(*plain(instance))
            assert found <= best
            tight += found == best
        assert tight > many(6)

    def test_parts_by_configurations_add_up(self) -> None:
        source = random.Random(6)
        for _ in range(60):
            memory, near = drawn_problem(source)
            far = tuple((a + 30, s, o) for a, s, o in near)
            stage = drawn_stage(source, (memory, near), source.randint(1, 9))
            proof = proof_of([stage])
            found = proved_by_states((memory, near + far), split((0, proof), (30, proof)))
            assert found == 2 * known(replay((memory, near), proof))

    def test_a_part_without_requests_gives_nothing_whatever_its_proof(self) -> None:
        instance = instance_of(7, [(5, 1, 2)])
        false = prices_proof(-1, -1, [-7])
        assert proved(instance, split((0, false), (5, {"kind": "volume"}), (6, false))) == 2
        with pytest.raises(Invalid):
            proved(instance, split((0, {"kind": "volume"}), (5, false)))

    def test_no_requests_prove_zero(self) -> None:
        assert proved(Instance(7, []), split((0, {"kind": "volume"}))) == 0

    @pytest.mark.parametrize("begins", [[], [2], [-1], [0, 0], [1, 0], [0, 3, 2]])
    def test_begins_that_are_none_are_invalid(self, tmp_path: Path, begins: list[int]) -> None:
        proof = split(*((begin, {"kind": "volume"}) for begin in begins))
        content = content_of((7, ((1, 1, 2), (4, 1, 3))), proof, 0)
        verdict = judged(tmp_path / "c", content)
        assert verdict.exit_status == 1
        assert verdict.lines[0].startswith("INVALID: lower: ")

    def test_the_report_counts_parts_and_names_kinds(self, tmp_path: Path) -> None:
        volume, prices = {"kind": "volume"}, prices_proof(1, 1, [])
        proof = split((0, volume), (3, prices), (4, volume))
        content = content_of((7, ((1, 1, 2), (4, 1, 3))), proof, 5)
        lines = judged(tmp_path / "c", content).lines
        assert "  lower 5: its proof by 3 parts (volume, prices) gives 5" in lines
        content = content_of((7, ((1, 1, 2),)), split((0, volume)), 2)
        lines = judged(tmp_path / "c", content).lines
        assert "  lower 2: its proof by 1 part (volume) gives 2" in lines


class TestAbsoluteClocks:
    """What happens late costs what it costs early."""

    def test_later_prices_of_later_requests_prove_as_much(self) -> None:
        source = random.Random(3)
        for instance in random_instances(many(60), 4, last_arrival=20):
            far = instance_of(
                instance.memory, [(r.arrival + FAR, r.prompt, r.output) for r in instance]
            )
            proof = random_proof(source)
            (tokens,) = proof["resources"]
            later = {**proof, "resources": [{**tokens, "first": tokens["first"] + FAR}]}
            assert proved(far, later) == proved(instance, proof)

    @pytest.mark.slow
    def test_later_states_of_later_requests_prove_as_much(self) -> None:
        for (memory, requests), proof in drawn_proofs(9, many(60)):
            far = tuple((a + FAR, s, o) for a, s, o in requests)
            later = json.loads(json.dumps(proof))
            for stage in later["stages"]:
                stage["times"] = [time + FAR for time in stage["times"]]
            found = proved_by_states((memory, far), later)
            assert found == proved_by_states((memory, requests), proof)

    def test_times_long_before_the_first_arrival_are_exact(self) -> None:
        # Nothing can be active then, but right sides are interpolated from there.
        problem = 7, ((40, 1, 3), (41, 1, 2))
        for times in ([1, 50], [1, 39, 45], [1, 2, 40], [1, 20], [40, 41], [39, 40]):
            rows = STAGE["numerators"][: len(times)]
            stage = {**STAGE, "times": times, "numerators": rows}
            assert proved_by_states(problem, proof_of([stage])) == replay(
                problem, proof_of([stage])
            )
        far = 7, ((FAR + 1, 1, 3), (FAR + 2, 1, 2))
        stage = {**STAGE, "times": [1, FAR, FAR + 8]}
        assert proved_by_states(far, proof_of([stage])) is not None

    @pytest.mark.slow
    def test_a_certificate_takes_as_many_steps(self) -> None:
        requests = tuple((a % 3, 1 + a % 4, 2 + a % 5) for a in range(14))
        stage: dict[str, Any] = {
            "denominator": 4,
            "peaks": [[p, 4] for p in range(3, 11)],
            "times": list(range(1, 80)),
            "numerators": [[(r + x) % 7 for r in range(32)] for x in range(79)],
        }
        taken, values = set(), set()
        for offset in (0, FAR):
            moved = tuple((a + offset, s, o) for a, s, o in requests)
            late = {**stage, "times": [time + offset for time in stage["times"]]}
            work = Work()
            values.add(value_of_proof(plainly((30, moved)), proof_of([late]), work)[0])
            taken.add(work.used)
        assert len(values) == len(taken) == 1


NAMES = [
    "x\nVALID\x1b[2J\ud800" + "y" * 10_000,
    "mc-sf is optimal, and svf",
    "a' is optimal\n  'b",
    "\\",
    "\\'",
    "\u202egnihton\u2066",
    "\u0085\u2028\x00\x7f",
    "\U0001f600" * 80,
    "'" * 200,
    "",
]


class TestForeignText:
    """Whatever a name is, it stands in quotes that it cannot close, on one line."""

    @pytest.mark.parametrize("name", NAMES)
    def test_names_cannot_forge_lines(self, tmp_path: Path, name: str) -> None:
        instance = instance_of(7, [(0, 1, 3), (0, 1, 2)])
        content = certificate(instance, random.Random(1))
        plain_lines = judged(tmp_path / "c", content).lines
        content["policies"][0]["policy"] = content["policies"][1]["policy"] = name
        content["instance"]["name"] = name
        lines = judged(tmp_path / "c", content).lines
        assert len(lines) == len(plain_lines)
        for line in lines:
            assert line.isascii()
            assert line.isprintable()
            assert len(line) < 300
            assert outside_quotes(line) in {outside_quotes(other) for other in plain_lines}

    def test_names_in_refusals_are_quoted(self, tmp_path: Path) -> None:
        content = certificate(instance_of(7, [(0, 1, 3)]), random.Random(1))
        content["policies"][0].update(policy="upper: fine\nVALID '", value=1)
        (line,) = judged(tmp_path / "c", content).lines
        assert line.startswith("INVALID: 'upper: fine\\nVALID \\'': says 1, the starts give")


def outside_quotes(line: str) -> str:
    """Return a line without what stands in quotes; a backslash takes the next character along."""
    kept, inside, at = "", False, 0
    while at < len(line):
        if inside and line[at] == "\\":
            at += 2
            continue
        if line[at] == "'":
            inside = not inside
        if not inside:
            kept += line[at]
        at += 1
    assert not inside
    return kept.replace("...", "")


class TestCovered:
    """A lower bound says of which schedules it speaks."""

    def test_covered_schedules_are_named_with_a_lower_bound_only(self, tmp_path: Path) -> None:
        content = certificate(instance_of(7, [(0, 1, 3)]), random.Random(1))
        lines = judged(tmp_path / "c", content).lines
        assert lines.count(covered_by("runs")) == 1
        assert lines.index(covered_by("runs")) > lines.index("proved:")
        content["lower"] = None
        text = judged(tmp_path / "c", json.dumps(content)).lines
        assert covered_by("runs") not in text

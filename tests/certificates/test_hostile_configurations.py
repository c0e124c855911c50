"""Files with a proof by configurations that lie, and what a report says of one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, cast

import pytest
from certificates import Place, changed, judged
from configuration_proofs import (
    SMALL,
    STAGE,
    Problem,
    best,
    content_of,
    examples,
    plainly,
    proof_of,
    proved,
    words,
)
from msgspec import to_builtins

from kvopt.incumbent.proofs import ConfigurationProof, StatePrices
from kvopt.verify.check_proofs import value_of_proof
from kvopt.verify.step_budget import Invalid, Unreadable, Work


def forged(place: Place, value: object, target: int | None = 13) -> dict[str, Any]:
    """Return a certificate with two stages in which a part of the proof is another."""
    content = content_of(SMALL, proof_of([copy.deepcopy(STAGE) for _ in range(2)], target), 0)
    return cast(dict[str, Any], changed(content, ("lower", "proof", *place), lambda _: value))


FORGED: list[tuple[Place, Any]] = [
    (("target",), None),
    (("stages",), []),
    (("stages", 0, "denominator"), 0),
    (("stages", 1, "denominator"), -4),
    (("stages", 0, "times"), []),
    (("stages", 0, "times"), [0, 4, 6]),
    (("stages", 0, "times"), [1, 6]),
    (("stages", 0, "times"), [1, 6, 6]),
    (("stages", 0, "times"), [4, 1, 6]),
    (("stages", 1, "times"), [1, 4, 7]),
    (("stages", 0, "peaks"), []),
    (("stages", 0, "peaks"), [[2, 1], [4, 6]]),
    (("stages", 0, "peaks"), [[2, 1], [4, 3], [4, 2]]),
    (("stages", 0, "peaks"), [[2, 1], [4, 3], [5, 2, 0]]),
    (("stages", 0, "peaks"), [[2, 1], [4, 3], [5]]),
    (("stages", 0, "peaks"), [[2, 7], [4, -3], [5, 2]]),
    (("stages", 0, "peaks", 0), [2, 10**299]),
    (("stages", 0, "numerators"), []),
    (("stages", 0, "numerators", 1), [1, 2, 3]),
    (("stages", 1, "numerators", 1, 2), -1),
]


class TestHostile:
    """What is not so is invalid, what has not the shape or is too much is unreadable."""

    def test_the_example_is_valid(self, tmp_path: Path) -> None:
        for target in (9, 13):
            assert judged(tmp_path / "c", forged(("target",), target)).valid

    @pytest.mark.parametrize(("place", "value"), FORGED)
    def test_parts_that_do_not_fit_are_invalid(
        self, tmp_path: Path, place: Place, value: object
    ) -> None:
        # The target is proved by the first stage, so that the second need not be looked at.
        for target in (-99, 13):
            verdict = judged(tmp_path / "c", forged(place, value, target))
            assert verdict.exit_status == 1, verdict.lines
            assert verdict.lines[0].startswith("INVALID: lower: ")

    def test_a_search_needs_a_target(self, tmp_path: Path) -> None:
        for searched in (False, True):
            proof = proof_of([STAGE], None, searched)
            content = content_of(SMALL, proof, 0)
            assert judged(tmp_path / "c", content).exit_status == int(searched)

    @pytest.mark.slow
    def test_a_claim_of_one_more_is_invalid(self, tmp_path: Path) -> None:
        for problem, proof, value in examples()[:150]:
            for more in (0, 1):
                claim = content_of(problem, proof, (value or 0) + more)
                verdict = judged(tmp_path / "c", claim)
                assert verdict.valid == (value is not None and not more), verdict.lines
                if value is None:
                    assert "INVALID: lower: a schedule has a total latency" in verdict.lines[0]

    @pytest.mark.parametrize(
        ("problem", "changed"),
        [
            *((SMALL, {"times": [1, 4, last]}) for last in (10**6, 10**15, 10**299)),
            ((7, ((0, 1, 2),) * 3000), {"times": [1, 4, 1000]}),
            ((10**9, ((0, 10**9 - 3, 3),)), {"peaks": [[10**9, 6]]}),
        ],
    )
    def test_late_times_many_requests_and_large_tables_are_refused_at_once(
        self, tmp_path: Path, problem: Problem, changed: dict[str, Any]
    ) -> None:
        verdict = judged(tmp_path / "c", content_of(problem, proof_of([{**STAGE, **changed}]), 0))
        assert "UNREADABLE: lower: configurations: needs" in verdict.lines[0]

    def test_states_that_nobody_reaches_need_no_table(self) -> None:
        problem = 2**53 - 1, ((0, 1, 1), (2**53 - 9, 1, 2**53 - 3))
        assert proved(problem, proof_of([{**STAGE, "peaks": [[2**52, 6]]}])) == 2**53 - 2

    @pytest.mark.parametrize("problem", [SMALL, (7, ((0, 1, 3),) * 9), (9, ())])
    def test_targets_far_above_are_refused(self, problem: Problem) -> None:
        proof = proof_of([STAGE], 10**15, True)
        with pytest.raises((Unreadable, Invalid), match=r"needs about|a total latency of 0"):
            value_of_proof(plainly(problem), proof, Work())

    def test_far_arrivals_are_evaluated_and_not_searched(self) -> None:
        problem = 7, ((0, 1, 3), (10**12, 1, 3))
        assert proved(problem, proof_of([STAGE])) is not None
        with pytest.raises(Unreadable, match="lower: configurations: needs about"):
            value_of_proof(plainly(problem), proof_of([STAGE], 6, True), Work())

    def test_long_outputs_cannot_be_searched(self) -> None:
        problem = 10**15, ((0, 1, 10**14),)
        with pytest.raises(Unreadable, match="lower: configurations: needs about"):
            value_of_proof(plainly(problem), proof_of([STAGE], 10**14 + 3, True), Work())

    def test_partial_schedules_at_one_time_are_limited(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        problem = 30, tuple((0, s, o) for s in (1, 2, 3) for o in (2, 3, 4))
        proof = proof_of([{**STAGE, "peaks": [], "numerators": [[]] * 3}], 10**3, True)
        monkeypatch.setattr("kvopt.verify.step_budget.BYTES", 10**5)
        with pytest.raises(Unreadable, match="needs more memory: verify --budget"):
            value_of_proof(plainly(problem), proof, Work())

    def test_all_work_is_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        problem = 30, tuple((0, s, o) for s in (1, 2, 3) for o in (2, 3, 4))
        free = {**STAGE, "peaks": [], "numerators": [[]] * 3}
        for proof, least in (
            (proof_of([STAGE]), 500),
            (proof_of([free] * 1000, 10**3), 100_000),
            (proof_of([free], 40, True), 100_000),
        ):
            monkeypatch.setattr("kvopt.verify.step_budget.STEPS", least)
            with pytest.raises(Unreadable, match="budget of"):
                value_of_proof(plainly(problem), proof, Work())

    def test_no_requests_prove_zero_and_no_more(self) -> None:
        empty: Problem = (7, ())
        assert proved(empty, proof_of([STAGE])) == 0
        assert proved(empty, proof_of([STAGE], 0, True)) == 0
        assert proved(empty, proof_of([STAGE], 1, True)) is None


class TestReport:
    """The report says what was looked at."""

    def test_the_report_names_the_stages(self) -> None:
        proof = proof_of([STAGE, STAGE], 13)
        value = proved(SMALL, proof)
        assert value is not None
        assert f"by prices of configurations at 6 times in 2 stages gives {value}" in words(
            SMALL, proof, value
        )

    def test_stages_after_the_target_is_proved_are_not_counted(self) -> None:
        assert "at 3 times gives 0\n" in words(SMALL, proof_of([STAGE, STAGE], 0), 0)

    def test_what_the_package_writes_is_searched(self) -> None:
        rows = tuple(map(tuple, STAGE["numerators"]))
        peaks = tuple((peak, rounds) for peak, rounds in STAGE["peaks"])
        stage = StatePrices(STAGE["denominator"], peaks, tuple(STAGE["times"]), rows)
        proof = to_builtins(ConfigurationProof((stage, stage), best(SMALL), True))
        assert "and a search of" in words(SMALL, json.loads(json.dumps(proof)), best(SMALL))

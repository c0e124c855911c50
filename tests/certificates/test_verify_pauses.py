"""Certificates whose scope is pauses: segments, and bounds that hold for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import certificates
import pytest
from certificates import judged, prices_proof
from strategies import instance_of

from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import instance_to_json
from kvopt.verify.work import Invalid

WORKED = instance_of(10, [(0, 0, 10), (6, 5, 1)])
"""14 without pauses; with one of a round 12."""


def proved(instance: Instance, proof: dict[str, Any]) -> int:
    return certificates.proved(instance, proof, pauses=True)


class TestBounds:
    """What proves a bound when requests may pause."""

    @pytest.mark.parametrize(
        "proof",
        [
            {"kind": "volume", "staircases": [[1]]},
            {"kind": "configurations", "target": None, "searched": False, "stages": []},
        ],
    )
    def test_what_looks_ahead_along_a_run_is_refused(self, proof: dict[str, Any]) -> None:
        with pytest.raises(Invalid, match="do not cover pauses"):
            proved(WORKED, proof)
        split = {"kind": "split", "parts": [{"from": 0, "proof": proof}]}
        with pytest.raises(Invalid, match="do not cover pauses"):
            proved(WORKED, split)


def paused(**members: Any) -> dict[str, Any]:
    """Return a certificate of the worked example."""
    made: dict[str, Any] = {
        "schema": "kvopt.certificate/4",
        "clock": "rounds",
        "scope": "pauses",
        "instance": instance_to_json(WORKED),
        "hash": WORKED.hash,
        "upper": {"value": 12, "segments": [[[1, 6], [8, 11]], [[7, 7]]]},
        "lower": {"value": 12, "proof": prices_proof(7, 7, [1])},
        "policies": [
            {"policy": "run", "outcome": "completed", "value": 14, "starts": [3, 6]},
            {
                "policy": "pauses",
                "outcome": "completed",
                "value": 12,
                "segments": [[[1, 3], [4, 6], [8, 11]], [[7, 7]]],
            },
        ],
    }
    made.update(members)
    return made


class TestCertificates:
    """The file as a whole."""

    @pytest.mark.parametrize(
        ("segments", "reason"),
        [
            ([[[1, 6], [8, 11]]], "has 1 segments for 2 requests"),
            ([[[1, 6], [8, 11]], []], "request 1 makes 0 tokens"),
            ([[[1, 6], [8, 12]], [[7, 7]]], "request 0 makes 11 tokens"),
            ([[[0, 6], [8, 10]], [[7, 7]]], "work of request 0"),
            ([[[1, 6], [6, 9]], [[7, 7]]], "work of request 0"),
            ([[[1, 6], [9, 8], [9, 12]], [[7, 7]]], "work of request 0"),
            ([[[1, 6], [8, 9, 11]], [[7, 7]]], "work of request 0"),
            ([[[1, 6], [8, 11]], [[6, 6]]], "something begins too early"),
            ([[[1, 10]], [[7, 7]]], "13 tokens are held at one time"),
            ([[[1, 6], [9, 12]], [[7, 7]]], "the segments give 13"),
        ],
    )
    def test_segments_that_break_a_rule_are_refused(
        self, tmp_path: Path, segments: list[Any], reason: str
    ) -> None:
        value = 11 if len(segments) == 2 and segments[0] == [[1, 10]] else 12
        verdict = judged(tmp_path / "c.json", paused(upper={"value": value, "segments": segments}))
        assert not verdict.valid
        assert verdict.readable
        assert reason in verdict.lines[-1]

    def test_an_upper_side_with_pauses_needs_their_scope(self, tmp_path: Path) -> None:
        verdict = judged(tmp_path / "c.json", paused(scope="restarts"))
        assert "upper: has pauses, which its scope does not cover" in verdict.lines[-1]

"""Certificates of schedules with pauses and prompts in pieces, on both clocks."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from certificates import judged, verified
from known import known
from strategies import instance_of

from kvopt.certificates import certify, read_certificate
from kvopt.certificates.certificate_files import certificate_text
from kvopt.problem.batch_time import BatchTime, Line
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope
from kvopt.timetable.schedule import Schedule
from kvopt.verify.report import covered_by

pytestmark = pytest.mark.usefixtures("processor_clock", "few_steps")

WORKED = instance_of(10, [(0, 0, 10), (6, 5, 1)])
"""14 without pauses, 12 with one."""
SERVER = "vllm-fcfs:block=1,max_seqs=8,budget=8"
ROOF = Seconds(BatchTime([Line(4_000_000, 20_000), Line(2_000_000, 50_000)], kv_ns=9))


def crowded(source: random.Random, count: int = 12) -> Instance:
    """Return requests that a server cannot all hold, so that it pauses some of them."""
    rows = [
        (source.randint(0, 6), source.randint(0, 12), source.randint(4, 14)) for _ in range(count)
    ]
    return Instance(40, [Request(*row) for row in rows], round_ms=5.0)


class TestRounds:
    """Both sides among schedules with pauses."""

    def test_the_worked_example_is_closed(self) -> None:
        found = certify(WORKED, ["mc-sf"], scope="pauses")
        assert (found.objective, found.lower_bound) == (12, 12)
        assert isinstance(found.upper, Schedule)
        assert found.to_json()["scope"] == "pauses"
        assert "a schedule of total latency 12 is optimal" in verified(found)

    def test_what_a_policy_does_decides_on_the_scope(self) -> None:
        instance = crowded(random.Random(2))
        found = certify(instance, ["svf", SERVER], time_limit=0.2)
        assert found.scope is Scope.PAUSES
        (_, run) = found.runs
        assert run.scope is Scope.PAUSES
        assert None not in found.ratio(run)
        text = verified(found)
        assert f"'{SERVER}' {run.objective}: its segments give it" in text
        assert covered_by("pauses") in text
        assert certify(instance, ["svf"], time_limit=0.1).scope is Scope.RUNS

    def test_each_run_is_judged_by_the_narrowest_scope_that_covers_it(self) -> None:
        """A policy that pauses beside others does not make theirs look worse."""
        server = "vllm-fcfs:block=1,max_seqs=8,budget=64"
        alone, paused = (certify(WORKED, name) for name in ("svf", server))
        both = certify(WORKED, ["svf", server])
        assert (alone.scope, paused.scope) == (Scope.RUNS, Scope.PAUSES)
        assert both.ratio(both.runs[1]) == paused.ratio(paused.runs[0])
        text = verified(both)
        assert covered_by("pauses") in text
        assert both.ratio(both.runs[0]) == alone.ratio(alone.runs[0])
        assert covered_by("runs") in text

    @pytest.mark.parametrize(
        ("clock", "scope", "beyond"),
        [(ROUNDS, "runs", "pauses"), (ROOF, "pauses", "prompts in pieces")],
    )
    def test_a_run_outside_of_the_scope_is_marked(
        self, clock: Clock, scope: str, beyond: str
    ) -> None:
        found = certify(
            crowded(random.Random(2)), ["svf", SERVER], clock=clock, scope=scope, time_limit=0.2
        )
        (svf, run) = found.runs
        assert found.ratio(run) == (None, None)
        assert None not in found.ratio(svf)
        assert "which the bound does not cover" in " ".join(str(found).split())
        assert f"nothing: it has {beyond}" in verified(found)

    def test_without_anything_new_the_file_is_as_before(self) -> None:
        found = certify(WORKED, ["mc-sf"], time_limit=1)
        text = certificate_text(found)
        assert '"scope": "runs"' in text
        assert "narrower" not in text

    @pytest.mark.parametrize(("scope", "best"), [("chunks", 14), ("pauses+chunks", 12)])
    def test_pieces_of_prompts_change_nothing(self, scope: str, best: int) -> None:
        found = certify(WORKED, scope=scope)
        assert (found.objective, found.lower_bound) == (best, best)
        assert covered_by(scope) in verified(found)


class TestSeconds:
    """Runs with pauses and pieces on a clock whose rounds differ."""

    def test_what_does_more_than_the_scope_is_no_upper_side(self) -> None:
        clock = Seconds(BatchTime([Line(100, 0), Line(0, 10)]))
        instance = Instance(200, [Request(0, 0, 20), Request(0, 90, 1)])
        server = "vllm-fcfs:block=1,max_seqs=2,budget=10"
        chunked = certify(instance, [server], clock=clock)
        assert chunked.objective is not None
        assert (
            chunked.objective == chunked.runs[0].objective
        )  # no run with whole prompts is as good
        for scope in ("runs", "restarts", "pauses"):
            found = certify(instance, [server], clock=clock, scope=scope)
            assert known(found.objective) > chunked.objective
            verified(found)

    @pytest.mark.parametrize(
        ("claim", "wanted"),
        [
            ({"starts": [3], "waits": [[0, 50]]}, 53),
            ({"starts": [0], "waits": [[1, 50], [2, 60]]}, 61),
            ({"segments": [[[1, 1], [3, 4]]], "waits": [[1, 50], [3, 60]]}, 61),
        ],
    )
    def test_a_wait_where_nothing_begins_counts(
        self, claim: dict[str, object], wanted: int, tmp_path: Path
    ) -> None:
        instance = Instance(9, [Request(0, 1, 3)], round_ms=5.0)
        clock = Seconds(BatchTime([Line(1, 0)]))
        content = json.loads(certificate_text(certify(instance, clock=clock, scope="pauses")))
        content["upper"] = {"value": wanted, **claim}
        assert judged(tmp_path / "c", content).valid
        assert read_certificate(tmp_path / "c").objective == wanted

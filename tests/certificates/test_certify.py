"""Certificates as they are made, and as the command line writes and checks them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from certificates import verified
from commands import Run
from known import known
from strategies import instance_of

import kvopt
from kvopt import (
    BatchTime,
    FalseClaim,
    Instance,
    Line,
    Outcome,
    PrefixPolicy,
    Progress,
    Request,
    Schedule,
    View,
    certify,
    generate,
    solve,
)
from kvopt.certificates.certificate_files import (
    certificate_text,
    read_certificate,
    write_certificate,
)
from kvopt.errors import InvalidInput, TooLarge
from kvopt.incumbent.proofs import CheckedBound, ConfigurationProof, StatePrices
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.instance_files import instance_from_json
from kvopt.search import plan
from kvopt.simulate.policies import policy
from kvopt.timetable.work_intervals import Lost
from kvopt.verify import verify

pytestmark = pytest.mark.usefixtures("processor_clock")

UNEVEN = instance_of(9, [(0, 1, o) for o in (3, 4, 5, 7)])
"""mc-sf reaches 28, the optimum is 27."""

CROWDED = instance_of(12, [(0, 2, o) for o in (6, 7, 8, 9)])
"""alpha-beta overflows here, evicts and completes."""


CLOCKS: tuple[Clock, ...] = (ROUNDS, Seconds(BatchTime([Line(1_000, 0)])))
A100 = Seconds(BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80))


@pytest.fixture
def uneven(tmp_path: Path) -> Path:
    path = tmp_path / "uneven.json"
    kvopt.write_instance(UNEVEN, path)
    return path


def content_of(certificate: kvopt.Certificate) -> dict[str, Any]:
    content = json.loads(certificate_text(certificate))
    assert isinstance(content, dict)
    return content


class TestBuilding:
    """``certify`` in Python."""

    def test_a_run_with_evictions_keeps_its_events(self) -> None:
        found = certify(CROWDED, ["alpha-beta:alpha=0,beta=0.5,seed=1"], time_limit=5)
        (judged,) = found.runs
        assert judged.lost
        verified(found)
        entry = content_of(found)["policies"][0]
        assert entry["lost"] == [[lost.request, lost.start, lost.end] for lost in judged.lost]
        assert entry["value"] == judged.objective

    @pytest.mark.parametrize("clock", CLOCKS, ids=str)
    def test_a_livelock_claims_nothing(self, clock: Clock, tmp_path: Path) -> None:
        found = certify(CROWDED, ["alpha-protect:alpha=0.1", "fcfs"], clock=clock, time_limit=5)
        entry, completed = content_of(found)["policies"]
        assert entry == {"policy": "alpha-protect:alpha=0.1", "outcome": "livelock", "value": None}
        assert completed["value"] >= known(found.objective) > 0
        (run, _), (row, _) = found.runs, found.to_json()["policies"]
        assert (found.ratio(run), row["ratio"]) == ((None, None), [None, None])
        assert (found.measures(run), row["latency"], row["evictions"]) == (
            None,
            None,
            run.evictions,
        )
        assert run.lost
        assert "livelock, nothing is claimed" in verified(found)
        write_certificate(found, tmp_path / "c.json")
        judged, _ = read_certificate(tmp_path / "c.json").runs
        assert (judged.outcome, judged.objective, judged.evictions) == ("livelock", None, None)

    def test_runs_that_were_made_before_are_judged_as_they_are(self) -> None:
        made = [kvopt.run(UNEVEN, name) for name in ("mc-sf", "alpha-protect:alpha=0.5")]
        found = certify(UNEVEN, [*made, "fcfs"], time_limit=60)
        assert [run.policy for run in found.runs] == [run.policy for run in made] + ["fcfs"]
        assert (found.objective, found.runs[0].objective) == (27, 28)
        assert found.runs[0].starts == made[0].starts

    def test_a_run_that_does_not_fit_is_refused(self) -> None:
        made = kvopt.run(UNEVEN, "mc-sf")
        for wrong, reason in (
            (replace(made, instance=CROWDED), "another instance"),
            (replace(made, starts=(0, 0, 0, 0)), "memory is 9"),
            (replace(made, clock=Seconds(BatchTime([Line(1, 0)]))), "another clock"),
        ):
            with pytest.raises(InvalidInput, match=reason):
                certify(UNEVEN, [wrong], time_limit=60)

    def test_policies_may_be_objects(self) -> None:
        found = certify(UNEVEN, [policy("mc-sf")], time_limit=60)
        assert (found.runs[0].policy, found.runs[0].objective) == ("mc-sf", 28)
        assert certify(UNEVEN, "mc-sf", time_limit=60).runs == found.runs

    def test_a_given_schedule_is_judged_and_improved_on(self) -> None:
        late = Schedule(UNEVEN, (30, 20, 10, 0))
        found = certify(UNEVEN, schedule=late, time_limit=60)
        assert (found.runs[0].policy, found.runs[0].objective) == ("schedule", late.objective)
        assert found.objective == 27

    def test_a_schedule_in_rounds_has_no_value_in_seconds(self) -> None:
        schedule = Schedule(UNEVEN, (30, 20, 10, 0))
        with pytest.raises(InvalidInput, match="in rounds"):
            certify(UNEVEN, schedule=schedule, clock=Seconds(BatchTime([Line(1, 0)])))

    @pytest.mark.parametrize(
        ("instance", "options", "found_by"),
        [
            (UNEVEN, {}, None),
            (generate("arrival-1", 12, seed=7), {"scope": "pauses"}, None),
            (generate("conversation", 400, 3000, seed=4), {"clock": A100}, "one after another"),
        ],
    )
    def test_a_limit_of_nothing_keeps_both_sides(
        self, instance: Instance, options: dict[str, Any], found_by: str | None
    ) -> None:
        found = certify(instance, ["mc-sf"], time_limit=0, **options)
        assert [(run.policy, run.outcome) for run in found.runs] == [("mc-sf", "unfinished")]
        assert found.clock.is_even or found.to_json()["unfinished"] == ["mc-sf"]
        assert 0 <= known(found.gap) < 1
        assert found_by in (None, found.provenance["found_by"])
        assert "'mc-sf': unfinished, nothing is claimed" in verified(found)

    def test_what_is_reserved_is_left_of_the_limit(self) -> None:
        instance = generate("conversation", 300, seed=1)
        found = certify(instance, ["mc-sf"], time_limit=600, reserve=599.5)
        assert found.provenance["time_limit"] == 600
        assert found.provenance["seconds"] < 10  # without a reserve it would go on for minutes
        assert found.objective is not None
        assert found.lower_bound is not None

    def test_provenance_names_versions_and_options(self) -> None:
        made = certify(Instance(1, []), seed=5, time_limit=3, command="kvopt certify x").provenance
        assert made["versions"]["kvopt"] == kvopt.__version__
        assert (made["seed"], made["time_limit"], made["command"]) == (5, 3, "kvopt certify x")
        assert made["seconds"] >= 0
        assert made["created"].endswith("+00:00")

    def test_observers_see_both_sides(self) -> None:
        seen: list[kvopt.Progress] = []
        certify(UNEVEN, time_limit=60, observer=seen.append)
        assert seen[-1].objective == 27
        assert seen[-1].lower_bound is not None


class TestWriting:
    """The file."""

    def test_every_label_survives(self) -> None:
        request = kvopt.Request(1, 2, 3, "ü\u2028", kvopt.Prediction(1, 9), 0.25)
        instance = Instance(9, [request], "näme", {"a": [1, {"b": None}]}, 2.5)
        found = certify(instance, time_limit=3)
        verified(found)
        assert instance_from_json(content_of(found)["instance"]) == instance

    def test_ids_that_say_nothing_are_left_out(self) -> None:
        requests = [kvopt.Request(0, 1, 2), kvopt.Request(0, 1, 2, "r7"), kvopt.Request(0, 1, 2)]
        content = content_of(certify(Instance(9, requests), time_limit=0))["instance"]
        assert [row.get("id") for row in content["requests"]] == [None, "r7", None]
        assert instance_from_json(content) == Instance(9, requests)

    def test_what_verify_would_refuse_is_not_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kvopt.certificates.certificate_files.LARGEST_FILE", 100)
        with pytest.raises(TooLarge):
            write_certificate(certify(UNEVEN, time_limit=0), tmp_path / "c")
        assert list(tmp_path.iterdir()) == []

    def test_a_false_claim_of_the_producers_is_caught(self, tmp_path: Path) -> None:
        found = certify(CROWDED, ["fcfs"], time_limit=2)
        (fcfs,) = found.runs
        lost = replace(fcfs, lost=(Lost(0, 0, 2),))
        write_certificate(replace(found, runs=(lost,)), tmp_path / "c")
        assert verify(tmp_path / "c").exit_status == 1


class TestCommands:
    """``kvopt certify`` and ``kvopt verify``."""

    def test_what_certify_writes_is_verified(self, run: Run, uneven: Path, tmp_path: Path) -> None:
        target = tmp_path / "c.json"
        out, err = run.done("certify", uneven, "-P", "mc-sf", "-t", 10, "-o", target)
        assert "total latency 27" in out
        assert "1.0370 " in out  # 28 / 27 = 1.03703..., rounded outward
        assert "wrote" in err
        out = run.done("verify", target)[0]
        assert "'mc-sf' is at most" in out
        assert "no schedule of these 4 requests has total latency below" in out
        content = json.loads(target.read_text())
        assert content["schema"] == "kvopt.certificate/4"
        assert content["provenance"]["command"].startswith("kvopt certify ")

    def test_json_has_both_sides_and_the_verdict(
        self, run: Run, uneven: Path, tmp_path: Path
    ) -> None:
        target = tmp_path / "c.json"
        found = run.json("certify", uneven, "-P", "fcfs", "-t", 10, "-o", target)
        assert found["upper"] == 27
        assert found["lower"] <= 27
        (entry,) = found["policies"]
        assert entry["ratio"] == [entry["value"] / 27, entry["value"] / found["lower"]]
        report = run.json("verify", target)
        assert report["valid"]
        assert report["report"][-1] == "VALID"

    def test_a_schedule_of_a_file_is_judged_or_refused(
        self, run: Run, uneven: Path, tmp_path: Path
    ) -> None:
        schedule, target = tmp_path / "s.json", tmp_path / "c.json"
        schedule.write_text('{"schema": "kvopt.schedule/1", "starts": [0, 3, 7, 12]}')
        args = ("certify", uneven, "--schedule", schedule, "-t", 5, "-o", target)
        assert run(*args)[0] == 0
        assert json.loads(target.read_text())["policies"][0]["policy"] == "schedule"
        schedule.write_text('{"schema": "kvopt.schedule/1", "starts": [0, 0, 0, 0]}')
        target.unlink()
        assert "memory is 9" in run.refused(*args)
        assert not target.exists()

    def test_verify_says_no_with_its_exit_status(
        self, run: Run, uneven: Path, tmp_path: Path
    ) -> None:
        target = tmp_path / "c.json"
        run("certify", uneven, "-t", 5, "-o", target)
        text = target.read_text()
        target.write_text(text.replace('"upper": {"value": 27', '"upper": {"value": 26'))
        code, out, _ = run("verify", target)
        assert code == 1
        assert "INVALID: upper: says 26, the starts give 27" in out
        target.write_text(text[:-3])
        assert run("verify", target)[0] == 2
        assert run("verify", tmp_path / "missing")[0] == 2

    @pytest.mark.slow
    def test_a_limit_is_kept(self, run: Run, large: Path, tmp_path: Path) -> None:
        began = time.process_time()  # of one thread: less than a clock says, however busy it is
        target = tmp_path / "c.json"
        command = ("certify", large, "-P", "mc-sf", "-t", 1, "--threads", 1, "-o", target)
        assert run(*command)[0] == 0
        took = time.process_time() - began
        assert took < 1 + 3
        assert run("verify", target)[0] == 0

    @pytest.mark.slow
    def test_signals_write_what_is_there(self, large: Path, tmp_path: Path) -> None:
        target = tmp_path / "c.json"
        command = [sys.executable, "-m", "kvopt", "certify", str(large), "-o", str(target)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
            known(child.stderr).readline()  # progress: the work has begun
            os.kill(child.pid, signal.SIGTERM)
            out, _ = child.communicate()
        assert child.returncode == 128 + signal.SIGTERM
        assert "total latency" in out
        assert verify(target).valid

    def test_no_schedule_is_exit_3(
        self, run: Run, uneven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plan.Driver, "begin", lambda _: None)
        target = tmp_path / "c.json"
        assert run("certify", uneven, "-t", 0, "-o", target)[0] == 3
        assert verify(target).valid


def test_a_certificate_of_requests_with_priorities_is_valid(tmp_path: Path) -> None:
    instance = Instance(9, [Request(0, 3, 1, priority=2), Request(0, 2, 5)])
    path = tmp_path / "c.json"
    write_certificate(certify(instance, time_limit=5), path)
    assert verify(path).valid
    text = path.read_text()
    for old, new in (('"priority":2', '"priority":3'), ("kvopt.instance/2", "kvopt.instance/1")):
        assert old in text
        path.write_text(text.replace(old, new))
        assert not verify(path).valid


@pytest.mark.parametrize(("lower", "is_said"), [(21, True), (22, False), (27, False)])
def test_a_gap_that_decides_little_is_said_with_its_reason(lower: int, is_said: bool) -> None:
    found = certify(Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), time_limit=60)
    assert (found.objective, found.undecided) == (27, None)
    wide = replace(found, lower=replace(known(found.lower), value=lower))
    said = wide.facts()["undecided"]
    assert said == wide.undecided
    assert (said is not None) == is_said
    assert not is_said or str(said).startswith(
        "the bound and the best schedule are 22% apart: this does not decide whether"
    )
    assert replace(found, lower=None).undecided is None


def test_certificate_leaves_out_a_bound_that_only_a_solver_claims() -> None:
    result = solve(UNEVEN, "highs", quick_start=False)
    assert (result.objective, result.lower_bound, result.bound_source) == (27, 27, "solver")
    found = result.certificate()
    assert found.lower_bound is None
    assert any("claims" in note for note in found.notes)
    assert found.provenance["stop_reason"] == "no-engine"
    verified(found)


def test_certificate_without_a_schedule_names_its_instance() -> None:
    result = solve(UNEVEN, time_limit=0, quick_start=False)
    found = result.certificate()
    assert (found.instance, found.objective) == (result.instance, result.objective)
    verified(found)


def test_how_large_a_search_is_comes_back(tmp_path: Path) -> None:
    """So a check is granted as much as before."""
    found = certify(UNEVEN, time_limit=60)
    assert found.lower is not None
    stage = StatePrices(1, ((3, 1),), (1,), ((0,),))
    proof = ConfigurationProof((stage,), 1, searched=True, kept=(10**6,) * 99)
    bound = CheckedBound(1, "a search", proof)
    write_certificate(replace(found, lower=bound), tmp_path / "c.json")
    write_certificate(read_certificate(tmp_path / "c.json"), tmp_path / "d.json")
    assert '"budget": 20' in (tmp_path / "c.json").read_text()
    assert (tmp_path / "c.json").read_text() == (tmp_path / "d.json").read_text()


def refusal(tmp_path: Path, text: str) -> InvalidInput:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        read_certificate(file)
    assert caught.value.file == str(file)
    assert str(caught.value).count(str(file)) == 1
    return caught.value


def test_false_claims_are_refused(tmp_path: Path) -> None:
    content = content_of(certify(UNEVEN, ["fcfs"], time_limit=60))
    content["policies"][0]["value"] += 1
    error = refusal(tmp_path, json.dumps(content))
    assert isinstance(error, FalseClaim)
    assert "fcfs" in str(error)


def test_other_files_are_refused_by_file_and_field(tmp_path: Path) -> None:
    content = content_of(certify(UNEVEN, ["fcfs"], time_limit=60))
    assert "is not JSON" in str(refusal(tmp_path, "{"))
    assert "must have the schema" in str(refusal(tmp_path, "{}"))
    other = json.dumps({"schema": "kvopt.instance/1"})
    assert "not 'kvopt.instance/1'" in str(refusal(tmp_path, other))
    content["upper"] = {"value": "3", "starts": []}
    error = refusal(tmp_path, json.dumps(content))
    assert "certificate, upper, value: must be int" in str(error)
    assert not isinstance(error, FalseClaim)
    with pytest.raises(InvalidInput, match=r"none\.json: cannot be read: No such file"):
        read_certificate(tmp_path / "none.json")


@dataclass
class Reporting(PrefixPolicy):
    """Serve the shortest first, and report completions."""

    name = "reporting"

    def key(self, view: View, i: int) -> tuple[int, ...]:
        return (view.beliefs.output[i],)

    def begin(self, view: View) -> None:
        super().begin(view)
        self.completed = 0

    def finished(self, view: View, i: int, start: int) -> None:
        super().finished(view, i, start)
        self.completed += 1


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "is_first"), [(9.0, True), (1000.0, False)])
def test_under_a_short_limit_policies_come_before_bounds(limit: float, is_first: bool) -> None:
    """A busy machine needs the time for the bounds alone."""
    instance = generate("conversation", n=30, memory=1500, seed=1)
    reporting, completed = Reporting(), list[int]()

    def observe(now: Progress) -> None:
        if now.engine not in ("volume", "staircases", "list schedules"):  # they take moments
            completed.append(reporting.completed)

    def stop(_: Progress) -> bool:
        return bool(completed) and reporting.completed == 30

    found = certify(instance, [reporting], time_limit=limit, observer=observe, stop=stop)
    assert found.runs[0].outcome is Outcome.COMPLETED
    assert (completed[0] == 30) == is_first

"""``--scope`` in the commands, and ``certify --run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, read_certificate, write_instance
from kvopt.problem.scopes import Scope

pytestmark = pytest.mark.usefixtures("processor_clock")

RECORD = Path(__file__).parents[2] / "samples" / "vllm.jsonl"
IN_PIECES = Path(__file__).parents[1] / "problem" / "records" / "priority.jsonl"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Return the file of two requests: 14 without pauses, 12 with one."""
    path = tmp_path / "pair.json"
    write_instance(Instance(10, [Request(0, 0, 10), Request(6, 5, 1)], round_ms=5), path)
    return path


def test_a_schedule_with_a_pause_goes_through_every_command(run: Run, pair: Path) -> None:
    schedule, cert = pair.with_name("s.json"), pair.with_name("c.json")
    said = run.json("solve", pair, "--scope", "pauses", "-o", schedule)
    assert (said["objective"], said["lower_bound"], said["scope"]) == (12, 12, "pauses")
    assert (said["starts"], said["segments"]) == (None, [[[1, 6], [8, 11]], [[7, 7]]])
    assert json.loads(schedule.read_text())["schema"] == "kvopt.schedule/2"
    code, out, _ = run("check", pair, schedule)
    assert (code, out.endswith(", 1 pause with tokens kept\n")) == (0, True)
    assert out.startswith("feasible: total latency 12, peak memory 10 of 10")
    assert run("plot", pair, "--schedule", schedule, "-o", pair.with_name("s.svg"))[0] == 0
    assert "1 pause" in pair.with_name("s.svg").read_text()
    begin = ("solve", pair, "--start", schedule, "-t", "0", "--json")
    code, out, _ = run(*begin, "--scope", "pauses")
    assert (code, json.loads(out)["objective"]) == (0, 12)
    assert "has pauses, which the scope runs" in run.refused(*begin, "--scope", "runs")
    (judged,) = run.json("certify", pair, "--schedule", schedule, "-t", "0.5", "-o", cert)[
        "policies"
    ]
    assert (judged["value"], judged["scope"]) == (12, "pauses")
    assert run("verify", cert)[0] == 0


def test_sharing_of_nothing_is_the_scope_without_it(run: Run, pair: Path) -> None:
    for scope in Scope:
        code, out, _ = run("solve", pair, "--scope", str(scope), "-t", 0, "--json")
        assert (code, json.loads(out)["scope"]) == (0, scope.without_sharing)


def test_a_recorded_run_is_judged(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    assert run("import-run", RECORD, "-o", made)[0] == 0
    said = run.json("certify", "--run", made, "-t", "0.5", "-o", cert)
    (judged,) = said["policies"]
    assert (said["scope"], judged["value"]) == ("pauses", 970)
    assert said["lower"] <= said["upper"] <= 970
    assert run("verify", cert)[0] == 0


def test_a_recorded_run_is_judged_in_seconds(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    assert run("import-run", IN_PIECES, "-o", made)[0] == 0
    more = ("--seconds", "--batch-time", "llama-2-70b-2xa100", "-P", "vllm-fcfs")
    said = run.json("certify", "--run", made, *more, "-t", "0.5", "-o", cert)
    recorded, beside = said["policies"]
    assert (said["scope"], recorded["scope"]) == ("pauses+chunks", "pauses+chunks")
    assert said["lower_ns"] <= said["upper_ns"] <= min(recorded["value_ns"], beside["value_ns"])
    code, out, _ = run("verify", cert)
    assert (code, f"'vllm 0.33.0, priority' {recorded['value_ns']:,}: its segments" in out) == (
        0,
        True,
    )


def test_the_table_has_the_scope_of_each_row(run: Run, tmp_path: Path) -> None:
    """A run without pauses is compared with an optimum without pauses, which is worse."""
    file = tmp_path / "four.json"
    kinds = (2, 7), (2, 2), (4, 9), (0, 5)
    write_instance(Instance(16, [Request(0, s, o) for s, o in kinds]), file)
    named = ("-P", "svf", "-P", "vllm-fcfs:block=1", "-t", "2", "-o", tmp_path / "c.json")
    _, out, err = run("certify", file, *named)
    assert "scope runs: total latency 28, at least 28; compared with these: svf\n" in out
    assert all(f"scope {scope}: covered" in err for scope in ("runs", "pauses"))
    heads, svf, server = out.splitlines()[-3:]
    assert "scope" in heads.split()
    assert "runs" in svf.split()
    assert "pauses" in server.split()
    rows = run.json("certify", file, *named)["policies"]
    assert [row["bound_scope"] for row in rows] == ["runs", "pauses"]
    _, out, _ = run("certify", file, *named, "--scope", "runs", "--json")
    assert [row["bound_scope"] for row in json.loads(out)["policies"]] == ["runs", None]
    _, out, _ = run("certify", file, *named[:2], *named[4:])
    assert "scope" not in out


@pytest.mark.parametrize(
    ("policy", "is_reached"),
    [("vllm-fcfs:block=1,max_seqs=1", True), ("sglang:max_running=1", True),
     ("vllm-fcfs:block=1,max_seqs=9", False), ("svf", False)],
)  # fmt: skip
def test_what_a_limit_of_requests_costs_is_part_of_the_ratio(
    run: Run, pair: Path, policy: str, is_reached: bool
) -> None:
    cert = pair.with_name("c.json")
    sentence = (
        f"{policy}: reached its limit of 1 active request on a machine, which bounds ignore: its "
        "ratio has the price of that limit in it"
    )
    _, _, err = run("certify", pair, "-P", policy, "-t", "1", "-o", cert)
    assert (f"kvopt: {sentence}\n" in err) == is_reached
    assert (sentence in read_certificate(cert).notes) == is_reached


def test_the_limit_of_a_recorded_server_is_named(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    run("import-run", IN_PIECES, "-o", made)
    _, _, err = run("certify", "--run", made, "-t", "0.5", "-o", cert)
    assert "vllm 0.33.0, priority: reached its limit of 12 active requests" in err


@pytest.mark.parametrize("policies", [(), ("-P", "vllm-priority:by=volume")])
def test_a_recorded_run_is_drawn(run: Run, tmp_path: Path, policies: tuple[str, ...]) -> None:
    made, picture = tmp_path / "run.json", tmp_path / "run.svg"
    assert run("import-run", RECORD, "-o", made)[0] == 0
    code, _, err = run("plot", made, *policies, "-o", picture)
    assert (code, err) == (0, f"wrote {picture}\n")
    text = " ".join(picture.read_text().split())
    assert "vllm 0.33.0, fcfs" in text
    assert "8 pauses" in text or "p99 102, 8" in text
    assert ("vllm-priority" in text) == bool(policies)


def test_a_recorded_run_is_drawn_in_seconds(run: Run, tmp_path: Path) -> None:
    made, picture = tmp_path / "run.json", tmp_path / "run.svg"
    assert run("import-run", IN_PIECES, "-o", made)[0] == 0
    assert run("plot", made, "-P", "vllm-fcfs", "--seconds", "-o", picture)[0] == 0
    text = " ".join(picture.read_text().split())
    assert "vllm 0.33.0, priority" in text
    assert "seconds" in text


@pytest.mark.parametrize(("scope", "said"), [("pauses", True), ("runs", False)])
def test_solve_names_its_scope_where_it_is_wider_than_runs(
    run: Run, pair: Path, scope: str, said: bool
) -> None:
    out, err = run.done("solve", pair, "--scope", scope, "-t", 1)
    assert ("12" if said else "14") in out
    assert ("covered: every schedule" in err) is said

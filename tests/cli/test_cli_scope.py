"""``--scope`` in the commands, and ``certify --run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, write_instance
from kvopt.problem.scopes import Scope

RECORD = Path(__file__).parents[2] / "samples" / "vllm.jsonl"
IN_PIECES = Path(__file__).parents[1] / "problem" / "records" / "priority.jsonl"


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Return the file of two requests: 14 without pauses, 12 with one."""
    path = tmp_path / "pair.json"
    write_instance(Instance(10, [Request(0, 0, 10), Request(6, 5, 1)], round_ms=5), path)
    return path


def test_solve_finds_and_writes_a_schedule_with_a_pause(run: Run, pair: Path) -> None:
    out_file = pair.with_name("s.json")
    code, out, _ = run("solve", pair, "--scope", "pauses", "--json", "-o", out_file)
    said = json.loads(out)
    assert (code, said["objective"], said["lower_bound"], said["scope"]) == (0, 12, 12, "pauses")
    assert said["starts"] is None
    assert said["segments"] == [[[1, 6], [8, 11]], [[7, 7]]]
    assert json.loads(out_file.read_text())["schema"] == "kvopt.schedule/2"
    code, out, _ = run("solve", pair, "--scope", "pauses", "--start", out_file, "-t", "0", "--json")
    assert (code, json.loads(out)["objective"]) == (0, 12)
    cert = pair.with_name("c.json")
    code, out, _ = run("certify", pair, "--schedule", out_file, "-t", "2", "-o", cert, "--json")
    (judged,) = json.loads(out)["policies"]
    assert (code, judged["value"], judged["scope"], json.loads(out)["upper"]) == (
        0,
        12,
        "pauses",
        12,
    )
    assert run("verify", cert)[0] == 0


@pytest.mark.parametrize("scope", list(Scope))
def test_every_command_takes_every_scope(run: Run, pair: Path, scope: Scope) -> None:
    best = 12 if scope.covers(Scope.PAUSES) else 14
    cert = pair.with_name("c.json")
    code, out, _ = run("solve", pair, "--scope", str(scope), "--json")
    assert (code, json.loads(out)["objective"], json.loads(out)["scope"]) == (0, best, scope)
    code, out, err = run("bound", pair, "--scope", str(scope), "--json")
    assert (code, json.loads(out)["value"] <= best, json.loads(out)["scope"]) == (0, True, scope)
    for seconds in ([], ["--seconds", "--policy", "svf"]):
        code, out, err = run(
            "certify", pair, "--scope", str(scope), *seconds, "-t", "1", "-o", cert
        )
        assert code == 0
        assert scope.sentence in " ".join(err.split())
        assert scope.sentence in run("verify", cert)[1]


def test_a_recorded_run_is_judged(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    assert run("import-run", RECORD, "-o", made)[0] == 0
    code, out, _ = run("certify", "--run", made, "-t", "2", "-o", cert, "--json")
    said = json.loads(out)
    (judged,) = said["policies"]
    assert (code, said["scope"], judged["value"]) == (0, "pauses", 970)
    assert said["lower"] <= said["upper"] <= 970
    assert run("verify", cert)[0] == 0


def test_a_recorded_run_is_judged_in_seconds(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    assert run("import-run", IN_PIECES, "-o", made)[0] == 0
    more = ("--seconds", "--batch-time", "llama-2-70b-2xa100", "-P", "vllm-fcfs")
    code, out, _ = run("certify", "--run", made, *more, "-t", "2", "-o", cert, "--json")
    said = json.loads(out)
    recorded, beside = said["policies"]
    assert (code, said["scope"], recorded["scope"]) == (0, "pauses+chunks", "pauses+chunks")
    assert said["lower_ns"] <= said["upper_ns"] <= min(recorded["value_ns"], beside["value_ns"])
    code, out, _ = run("verify", cert)
    assert (code, f"'vllm 0.33.0, priority' {recorded['value_ns']:,}: its segments" in out) == (
        0,
        True,
    )


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

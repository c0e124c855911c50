"""``--scope`` in the commands, and ``certify --run``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run
from strategies import instance_of

from kvopt import Instance, Request, read_certificate, write_instance
from kvopt.problem.scopes import Scope
from kvopt.timetable.schedule import Schedule
from kvopt.timetable.schedule_files import write_schedule

pytestmark = pytest.mark.usefixtures("processor_clock")

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
    code, out, _ = run("certify", pair, "--schedule", out_file, "-t", "0.5", "-o", cert, "--json")
    (judged,) = json.loads(out)["policies"]
    assert (code, judged["value"], judged["scope"], json.loads(out)["upper"]) == (
        0,
        12,
        "pauses",
        12,
    )
    assert run("verify", cert)[0] == 0


def test_sharing_of_nothing_is_the_scope_without_it(run: Run, pair: Path) -> None:
    for scope in Scope:
        code, out, _ = run("solve", pair, "--scope", str(scope), "-t", 0, "--json")
        assert (code, json.loads(out)["scope"]) == (0, scope.without_sharing)


@pytest.mark.parametrize("scope", sorted({scope.without_sharing for scope in Scope}))
def test_every_command_takes_every_scope(run: Run, pair: Path, scope: Scope) -> None:
    best = 12 if scope.covers(Scope.PAUSES) else 14
    cert = pair.with_name("c.json")
    code, out, _ = run("solve", pair, "--scope", str(scope), "-t", "0.5", "--json")
    assert (code, json.loads(out)["objective"], json.loads(out)["scope"]) == (0, best, scope)
    code, out, err = run("bound", pair, "--scope", str(scope), "-t", "0.3", "--json")
    assert (code, json.loads(out)["value"] <= best, json.loads(out)["scope"]) == (0, True, scope)
    for seconds in ([], ["--seconds", "--policy", "svf"]):
        code, out, err = run(
            "certify", pair, "--scope", str(scope), *seconds, "-t", "0.3", "-o", cert
        )
        assert code == 0
        assert scope.sentence in " ".join(err.split())
        assert scope.sentence in run("verify", cert)[1]


def test_a_recorded_run_is_judged(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    assert run("import-run", RECORD, "-o", made)[0] == 0
    code, out, _ = run("certify", "--run", made, "-t", "0.5", "-o", cert, "--json")
    said = json.loads(out)
    (judged,) = said["policies"]
    assert (code, said["scope"], judged["value"]) == (0, "pauses", 970)
    assert said["lower"] <= said["upper"] <= 970
    assert run("verify", cert)[0] == 0


def test_a_recorded_run_is_judged_in_seconds(run: Run, tmp_path: Path) -> None:
    made, cert = tmp_path / "run.json", tmp_path / "c.json"
    assert run("import-run", IN_PIECES, "-o", made)[0] == 0
    more = ("--seconds", "--batch-time", "llama-2-70b-2xa100", "-P", "vllm-fcfs")
    code, out, _ = run("certify", "--run", made, *more, "-t", "0.5", "-o", cert, "--json")
    said = json.loads(out)
    recorded, beside = said["policies"]
    assert (code, said["scope"], recorded["scope"]) == (0, "pauses+chunks", "pauses+chunks")
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
    _, out, _ = run("certify", file, *named)
    heads, svf, server = out.splitlines()[-3:]
    assert "scope" in heads.split()
    assert "runs" in svf.split()
    assert "pauses" in server.split()
    _, out, _ = run("certify", file, *named, "--json")
    rows = json.loads(out)["policies"]
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


# ---- schedules that pause, at each command that reads a schedule


INSTANCE = instance_of(10, [(0, 0, 10), (6, 5, 1)])
PAUSED = Schedule(INSTANCE, segments=[[(1, 6), (8, 11)], [(7, 7)]])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    write_instance(INSTANCE, tmp_path / "two.json")
    write_schedule(PAUSED, tmp_path / "paused.json")
    return tmp_path / "two.json", tmp_path / "paused.json"


def test_check_judges_it(run: Run, files: tuple[Path, Path]) -> None:
    code, out, _ = run("check", *files)
    assert code == 0
    assert out.startswith("feasible: total latency 12, peak memory 10 of 10")
    assert out.endswith(", 1 pause with tokens kept\n")


def test_plot_draws_it(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    picture = tmp_path / "paused.svg"
    assert run("plot", files[0], "--schedule", files[1], "-o", picture)[0] == 0
    assert "1 pause" in picture.read_text()


@pytest.mark.parametrize(
    ("scope", "code", "words"), [("pauses", 0, ""), ("runs", 2, "has pauses, which the scope runs")]
)
def test_solve_begins_from_it(
    run: Run, files: tuple[Path, Path], scope: str, code: int, words: str
) -> None:
    rest = ("--start", files[1], "--scope", scope, "-t", 1)
    found, _, err = run("solve", files[0], *rest)
    assert found == code
    assert words in err


@pytest.mark.parametrize(("scope", "said"), [("pauses", True), ("runs", False)])
def test_solve_says_what_is_covered_where_it_is_more_than_runs(
    run: Run, files: tuple[Path, Path], scope: str, said: bool
) -> None:
    code, out, err = run("solve", files[0], "--scope", scope, "-t", 1)
    assert code == 0
    assert ("12" if said else "14") in out
    assert ("covered: every schedule" in err) is said


def test_certify_says_which_optimum_each_policy_is_compared_with(run: Run, tmp_path: Path) -> None:
    instance, path = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)]), tmp_path / "i.json"
    write_instance(instance, path)
    server = "vllm-fcfs:block=1,max_seqs=8,budget=64"
    command = ("certify", path, "--policy", "svf", "--policy", server, "-o", tmp_path / "c")
    code, out, err = run(*command)
    assert code == 0
    assert "total latency 12, proved to be at least 12" in out
    assert "scope runs: total latency 14, at least 14; compared with these: svf, " + server in out
    assert "scope runs: covered" in out + err
    assert "scope pauses: covered" in out + err

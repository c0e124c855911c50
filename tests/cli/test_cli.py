"""The command line as its users call it: real files, exit codes, errors on one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import Run, written
from interpreters import python

from kvopt import Instance, Request, write_instance


def one_object(text: str) -> dict[str, Any]:
    """Return the only thing on standard output."""
    value = json.loads(text)
    assert isinstance(value, dict)
    return value


class TestSolve:
    """``kvopt solve``."""

    def test_json_keeps_the_contract(self, run: Run, ec1: Path) -> None:
        found = run.json("solve", ec1)
        assert found["status"] == "optimal"
        assert found["objective"] == found["lower_bound"] == 12
        assert sorted(found["starts"]) == [0, 0, 0, 2]
        assert found["engine"] == "auto"
        assert found["stop_reason"] == "proved"
        assert found["bound_source"] in ("checked", "solver")
        assert found["seconds"] >= 0

    def test_a_table_has_name_status_and_gap(self, run: Run, ec1: Path) -> None:
        out = run.done("solve", ec1)[0]
        assert "example EC.1" in out
        assert "optimal" in out
        assert "0%" in out

    def test_many_files_end_in_one_table(self, run: Run, ec1: Path, tmp_path: Path) -> None:
        other = written(tmp_path / "other.csv", "arrival,prompt,output\n0,1,3\n")
        out = run.done("solve", ec1, other, "--memory", 7)[0]
        assert len(out.strip().splitlines()) == 3
        assert len(run.json("solve", ec1, other, "--memory", 7)["results"]) == 2

    def test_the_schedule_goes_into_a_file_that_check_accepts(
        self, run: Run, ec1: Path, tmp_path: Path
    ) -> None:
        schedule = tmp_path / "schedule.json"
        assert run("solve", ec1, "-o", schedule)[0] == 0
        assert "total latency 12" in run.done("check", ec1, schedule)[0]
        again = run.json("solve", ec1, "--start", schedule, "-t", 0)
        assert again["found_by"] == "given schedule"

    def test_nothing_found_is_exit_3(self, run: Run, ec1: Path) -> None:
        code, out, _ = run("solve", ec1, "--cold", "--time-limit", 0, "--json")
        found = one_object(out)
        assert code == 3
        assert found["status"] == "unknown"
        assert found["stop_reason"] == "time-limit"
        assert found["objective"] is found["lower_bound"] is found["starts"] is None

    @pytest.mark.slow
    @pytest.mark.usefixtures("processor_clock")
    def test_a_limit_keeps_both_sides(self, run: Run, large: Path) -> None:
        found = run.json("solve", large, "--time-limit", 1)
        assert found["status"] == "feasible"
        assert found["stop_reason"] == "time-limit"
        assert 0 < found["lower_bound"] < found["objective"]
        assert found["seconds"] < 3

    def test_an_empty_instance_is_solved(self, run: Run, tmp_path: Path) -> None:
        empty = written(
            tmp_path / "empty.json", '{"schema": "kvopt.instance/1", "memory": 1, "requests": []}'
        )
        found = run.json("solve", empty)
        assert (found["status"], found["objective"], found["starts"]) == ("optimal", 0, [])


@pytest.mark.slow
def test_an_unknown_solver_of_pyomo_is_one_line(ec1: Path) -> None:
    # In a process of its own: Pyomo would log to the standard error that it was loaded with.
    done = python("-m", "kvopt", "solve", ec1, "-e", "pyomo", "--pyomo-solver", "nosuch")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kvopt: Pyomo cannot use the solver 'nosuch' here; available: ")
    assert len(done.stderr.splitlines()) == 1


class TestSignals:
    """Ctrl-C and SIGTERM end with what was found."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("engine", "number"),
        [("auto", signal.SIGINT), ("cpsat", signal.SIGINT), ("pyomo", signal.SIGTERM)],
    )
    def test_both_sides_survive(self, large: Path, engine: str, number: signal.Signals) -> None:
        command = [sys.executable, "-m", "kvopt", "solve", str(large), "-e", engine]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as child:  # type: ignore[call-overload]
            child.stderr.readline()  # both sides are known: the engine is about to begin
            time.sleep(0.2)
            os.kill(child.pid, number)
            out, _ = child.communicate(timeout=120)
        row = out.splitlines()[1].split()
        assert child.returncode == 128 + number
        assert "interrupted" in row
        assert "feasible" in row


class TestBound:
    """``kvopt bound``."""

    @pytest.mark.parametrize(
        ("method", "value"), [("volume", 11), ("lp", 12), ("auto", 12), (None, 12)]
    )
    def test_json_has_method_and_value(
        self, run: Run, ec1: Path, method: str | None, value: int
    ) -> None:
        named = () if method is None else ("--method", method)
        found = run.json("bound", ec1, *named)
        assert (found["method"], found["value"]) == (method or "auto", value)

    def test_a_table_has_all_methods(self, run: Run, ec1: Path) -> None:
        out = run("bound", ec1)[1]
        assert "volume" in out
        assert "lp" in out

    def test_an_unknown_bound_is_null(self, run: Run, large: Path) -> None:
        out = run.done("bound", large, "--method", "lp", "--time-limit", 0, "--json")[0]
        assert one_object(out)["value"] is None


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ({"starts": [0, 0, 0, 2], "objective": 12}, 0, "peak memory 6 of 7"),
        ({"starts": [0, 0, 0, 0]}, 1, "8 tokens held, memory is 7"),
        ({"starts": [0, 0, 0, 2], "objective": 11}, 1, "the starts give 12"),
        ({"starts": [0, 0, 0]}, 2, "starts: has 3 entries for 4 requests"),
    ],
)
def test_check_has_another_status_for_what_cannot_be_read(
    run: Run, ec1: Path, content: dict[str, Any], code: int, words: str
) -> None:
    path = written(
        ec1.with_name("schedule.json"), json.dumps({"schema": "kvopt.schedule/1", **content})
    )
    found, out, err = run("check", ec1, path)
    assert (found, out == "", err == "") == (code, code == 2, code != 2)
    assert words in out + err


@pytest.mark.parametrize("format_", ["mps", "lp"])
def test_export_writes_the_format_of_the_name(
    run: Run, ec1: Path, tmp_path: Path, format_: str
) -> None:
    target = tmp_path / "model.txt"
    err = run.done("export", ec1, "--formulation", "relaxed", "--format", format_, "-o", target)[1]
    assert "wrote" in err
    assert "memory_3" in target.read_text()


def test_export_leaves_out_starts_that_a_schedule_makes_needless(
    run: Run, ec1: Path, tmp_path: Path
) -> None:
    schedule, model, short = tmp_path / "s.json", tmp_path / "m.lp", tmp_path / "short.lp"
    run("solve", ec1, "-o", schedule)
    assert run("export", ec1, "-o", model)[0] == 0
    assert run("export", ec1, "--schedule", schedule, "-o", short)[0] == 0
    assert "x_r3_2" in short.read_text()
    assert "x_r3_6" in model.read_text()
    assert "x_r3_6" not in short.read_text()
    shortest = short.read_text()
    assert run("export", ec1, "--upper", 12, "-o", short)[0] == 0
    assert short.read_text() == shortest


def test_export_takes_no_latency_from_a_schedule_that_pauses(run: Run, tmp_path: Path) -> None:
    instance = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)])
    write_instance(instance, tmp_path / "i.json")
    run("solve", tmp_path / "i.json", "--scope", "pauses", "-o", tmp_path / "s.json")
    given = ("--schedule", tmp_path / "s.json", "-o", tmp_path / "m.lp")
    assert "has pauses" in run.refused("export", tmp_path / "i.json", *given)


@pytest.mark.slow
def test_plot_draws_with_and_without_a_schedule(run: Run, ec1: Path, tmp_path: Path) -> None:
    schedule, pictures = tmp_path / "s.json", [tmp_path / "p.png", tmp_path / "p.svg"]
    run("solve", ec1, "-o", schedule)
    assert run("plot", ec1, "--schedule", schedule, "-o", pictures[0])[0] == 0
    assert run("plot", ec1, "-o", pictures[1])[0] == 0
    assert all(picture.stat().st_size > 1000 for picture in pictures)
    assert run("plot", ec1, "-o", tmp_path / "p.gif")[0] == 2


def test_info_names_versions_and_solvers(run: Run) -> None:
    facts = run.json("info")
    assert facts["versions"]["highspy"] == "1.13.1"
    assert "highs" in facts["pyomo_solvers"]
    assert "ortools" in run("info")[1]


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version")[1].startswith("kvopt ")

"""What is said on standard error: details, nothing but errors, and a log of everything."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path

import pytest
from commands import Run

STAMPED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|ERROR)\s+(.*)")


def logged(path: Path) -> list[tuple[str, str]]:
    """Return level and text of each line of a log; all have a time."""
    matches = [STAMPED.fullmatch(line) for line in path.read_text().splitlines()]
    return [(match[1], match[2]) for match in matches if match is not None]


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_leaves_results_and_errors(run: Run, ec1: Path, place: str) -> None:
    command = ["bound", ec1, "--method", "volume"]
    code, out, err = run(*(["-q", *command] if place == "before" else [*command, "-q"]))
    assert (code, err) == (0, "")
    assert out.startswith("method")
    assert run(*command)[2] != ""
    err = run.refused("-q", "bound", "gone.json")
    assert err == "kvopt: gone.json: cannot be read: No such file or directory\n"


def test_verbose_shows_each_improvement_and_what_took_how_long(run: Run, ec1: Path) -> None:
    plain, loud = run("solve", ec1)[2], run("solve", ec1, "--verbose")[2]
    assert len(loud.splitlines()) > len(plain.splitlines())
    assert "latency 12" in loud
    assert "exact begins" in loud


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_a_log_holds_all_messages_however_few_are_shown(
    run: Run, ec1: Path, tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    log = tmp_path / "a.log"
    code, out, err = run("export", ec1, "-o", tmp_path / "a.lp", "--log", log, *quiet)
    assert (code, out, err == "") == (0, "", bool(quiet))
    assert ("INFO", f"wrote {tmp_path / 'a.lp'}") in logged(log)
    before = log.read_text()
    assert run("--log", log, "solve", "gone.json", *quiet)[0] == 2
    assert log.read_text().startswith(before), "a log is appended to"
    assert logged(log)[-1] == (
        "ERROR",
        "kvopt: gone.json: cannot be read: No such file or directory",
    )
    assert any("kvopt --log" in text for level, text in logged(log) if level == "DEBUG")


def test_standard_output_is_the_same_at_every_verbosity(
    run: Run, ec1: Path, tmp_path: Path
) -> None:
    outs = {
        run("check", ec1, schedule_of(ec1), *options)[1]
        for options in ((), ("-q",), ("-v",), ("--log", tmp_path / "a.log"))
    }
    assert len(outs) == 1


def schedule_of(ec1: Path) -> Path:
    path = ec1.with_name("s.json")
    path.write_text('{"schema": "kvopt.schedule/1", "starts": [0, 0, 0, 2]}')
    return path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_log_that_cannot_be_written_is_reported_once(run: Run, ec1: Path) -> None:
    code, out, err = run("check", ec1, schedule_of(ec1), "--log", "/dev/full")
    assert (code, out.split(":")[0]) == (0, "feasible")
    assert err == "kvopt: warning: --log /dev/full: cannot be written: No space left on device\n"


def test_nothing_is_left_behind(run: Run, ec1: Path, tmp_path: Path) -> None:
    logger, out = logging.getLogger("kvopt"), sys.stdout
    before = [*logger.handlers]
    run("run", ec1, "-P", "mc-sf", "-o", "-", "-v", "--log", tmp_path / "a.log")
    assert logger.handlers == before
    assert sys.stdout is out
    assert run("check", ec1, schedule_of(ec1))[2] == ""


def test_files_of_another_kind_get_a_hint(run: Run, tmp_path: Path) -> None:
    record, made = Path(__file__).parents[2] / "samples" / "vllm.jsonl", tmp_path / "run.json"
    assert run("import-run", record, "-o", made)[0] == 0
    err = run.refused("certify", made, "-o", tmp_path / "c.json")
    assert err == f"kvopt: {made}: schema: is that of a run: kvopt certify --run judges it\n"
    rows = tmp_path / "rows.csv"
    rows.write_text("arrival;prompt;output\n0;1;2\n")
    for command in (
        ("solve", rows, "--memory", 9),
        ("import", rows, "--format", "csv", "--memory", 9, "-o", tmp_path / "i.json"),
    ):
        code, _, err = run(*command)
        assert (code, err.endswith("; separate columns by commas, not semicolons\n")) == (2, True)

"""Memory in whole blocks on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, Schedule, write_instance
from kvopt.timetable.run_files import RecordedRun, write_run

PAIR = Instance(8, [Request(0, 0, 2), Request(0, 0, 2), Request(0, 0, 1)])
STARTS = {"schema": "kvopt.schedule/1", "starts": [0, 0, 0]}


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    write_instance(PAIR, tmp_path / "pair.json")
    return tmp_path / "pair.json"


def test_check_counts_blocks(run: Run, pair: Path, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps(STARTS))
    assert run("check", pair, tmp_path / "s.json")[0] == 0
    code, out, _ = run("check", pair, tmp_path / "s.json", "--block-size", "4")
    assert code == 1
    assert "time 1: 3 blocks of 4 tokens held, there are 2" in out


def test_run_and_bound_take_a_block_size(run: Run, pair: Path) -> None:
    code, out, _ = run("run", pair, "--block-size", "4", "-P", "vllm-fcfs", "-P", "fcfs", "--json")
    assert code == 0
    assert [row["objective"] for row in json.loads(out)["policies"]] == [7, 7]
    code, out, err = run("bound", pair, "--block-size", "4", "--method", "volume")
    assert (code, "memory in 2 whole blocks of 4 tokens" in err) == (0, True)


@pytest.mark.slow
def test_a_recorded_run_is_judged_in_blocks_when_asked(run: Run, tmp_path: Path) -> None:
    record, cert = tmp_path / "run.json", tmp_path / "c.json"
    segments = [[(1, 2)], [(1, 2)], [(3, 3)]]
    write_run(RecordedRun("vllm", Schedule(PAIR, segments=segments), 4), record)
    assert run("certify", "--run", record, "-t", "1", "-o", cert)[0] == 0
    assert "block_size" not in json.loads(cert.read_text())["instance"]
    code, _, err = run("certify", "--run", record, "--block-size", "4", "-t", "1", "-o", cert)
    assert (code, "memory in 2 whole blocks of 4 tokens" in err) == (0, True)
    assert json.loads(cert.read_text())["instance"]["block_size"] == 4

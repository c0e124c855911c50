"""Memory in whole blocks, and service levels, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, Schedule, write_instance
from kvopt.timetable.run_files import RecordedRun, write_run

pytestmark = pytest.mark.usefixtures("processor_clock")

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
    out = run.done("run", pair, "--block-size", "4", "-P", "vllm-fcfs", "-P", "fcfs", "--json")[0]
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
    assert (
        "memory in 2 whole blocks of 4 tokens"
        in run.done("certify", "--run", record, "--block-size", "4", "-t", "1", "-o", cert)[1]
    )
    assert json.loads(cert.read_text())["instance"]["block_size"] == 4


# ---- ``certify --slo``


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of three requests: in three rounds two can be done, one never."""
    path = tmp_path / "three.json"
    write_instance(Instance(6, [Request(0, 1, 2), Request(0, 1, 3), Request(0, 1, 4)]), path)
    return path


def test_the_ceiling_is_printed_and_verified(run: Run, file: Path) -> None:
    cert = file.with_name("c.json")
    out = run.done("certify", file, "-P", "svf", "--slo", "e2e=3", "-t", "20", "-o", cert)[0]
    assert "e2e=3: at most 2 of 3 requests attain it, best known 2; 1 cannot" in out
    assert out.splitlines()[1].split()[:3] == ["policy", "in", "time"]
    out = run.done("verify", cert)[0]
    assert "at most 2 of 3 requests can attain e2e=3" in out


def test_every_command_prints_how_many_attain(run: Run, file: Path) -> None:
    slo = ("--slo", "e2e=3", "--attain", "99%", "-t", "5")
    _, out, _ = run("bound", file, *slo)
    assert "e2e=3: at most 2 of 3 requests attain it; 1 cannot even alone" in out
    assert "99%: impossible" in out.splitlines()
    _, out, _ = run("solve", file, "--slo", "e2e=3", "--attain", "2", "-t", "5")
    assert "2: a schedule is known" in out
    _, out, _ = run("run", file, "-P", "slo", *slo[:-2])
    assert out.splitlines()[0].split()[:4] == ["policy", "in", "time", "99%"]
    assert out.splitlines()[1].split()[:3] == ["slo", "2", "no"]
    assert run.json("bound", file, *slo)["ceiling"] == 2


def test_json_has_the_ceiling_in_blocks(run: Run, file: Path) -> None:
    options = ("--slo", "ttft=1,tpot=1", "-t", "20", "--json", "-o", file.with_name("c.json"))
    code, out, _ = run("certify", file, "-P", "svf", *options)
    said = json.loads(out)
    assert (code, said["ceiling"], said["policies"][0]["attained"]) == (0, 2, 2)

"""Slower machines on the command line, and in studies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Run

from kvopt import Instance, Request, Schedule, write_instance
from kvopt.experiments.studies.description import builtin_study, resolved_text, study_from_text
from kvopt.experiments.studies.intervals import by_policy
from kvopt.experiments.studies.records import read_records
from kvopt.timetable.run_files import RecordedRun, write_run

pytestmark = pytest.mark.usefixtures("processor_clock")

TRIPLES = [(0, 0, 5), (1, 3, 2), (2, 1, 1), (3, 0, 3), (9, 2, 2)]
STUDY = """
slower = true
policies = ["fcfs", "svf"]
[limits]
time_limit = 20
[[instances]]
inline = "five"
memory = 6
requests = [[0, 0, 5], [1, 3, 2], [2, 1, 1], [3, 0, 3], [9, 2, 2]]
"""


@pytest.fixture
def five(tmp_path: Path) -> Path:
    path = tmp_path / "five.json"
    write_instance(Instance(6, [Request(*triple) for triple in TRIPLES], round_ms=50), path)
    return path


@pytest.mark.parametrize("clock", [[], ["--seconds"]])
def test_certify_says_how_much_slower_a_machine_may_be(
    run: Run, five: Path, clock: list[str]
) -> None:
    cert = five.with_name("c.json")
    asked = ("certify", five, *clock, "--policy", "fcfs", "--slower", "-o", cert)
    code, out, _ = run(*asked, "--json")
    said = json.loads(out)
    (judged,) = said["policies"]
    assert code == 0
    assert 1 < said["slower_than"] <= judged["slower_than"] < 5
    code, out, _ = run(*asked)
    lines = out.splitlines()
    head = next(line for line in lines if "x slower" in line)
    row = lines[lines.index(head) + 1]
    names = [name.strip() for name in head.split("  ") if name]
    phi = row.split()[names.index("x slower")]
    code, out, _ = run("verify", cert)
    assert code == 0
    assert f"as good as 'fcfs' on a machine more than {phi} times slower is impossible" in out


@pytest.mark.parametrize("clock", [[], ["--seconds"]])
def test_without_them_a_file_is_as_it_was(run: Run, five: Path, clock: list[str]) -> None:
    cert = five.with_name("c.json")
    code, out, _ = run("certify", five, *clock, "--policy", "fcfs", "-o", cert)
    assert code == 0
    assert "slower" not in out
    content = json.loads(cert.read_text())
    assert "slower" not in content


def test_a_backlog_has_no_column_of_its_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "backlog.json"
    write_instance(Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), path)
    cert = tmp_path / "c.json"
    _, out, _ = run("certify", path, "--policy", "mc-sf", "--slower", "-o", cert)
    assert "slower" not in out
    _, out, _ = run("certify", path, "--policy", "mc-sf", "--slower", "-o", cert, "--json")
    assert json.loads(out)["policies"][0]["slower_than"] == 1.038  # 28 / 27


def test_a_run_that_did_not_end_has_none(run: Run, five: Path) -> None:
    cert = five.with_name("c.json")
    names = ["--policy", "alpha-protect:alpha=0.5", "--policy", "fcfs"]
    code, out, _ = run("certify", five, *names, "--slower", "-o", cert, "--json")
    first, second = json.loads(out)["policies"]
    assert (code, first["outcome"], first["slower_than"]) == (0, "livelock", None)
    assert second["slower_than"] > 1


@pytest.mark.slow
@pytest.mark.usefixtures("sketched")
def test_a_study_asks_for_them(run: Run, tmp_path: Path) -> None:
    description = tmp_path / "five.toml"
    description.write_text(STUDY)
    code, out, _ = run("study", description, "--out", tmp_path / "out")
    assert code == 0
    assert "x slower" in out.splitlines()[0]
    records = read_records(tmp_path / "out")
    for record, row in zip(records, by_policy(records), strict=True):
        assert record.slower_than is not None
        assert row.machine is not None
        assert row.machine.least == 1 < float(row.machine.most or 0) == record.slower_than
    code, _, _ = run("report", tmp_path / "out")
    assert code == 0
    assert "x slower" in (tmp_path / "out" / "report.html").read_text()


def test_other_studies_do_not(tmp_path: Path) -> None:
    plain = study_from_text(STUDY.replace("slower = true", ""), tmp_path / "five.toml")
    asking = study_from_text(STUDY, tmp_path / "five.toml")
    assert "slower" not in plain.limits[0].to_json()
    assert asking.limits[0].to_json()["slower"] is True
    assert "slower = true" in resolved_text(asking)
    assert "slower" not in resolved_text(plain)


def test_the_built_in_study() -> None:
    study = builtin_study("slower-machine", checked=False)
    assert study.limits[0].slower
    assert study.limits[0].batch_time is not None


# ---- memory in whole blocks on the command line


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


# ---- ``certify --deadline``


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of three requests: in three rounds two can be done, one never."""
    path = tmp_path / "three.json"
    write_instance(Instance(6, [Request(0, 1, 2), Request(0, 1, 3), Request(0, 1, 4)]), path)
    return path


def test_the_ceiling_is_printed_and_verified(run: Run, file: Path) -> None:
    cert = file.with_name("c.json")
    code, out, _ = run("certify", file, "-P", "svf", "--deadline", "3", "-t", "20", "-o", cert)
    assert code == 0
    assert "within 3 rounds: completions of at most 2 of 3 requests, best known 2; 1 cannot" in out
    assert out.splitlines()[1].split()[:3] == ["policy", "in", "time"]
    code, out, _ = run("verify", cert)
    assert code == 0
    assert "at most 2 of 3 requests can complete within 3 rounds of their arrival" in out


def test_json(run: Run, file: Path) -> None:
    options = ("--deadline", "first-token:1", "-t", "20", "--json", "-o", file.with_name("c.json"))
    code, out, _ = run("certify", file, "-P", "svf", *options)
    said = json.loads(out)
    assert (code, said["ceiling"], said["policies"][0]["attained"]) == (0, 2, 2)

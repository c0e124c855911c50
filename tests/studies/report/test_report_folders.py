"""Folders of studies of all kinds: what is shown, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Run
from pages import Page, rewrite
from reported import RECORDS

from kvopt.studies.record_lines import FILE, Record, StudiedInstance
from kvopt.studies.report import write_report
from kvopt.studies.report.writing import COLUMNS

pytestmark = pytest.mark.usefixtures("sketched")


def test_command_writes_page_and_table(studied: Path, run: Run, tmp_path: Path) -> None:
    code, out, err = run("report", studied)
    assert (code, out) == (0, "")
    assert f"{RECORDS} records" in err
    assert (studied / "report.html").is_file()
    assert (studied / "report.csv").is_file()
    run.done("report", studied, "-o", tmp_path / "p.html", "--csv", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (studied / "report.csv").read_text()
    assert (tmp_path / "p.html").is_file()
    assert not (tmp_path / "p.csv").exists()


def test_folder_without_a_study_is_refused(run: Run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        assert "holds no study: records.jsonl is missing" in run.refused("report", folder)
    assert not list(tmp_path.iterdir())


def test_what_is_no_study_says_what_draws_it(run: Run, ec1: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    args = ("--target", "mean=3", "--counts", "2", "-t", "0.2", "--out", fleet)
    assert run("fleet", ec1, *args)[0] == 0
    before = {*fleet.iterdir()}
    assert "kvopt fleet --out draws its folder as fleet.svg" in run.refused("report", fleet)
    assert "kvopt.read_certificate(FILE).plot() draws a certificate" in run.refused(
        "report", fleet / "2.cert.json"
    )
    assert {*fleet.iterdir()} == before


def test_a_study_without_records_is_named_as_such(run: Run, tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    assert run("report", tmp_path)[0] == 0
    page = Page((tmp_path / "report.html").read_text())
    assert "No run of a scheduler is recorded in this folder." in page.inside["p"]
    assert [*csv.reader(io.StringIO((tmp_path / "report.csv").read_text()))] == [[*COLUMNS]]


def failed(number: int) -> Record:
    """Return what a study records of an instance that failed as a whole."""
    instance = StudiedInstance(f"i{number}", "file", {}, None, 9, 9, f"sha256:{number}")
    return Record(
        key=str(number), study="bad", instance=instance, policy=None, outcome="error", error="no"
    )


def test_study_of_failures_alone_is_shown(run: Run, tmp_path: Path) -> None:
    lines = [json.dumps(failed(number).to_json()) for number in range(70)]
    (tmp_path / FILE).write_text("\n".join(lines))
    assert run("report", tmp_path)[0] == 0
    page = Page((tmp_path / "report.html").read_text())
    assert sum(row[1:] == ["the whole instance", "no"] for row in page.rows) == 70
    assert {"overview", "failures", "provenance"} <= {*page.ids}
    assert not {"schedulers", "worst"} & {*page.ids}


def test_damaged_lines_are_reported_and_do_not_count(studied: Path, run: Run) -> None:
    lines = (studied / FILE).read_bytes().splitlines(keepends=True)
    changed = lines[0].replace(b'"evictions": 0', b'"evictions": 1')
    (studied / FILE).write_bytes(b"".join([changed, b"\xff\n", *lines[1:], lines[1][:50]]))
    err = run.done("report", studied)[1]
    assert err.count("is damaged and does not count") == 3
    assert f"{RECORDS - 1} records" in err
    assert (studied / "report.html").read_text().count("is damaged and does not count") == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lower": 10**9}, "lower: "),
        ({"certificate": "../secret.json"}, "certificate: must be a path inside the folder"),
        ({"certificate": "/etc/passwd"}, "certificate: must be a path inside the folder"),
    ],
)
def test_records_that_cannot_be_are_refused(
    studied: Path, run: Run, change: dict[str, object], said: str
) -> None:
    rewrite(studied, lambda record: replace(record, **change))  # type: ignore[arg-type]
    err = run.refused("report", studied)
    assert f"{FILE}: " in err.replace("\n", "")
    assert said in err
    assert not (studied / "report.html").exists()


def test_page_that_cannot_be_written_leaves_the_old_one(studied: Path, run: Run) -> None:
    write_report(studied)
    old = (studied / "report.html").read_bytes()
    (studied / FILE).write_text('{"half": ')
    blocked = studied / "report.csv"
    blocked.unlink()
    blocked.mkdir()
    assert "cannot be written" in run.refused("report", studied)
    assert (studied / "report.html").read_bytes() == old

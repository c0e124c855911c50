"""Reports of studies in seconds: every number is that of a simulation or of a certificate."""

from __future__ import annotations

import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from commands import Run
from pages import rewrite, sketch
from reported import make_study_in_seconds

from kvopt.studies.record_lines import FILE, Record, read_records
from kvopt.studies.report import write_report
from kvopt.studies.report.findings import headed
from kvopt.studies.report.writing import COLUMNS, SECONDS_COLUMNS

pytestmark = pytest.mark.usefixtures("sketched")

HEADING = "conversation (stand-in), per_second {}"


@pytest.fixture
def traffic(study_in_seconds: Path, tmp_path: Path) -> Path:
    return shutil.copytree(study_in_seconds, tmp_path / "study")


@pytest.fixture(scope="module")
def written(study_in_seconds: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the study with its report, which no test may change."""
    with pytest.MonkeyPatch.context() as patch:
        sketch(patch)
        folder = shutil.copytree(study_in_seconds, tmp_path_factory.mktemp("seconds") / "study")
        write_report(folder)
    return folder


@pytest.fixture(scope="module")
def text(written: Path) -> str:
    """Return the page of the study as it is."""
    return (written / "report.html").read_text()


def text_of(folder: Path) -> str:
    return write_report(folder).page.read_text()


def section(page: str, place: str) -> str:
    found = re.search(rf'<section id="{place}".*?</section>', page, re.DOTALL)
    assert found, place
    return found[0]


def cells(row: str) -> list[str]:
    return [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)]


def runs(folder: Path, rate: int, size: int, policy: str) -> list[Record]:
    return [
        record
        for record in read_records(folder)
        if record.instance.parameters["per_second"] == rate
        and record.instance.requests == size
        and record.policy == policy
    ]


def test_the_study_of_these_tests_has_what_they_look_at(written: Path) -> None:
    records = read_records(written)
    assert {record.outcome for record in records} == {"completed", "livelock"}
    assert any(record.evictions and record.value for record in records)


def test_latencies_are_those_of_the_records(written: Path, text: str) -> None:
    found = section(text, "latency")
    tables = re.findall(r"<table>.*?</table>", found, re.DOTALL)
    assert len(tables) == 2 * 3
    for table in tables:
        rate, size = map(int, re.findall(r"per_second (\d+), (\d+) requests", table)[0])
        rows = [cells(row) for row in re.findall("<tr>.*?</tr>", table)[1:]]
        assert len(rows) == 4
        for name, count, completed, *shown, evictions in rows:
            mine = runs(written, rate, size, name)
            done = [record for record in mine if record.outcome == "completed"]
            assert (int(count), int(completed)) == (len(mine), len(done))
            assert int(evictions.replace(",", "")) == sum(r.evictions for r in mine)
            if len(done) < len(mine):
                assert set(shown) == {"-"}
                continue
            times = [record.times for record in mine if record.times is not None]
            wanted = [
                *(fmean(t.latency[key] or 0 for t in times) for key in ("median", "p99", "mean")),
                *(fmean(t.first_token[key] or 0 for t in times) for key in ("mean", "p99")),
                fmean(t.tokens_per_second or 0 for t in times),
            ]
            *numbers, share = shown
            assert [float(n.replace(",", "")) for n in numbers] == pytest.approx(wanted, rel=6e-4)
            held = fmean(t.mean_memory or 0 for t in times) / 1500
            assert float(share.rstrip("%")) == pytest.approx(100 * held, abs=0.06)


def test_curves_are_mean_latencies_over_the_certified_bound(written: Path, text: str) -> None:
    found = section(text, "volume")
    assert found.count('<b class="optimum"') == found.count('<b class="bound"') == 2
    for rate in (300, 500):
        table = re.search(
            rf"Mean latency of a request in seconds, conversation, per_second {rate}.*", found
        )
        assert table
        rows = [cells(row) for row in re.findall("<tr>.*?</tr>", table[0])][1:4]
        for size, lower, upper, *_ in rows:
            mine = runs(written, rate, int(size), "mc-sf")
            for shown, side in ((lower, "lower"), (upper, "upper")):
                mean = fmean(getattr(record, side) / int(size) / 1e9 for record in mine)
                assert float(shown) == pytest.approx(mean, rel=6e-4)


def test_the_table_has_seconds(written: Path) -> None:
    with (written / "report.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert tuple(rows[0]) == (*COLUMNS, *SECONDS_COLUMNS)
    by_key = {record.key: record for record in read_records(written)}
    assert len(rows) == len(by_key)
    for row in rows:
        times = by_key[row["key"]].times
        assert times is not None
        assert float(row["mean_s"]) == times.latency["mean"]
        assert float(row["p99_s"]) == times.latency["p99"]
        assert float(row["mean_memory"]) == times.mean_memory
        assert int(row["memory"]) == 1500


def test_certificates_are_verified_and_compared(traffic: Path, run: Run) -> None:
    def better(record: Record) -> Record:
        if record.lower is None or record.policy != "mc-sf":
            return record
        return replace(record, lower=record.lower + 1)

    assert run("report", traffic, "--verify")[0] == 0
    rewrite(traffic, better)
    code, _, err = run("report", traffic, "--verify")
    assert code == 1
    assert "lower is " in err


def test_without_certificates_nothing_is_bounded(tmp_path: Path) -> None:
    page = text_of(make_study_in_seconds(tmp_path, certify=False))
    assert '<b class="bound"' not in section(page, "volume")


def test_a_title_that_is_no_text_is_left_out(traffic: Path) -> None:
    line = (traffic / FILE).read_text().splitlines()[0]
    for description in ("title = 3", "title = ", ""):
        (traffic / "study.toml").write_text(description)
        (traffic / FILE).write_text(line)
        assert "<header>" in text_of(traffic)


def test_headings_name_what_the_records_differ_in(written: Path) -> None:
    records = read_records(written)
    assert {r.instance.family for r in headed(records)} == {HEADING.format(r) for r in (300, 500)}
    one = [r for r in records if r.instance.parameters["per_second"] == 300]
    assert {r.instance.family for r in headed(one)} == {"conversation (stand-in)"}


def test_files_of_a_family_stand_by_their_names(written: Path) -> None:
    def filed(record: Record) -> Record:
        rate = record.instance.parameters["per_second"]
        instance = replace(
            record.instance, name=f"{rate}.json", parameters={"file": f"/far/{rate}.json"}
        )
        return replace(record, instance=instance)

    found = headed([filed(record) for record in read_records(written)])
    assert {r.instance.family for r in found} == {
        f"conversation (stand-in), {rate}.json" for rate in (300, 500)
    }

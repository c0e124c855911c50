"""Certificates of a report: those that are gone or wrong, and those that are verified anew."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Run
from pages import Page, page_of, rewrite

from kvopt.studies.record_lines import FILE, Record, read_records

pytestmark = pytest.mark.usefixtures("sketched")


def test_missing_certificates_are_named(studied: Path) -> None:
    shutil.rmtree(studied / "certificates")
    assert not [link for link in page_of(studied).links if "certificates" in link]
    text = (studied / "report.html").read_text()
    assert "7 certificates of the folder missing" in text
    assert "Not drawn: " in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["policies"][1]["starts"].reverse(), "tokens are held|before"),
        (lambda c: c["upper"]["starts"].pop(), "upper"),
        (lambda c: c["upper"].update(starts=None), "starts"),
        (lambda c: c["policies"][0].update(lost=[[-1, 0, 1]]), "lost work must be"),
        (lambda c: c["instance"].update(memory=10**6), "hash"),
        (lambda c: c["policies"].clear(), "is not what the record says"),
        (lambda c: c.update(schema="other"), "schema"),
    ],
)
def test_certificates_that_do_not_fit_are_named_and_not_drawn(
    studied: Path, change: Callable[[dict[str, object]], object], said: str
) -> None:
    lines = (studied / FILE).read_text().splitlines()[-3:]  # of one instance: few pictures
    (studied / FILE).write_text("\n".join(lines))
    path = studied / str(read_records(studied)[-1].certificate)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    page = page_of(studied)
    refused = [text for text in page.inside["p"] if text.startswith("Not drawn: ")]
    assert any(re.search(said, text) for text in refused)
    assert all("certificates/" in text for text in refused)


def test_certificates_are_verified_when_asked(studied: Path, run: Run) -> None:
    assert run("report", studied)[0] == 0
    assert "not verified anew" in (studied / "report.html").read_text()
    assert run("report", studied, "--verify")[0] == 0
    assert "7 certificates verified and compared" in (studied / "report.html").read_text()


def test_false_certificates_are_found(studied: Path, run: Run) -> None:
    first, second, *_ = sorted((studied / "certificates").iterdir())
    content = json.loads(first.read_text())
    content["lower"]["value"] += 1_000
    first.write_text(json.dumps(content))
    second.write_text("{")
    code, _, err = run("report", studied, "--verify")
    assert code == 1
    assert re.search(rf"{first.name}: INVALID: lower: says [\d,]+, the proof gives [\d,]+", err)
    assert f"{second.name}: UNREADABLE" in err
    assert Page((studied / "report.html").read_text()).open == []
    assert "5 certificates verified" in (studied / "report.html").read_text()


def test_records_that_say_more_than_their_certificates_are_found(studied: Path, run: Run) -> None:
    def better(record: Record) -> Record:
        return replace(record, lower=record.upper) if record.policy == "fcfs" else record

    rewrite(studied, better)
    code, _, err = run("report", studied, "--verify")
    open_still = {r.certificate for r in read_records(studied) if not r.proved}
    assert code == (1 if open_still else 0)
    assert err.count("fcfs: lower is ") == len(open_still) > 0

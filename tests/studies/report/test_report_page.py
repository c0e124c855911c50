"""Pages of reports: one file that needs nothing, in which nothing of a study runs."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from interpreters import printed
from pages import Page, page_of, rewrite
from reported import BROKEN

from kvopt.problem.scopes import Scope
from kvopt.studies.record_lines import FILE, Record, read_records
from kvopt.studies.report import write_report
from kvopt.studies.report.pages import TEXTS
from kvopt.studies.report.writing import BY_FAMILY, WHOLE


@pytest.fixture(scope="module")
def written(finished_study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the study with its report."""
    folder = shutil.copytree(finished_study, tmp_path_factory.mktemp("report") / "study")
    write_report(folder)
    return folder


@pytest.fixture(scope="module")
def text(written: Path) -> str:
    """Return the page of the study as it is."""
    return (written / "report.html").read_text()


def test_page_is_whole_and_loads_nothing(text: str) -> None:
    page = Page(text)
    assert page.open == []
    assert page.loads == []
    assert page.handlers == []
    assert page.kinds == [None]
    assert all(re.match(r"data:,$|#|certificates/|report\.csv$", link) for link in page.links)
    assert max(Counter(page.ids).values()) == 1
    assert {link[1:] for link in page.links if link.startswith("#")} <= {*page.ids}


def test_policy_allows_this_style_and_this_script_alone(text: str) -> None:
    page = Page(text)
    digests = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in (page.inside["style"][0], page.inside["script"][0])
    ]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    rules = policy[1].replace("&#x27;", "'").split("; ")
    assert rules[:3] == [
        "default-src 'none'",
        f"style-src 'sha256-{digests[0]}'",
        f"script-src 'sha256-{digests[1]}'",
    ]


@pytest.mark.parametrize("place", ["report.html", "../elsewhere/a b/page.html"])
def test_links_lead_to_certificates_from_wherever_the_page_is(studied: Path, place: str) -> None:
    target = studied / place
    target.parent.mkdir(parents=True, exist_ok=True)
    odd = studied / "certificates" / "odd #1?&.json"
    first = next(record for record in read_records(studied) if record.certificate)
    shutil.copy(studied / str(first.certificate), odd)
    rewrite(studied, lambda record: replace(record, certificate="certificates/odd #1?&.json"))
    write_report(studied, target)
    page = Page(target.read_text())
    found = [link for link in page.links if "certificates/" in link]
    assert found
    assert {(target.parent / unquote(link)).resolve() for link in found} == {odd.resolve()}
    table = next(link for link in page.links if link.endswith(".csv"))
    assert (target.parent / unquote(table)).is_file()


def test_same_folder_gives_the_same_bytes_in_any_order(written: Path, studied: Path) -> None:
    def read(folder: Path) -> tuple[str, bytes]:
        page = (folder / "report.html").read_text()
        return re.sub("sha256:[0-9a-f]{64}", "", page), (folder / "report.csv").read_bytes()

    lines = (studied / FILE).read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    (studied / FILE).write_text("".join(lines))
    write_report(studied)
    assert read(studied) == read(written)


def test_nothing_heavy_is_loaded() -> None:
    code = "import sys, kvopt.studies.report; print(*sys.modules)"
    loaded = printed(code)
    assert {"highspy", "matplotlib.pyplot", "numba", "ortools", "dask", "pandas"}.isdisjoint(loaded)


HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "&amp; &lt; ]]> <!-- ",
    "\x00\x1b[31m\u2028\u202e\ufffe",
]


def test_text_of_files_stays_text(studied: Path) -> None:
    """The records of each instance have another one of them in all fields."""
    names: dict[str, str] = {}

    def hostile(record: Record) -> Record:
        name = names.setdefault(record.instance.hash, HOSTILE[len(names) % len(HOSTILE)])
        instance = replace(record.instance, name=name, family=name)
        policy = f"{record.policy}{name}"
        error = record.error and name
        return replace(record, study=name, instance=instance, policy=policy, error=error)

    rewrite(studied, hostile)
    (studied / "study.toml").write_text("\n".join(HOSTILE))
    page = page_of(studied)
    assert page.open == page.handlers == page.loads == []
    assert page.kinds == [None]
    for name in filter(str.isprintable, HOSTILE):
        assert any(name in cell for row in page.rows for cell in row)


def test_error_of_a_scheduler_is_shown_as_text(text: str) -> None:
    cells = {cell for row in Page(text).rows for cell in row}
    assert any(cell.endswith(f"RuntimeError: {BROKEN}") for cell in cells)
    assert "<b>broken" not in text


def test_a_page_names_the_schedules_that_bounds_cover(text: str) -> None:
    assert sum(Scope.RUNS.sentence in said for said in Page(text).inside["p"]) == 1


def test_thousands_of_records_stay_light(studied: Path) -> None:
    records = [record for record in read_records(studied) if record.policy]
    lines = []
    for number in range(2_000):
        record = records[number % len(records)]
        place = replace(
            record.instance, hash=f"{record.instance.hash}-{number // len(records)}", seed=number
        )
        lines.append(json.dumps(replace(record, key=str(number), instance=place).to_json()))
    (studied / FILE).write_text("\n".join(lines))
    write_report(studied)
    assert (studied / "report.html").stat().st_size < 1_000_000
    assert len((studied / "report.csv").read_text().splitlines()) == 2_001


def test_each_section_has_a_text_and_one_function() -> None:
    assert sorted(TEXTS) == sorted([*WHOLE, *BY_FAMILY])


def test_sections_with_data_stand_in_order_and_are_linked(text: str) -> None:
    names = re.findall(r'<section id="([^"]*)"', text)
    assert re.findall(r'<li><a href="#([^"]*)"', text) == names
    assert names == [name for name in TEXTS if name in names]
    assert names[0] == "overview"
    assert names[-2:] == ["failures", "provenance"]
    assert "latency" not in names, "the study is in rounds"

"""Reports of traces: what stands first, latency along memory and rate, names."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest
from known import known
from pages import page_of
from traced import GRID, folder_of, trace, traced

from kvopt.studies.report import write_report

pytestmark = pytest.mark.usefixtures("sketched")


@pytest.fixture
def studied_trace(tmp_path: Path) -> Path:
    return traced(tmp_path / "study")


def section(folder: Path, name: str) -> str | None:
    page = write_report(folder).page.read_text()
    found = re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    ("name", "titles", "places"),
    [
        ("by-memory", ["chat.json, rate 1", "chat.json, rate 2"], [100, 200, 400]),
        ("by-rate", [f"chat.json, memory {memory}" for memory in (100, 200, 400)], [1, 2]),
    ],
)
def test_latency_is_drawn_along_each_axis_alone(
    studied_trace: Path, name: str, titles: list[str], places: list[int]
) -> None:
    found = known(section(studied_trace, name))
    assert re.findall(r"<figcaption><strong>(.*?)</strong>", found) == titles
    assert found.count("mean latency of a request against") == len(titles)
    assert found.count('<b class="optimum"') == len(titles)
    assert found.count('<b class="policy-') == 2 * len(titles), "a sign for each scheduler"
    tables = re.findall(r"<tbody>.*?</tbody>", found, re.DOTALL)
    for title, table in zip(titles, tables, strict=True):
        fixed = int(title.split()[-1])
        rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in table.split("<tr>")[1:]]
        for place, row in zip(places, rows, strict=True):
            memory, rate = (place, fixed) if name == "by-memory" else (fixed, place)
            wanted = [700 * rate - memory, 800 * rate - memory]
            wanted += sorted([1000 * rate - memory, 2000 * rate - memory])
            shown = [float(cell.replace(",", "")) for cell in row]
            assert shown == pytest.approx([place, *(total / 10 for total in wanted)], rel=6e-4)


def test_a_scheduler_has_no_place_where_a_run_did_not_complete(tmp_path: Path) -> None:
    records = [
        trace("chat", "svf", memory, 1, None if memory == 200 else 900) for memory, _ in GRID
    ]
    found = section(folder_of(tmp_path / "study", records), "by-memory")
    (row,) = re.findall(r'<tr><th scope="row">200</th>.*?</tr>', known(found))
    assert row.count(">-<") == 3


def test_what_does_not_vary_has_no_picture(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "study", [trace("chat", "svf", 100, 1, 900)])
    assert section(folder, "by-memory") is None
    assert section(folder, "by-rate") is None


def test_the_page_begins_with_the_question_and_its_answer(studied_trace: Path) -> None:
    page = write_report(studied_trace).page.read_text()
    text = re.sub("<[^>]*>", " ", page[page.index("<header>") :])
    assert text.index("How much memory?") < text.index("On average over all 6 instances, svf")
    assert text.index("On average over") < text.index("runs: 2 schedulers on 6 instances; cache")
    assert "cache 100 to 400 tokens" in text


def test_files_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    places = {"/home/someone/april/{}.json": 1, "/srv/may/{}.json": 2}
    records = []
    for place, rate in places.items():
        for memory in (100, 200):
            one = trace("chat", "svf", memory, rate, 2000)
            keys = {**one.instance.parameters, "file": place.format("chat")}
            records.append(replace(one, instance=replace(one.instance, parameters=keys)))
    folder = folder_of(tmp_path / "study", records)
    found = section(folder, "by-memory")
    assert "chat.json, file /home/someone/april/chat.json, rate 1" in known(found)
    rows = [row for row in page_of(folder).rows if row[0].endswith("/chat.json")]
    assert {row[0] for row in rows} == {place.format("chat") for place in places}


def test_names_are_in_the_order_of_people(tmp_path: Path) -> None:
    names = ["a10", "a2", "b1", "a1"]
    folder = folder_of(tmp_path / "study", [trace(name, "svf", 100, 1, 900) for name in names])
    rows = [row for row in page_of(folder).rows if row[0].endswith(".json")]
    assert [row[0] for row in rows] == ["a1.json", "a2.json", "a10.json", "b1.json"]


def test_the_table_names_its_unit_and_its_axes(studied_trace: Path) -> None:
    written = write_report(studied_trace)
    rows = list(csv.DictReader(known(written.table).read_text().splitlines()))
    assert {row["time_unit"] for row in rows} == {"rounds"}
    assert {(int(row["memory"]), int(row["rate"])) for row in rows} == set(GRID)
    assert {row["left_out"] for row in rows} == {"0"}

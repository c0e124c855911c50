"""Numbers of reports: each is that of a certificate or of a record."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from pages import COLUMNS_OF_SCHEDULERS, page_of, rewrite
from reported import RECORDS

from kvopt.studies.record_lines import Record, read_records
from kvopt.studies.report import write_report
from kvopt.studies.report.writing import COLUMNS

pytestmark = pytest.mark.usefixtures("sketched")


def test_table_holds_what_certificates_prove(studied: Path) -> None:
    """Work every number out again, from certificates alone."""
    proved: dict[tuple[str | None, str], list[list[Fraction]]] = {}
    families = {record.instance.hash: record.instance.family for record in read_records(studied)}
    for path in (studied / "certificates").iterdir():
        content = json.loads(path.read_text())
        for run in content["policies"]:
            if run["value"] is not None:
                sides = (content[side]["value"] for side in ("upper", "lower"))
                group = (families[content["hash"]], run["policy"])
                proved.setdefault(group, []).append([Fraction(run["value"], s) for s in sides])
    rows: dict[tuple[str | None, str], list[str]] = {
        (row[0], row[1]): row[2:]
        for row in page_of(studied).rows
        if len(row) == COLUMNS_OF_SCHEDULERS
    }
    del rows["family", "scheduler"]
    assert {key for key, row in rows.items() if row[1] != "-"} == set(proved)
    for key, found in proved.items():
        least, most = sorted(low for low, _ in found), sorted(high for _, high in found)
        count = len(found)
        wanted = [
            (sum(least, Fraction()) / count, sum(most, Fraction()) / count),
            (least[(count + 1) // 2 - 1], most[(count + 1) // 2 - 1]),
            (least[-(-95 * count // 100) - 1], most[-(-95 * count // 100) - 1]),
            (least[-1], most[-1]),
        ]
        for shown, (low, high) in zip(rows[key][1:5], wanted, strict=True):
            ends_shown = [Fraction(end) for end in shown.strip("[]").split(", ")]
            rounding = Fraction(10 ** len(str(int(high))), 10_000)
            if low == high:
                assert len(ends_shown) == 1
                assert abs(ends_shown[0] - low) <= rounding
            else:
                assert low - rounding < ends_shown[0] <= low
                assert high <= ends_shown[1] < high + rounding


def test_table_counts_every_outcome(studied: Path) -> None:
    records = read_records(studied)
    rows = [row for row in page_of(studied).rows if len(row) == COLUMNS_OF_SCHEDULERS][1:]
    assert sum(int(row[2]) for row in rows) == len(records) == RECORDS
    lost = Counter(record.outcome for record in records)
    said = " ".join(row[10] for row in rows)
    for outcome in ("livelock", "error"):
        assert sum(map(int, re.findall(rf"(\d+) {outcome}", said))) == lost[outcome] > 0
    evictions = sum(int(row[11].replace(",", "")) for row in rows)
    assert evictions == sum(record.evictions for record in records) > 0


def test_csv_has_a_row_for_each_record(studied: Path) -> None:
    write_report(studied)
    rows = list(csv.DictReader(io.StringIO((studied / "report.csv").read_text())))
    records = {record.key: record for record in read_records(studied)}
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == RECORDS
    for row in rows:
        record = records.pop(row["key"])
        least, most = record.ratio
        assert row["policy"] == record.policy
        assert row["value"] == ("" if record.value is None else str(record.value))
        assert row["ratio_least"] == ("" if least is None else str(least))
        assert row["ratio_most"] == ("" if most is None else str(most))
        assert json.loads(row["parameters"]) == dict(record.instance.parameters)
    assert not records


def test_cells_do_not_become_formulas(studied: Path) -> None:
    def named(record: Record) -> Record:
        return replace(record, instance=replace(record.instance, name="=HYPERLINK(1)"))

    rewrite(studied, named)
    write_report(studied)
    rows = list(csv.DictReader(io.StringIO((studied / "report.csv").read_text())))
    assert {row["instance"] for row in rows} == {"'=HYPERLINK(1)"}


def test_curves_are_means_of_what_completed(studied: Path) -> None:
    hashes = sorted({record.instance.hash for record in read_records(studied)})

    def sized(record: Record) -> Record:  # as if there were three sizes
        size = 10 * (1 + hashes.index(record.instance.hash) % 3)
        return replace(
            record,
            instance=replace(
                record.instance, family="any", requests=size, weight=size, parameters={}, seed=None
            ),
        )

    rewrite(studied, sized)
    first = ["requests", "proved bound", "best schedule"]
    rows = page_of(studied).rows
    head = next(row for row in rows if row[:3] == first)
    shown = {
        (int(row[0]), name): cell
        for row in rows
        if len(row) == len(head) and row[0] in {"10", "20", "30"}
        for name, cell in zip(head[1:], row[1:], strict=True)
    }
    assert len(shown) == 3 * (len(head) - 1)
    for (size, name), cell in shown.items():
        mine = [r for r in read_records(studied) if r.instance.requests == size]
        once = {record.instance.hash: record for record in mine}.values()
        sides = {"proved bound": [r.lower for r in once], "best schedule": [r.upper for r in once]}
        values = sides.get(name) or [r.value for r in mine if r.policy == name]
        known = [value for value in values if value is not None]
        if known and len(known) == len(values):
            assert float(cell.replace(",", "")) == pytest.approx(
                sum(known) / len(known) / size, rel=6e-4
            )
        else:
            assert cell == "-"


def test_instances_from_files_have_short_names_while_these_differ(studied: Path) -> None:
    folders = {"arrival-1": "/long/way/to", "arrival-2": "/another"}

    def filed(record: Record) -> Record:
        family = str(record.instance.family)
        return from_file(record, f"{folders[family]}/{family}.json")

    def from_file(record: Record, path: str) -> Record:
        name, keys = Path(path).name, {"file": path}
        instance = replace(record.instance, name=name, family=None, parameters=keys, seed=None)
        return replace(record, instance=instance)

    rewrite(studied, filed)
    families = {row[0] for row in page_of(studied).rows if len(row) == COLUMNS_OF_SCHEDULERS}
    assert families == {"family", "arrival-1.json", "arrival-2.json"}

    def alike(record: Record) -> Record:
        path = str(record.instance.parameters["file"])
        return from_file(record, path.replace("arrival-1", "x").replace("arrival-2", "x"))

    rewrite(studied, alike)
    families = {row[0] for row in page_of(studied).rows if len(row) == COLUMNS_OF_SCHEDULERS}
    assert families == {"family", "/long/way/to/x.json", "/another/x.json"}

"""Reports: every number is that of a certificate, every link leads there, and nothing runs."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from commands import Run
from reported import BROKEN, RECORDS

from kvopt.experiments.studies.records import FILE, Record, StudiedInstance, read_records
from kvopt.model.scope import COVERED
from kvopt.reports import write_report
from kvopt.reports.writing import COLUMNS

_COLUMNS = 12
"""Cells in a row of the table of schedulers, which no other table has."""

_VOID = {"br", "circle", "line", "link", "meta", "path", "rect", "wbr"}


class Page(HTMLParser):
    """A page as a browser would read it: elements, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.handlers: list[str] = []
        self.rows: list[list[str]] = []
        self.inside: dict[str, list[str]] = {"style": [], "script": [], "pre": [], "p": []}
        self.kinds: list[str | None] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, pairs: list[tuple[str, str | None]]) -> None:
        attributes = dict(pairs)
        assert len(attributes) == len(pairs), "an attribute is given twice"
        if name not in _VOID:
            self.open.append(name)
        if name in self.inside:
            self.inside[name].append("")
        if name == "script":
            self.kinds.append(attributes.get("type"))
        if name == "tr":
            self.rows.append([])
        if name in {"td", "th"} and self.rows:
            self.rows[-1].append("")
        self.links += [link for link in [attributes.get("href")] if link is not None]
        self.ids += [name for name in [attributes.get("id")] if name is not None]
        self.loads += [key for key in attributes if key in {"src", "srcset", "action", "style"}]
        self.handlers += [key for key in attributes if key.startswith("on")]

    def handle_startendtag(self, name: str, pairs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(name, pairs)
        assert name in _VOID

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]][-1] += text
        if {"td", "th"} & set(self.open) and self.rows and self.rows[-1]:
            self.rows[-1][-1] += text


def page_of(folder: Path) -> Page:
    write_report(folder)
    return Page((folder / "report.html").read_text())


def rewrite(folder: Path, change: Callable[[Record], Record]) -> None:
    """Change the records of a study, as if it had found this."""
    lines = [json.dumps(change(record).to_json()) for record in read_records(folder)]
    (folder / FILE).write_text("".join(line + "\n" for line in lines))


# ---- one file that needs nothing ---------------------------------------------------


def test_page_is_whole_and_loads_nothing(studied: Path) -> None:
    page = page_of(studied)
    assert page.open == []
    assert page.loads == []
    assert page.handlers == []
    assert page.kinds == ["application/json", None]
    assert all(re.match(r"data:,$|#|certificates/|report\.csv$", link) for link in page.links)
    assert max(Counter(page.ids).values()) == 1
    assert {link[1:] for link in page.links if link.startswith("#")} <= {*page.ids}


def test_policy_allows_this_style_and_this_script_alone(studied: Path) -> None:
    page = page_of(studied)
    text = (studied / "report.html").read_text()
    digests = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in (page.inside["style"][0], page.inside["script"][1])
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


def test_same_folder_gives_the_same_bytes_in_any_order(studied: Path) -> None:
    def made() -> tuple[str, bytes]:
        write_report(studied)
        page = (studied / "report.html").read_text()
        return re.sub("sha256:[0-9a-f]{64}", "", page), (studied / "report.csv").read_bytes()

    before = made()
    assert made() == before
    lines = (studied / FILE).read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    (studied / FILE).write_text("".join(lines))
    assert made() == before


def test_nothing_heavy_is_loaded() -> None:
    code = "import sys, kvopt.reports; print(*(name.partition('.')[0] for name in sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert {"highspy", "matplotlib", "numba", "numpy", "ortools", "dask"}.isdisjoint(loaded)


# ---- numbers -----------------------------------------------------------------------


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
        (row[0], row[1]): row[2:] for row in page_of(studied).rows if len(row) == _COLUMNS
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
            rounding = Fraction(1, 10_000)
            if low == high:
                assert len(ends_shown) == 1
                assert abs(ends_shown[0] - low) <= rounding
            else:
                assert low - rounding < ends_shown[0] <= low
                assert high <= ends_shown[1] < high + rounding


def test_table_counts_every_outcome(studied: Path) -> None:
    records = read_records(studied)
    rows = [row for row in page_of(studied).rows if len(row) == _COLUMNS][1:]
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

    def sized(
        record: Record,
    ) -> Record:  # as if there were three sizes
        size = 10 * (1 + hashes.index(record.instance.hash) % 3)
        return replace(record, instance=replace(record.instance, family="any", requests=size))

    rewrite(studied, sized)
    first = ["requests", "proved bound", "best schedule"]
    rows = page_of(studied).rows
    text = (studied / "report.html").read_text()
    names = dict(re.findall(r"<li><b>(\w)</b> ([^<]*)</li>", text))
    head = [names.get(cell, cell) for cell in next(row for row in rows if row[:3] == first)]
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
                sum(known) / len(known) / size, abs=0.0051
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
    families = {row[0] for row in page_of(studied).rows if len(row) == _COLUMNS}
    assert families == {"family", "arrival-1.json", "arrival-2.json"}

    def alike(record: Record) -> Record:
        path = str(record.instance.parameters["file"])
        return from_file(record, path.replace("arrival-1", "x").replace("arrival-2", "x"))

    rewrite(studied, alike)
    families = {row[0] for row in page_of(studied).rows if len(row) == _COLUMNS}
    assert families == {"family", "/long/way/to/x.json", "/another/x.json"}


def test_stairs_join_whom_nobody_beats(studied: Path) -> None:
    made_up = {"mc-sf": (100, 0), "fcfs": (80, 9), "breaks": (120, 2)}

    def traded(record: Record) -> Record:
        value, evictions = made_up.get(str(record.policy), (None, 0))
        return replace(
            record,
            instance=replace(record.instance, family="any", requests=9),
            outcome="completed" if value else "unfinished",
            value=value,
            evictions=evictions,
            upper=50,
            lower=40,
            error=None,
        )

    rewrite(studied, traded)
    write_report(studied)
    text = (studied / "report.html").read_text()
    section = re.search(r'<section id="evictions".*?</section>', text, re.DOTALL)
    assert section is not None
    (stairs,) = re.findall(r'<path d="([^"]*)" class="trend"/>', section[0])
    assert stairs.count("V") == 1  # from mc-sf, which never evicts, down to fcfs; breaks is beaten
    named = re.findall(r"<b>(\w)</b> ([\w-]+)<", section[0])
    assert named == [("A", "fcfs"), ("B", "mc-sf"), ("C", "breaks")]


# ---- what others wrote -------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"' onmouseover='alert(1)",
    "&amp; &lt; ]]> <!-- ",
    "\x00\x1b[31m\u2028\u202e\ufffe",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_files_stays_text(studied: Path, text: str) -> None:
    def hostile(record: Record) -> Record:
        instance = replace(record.instance, name=text, family=text)
        policy = f"{record.policy}{text}"
        error = record.error and text
        return replace(record, study=text, instance=instance, policy=policy, error=error)

    rewrite(studied, hostile)
    claim = dict.fromkeys(("claim", "source", "published", "found"), text)
    claims = [{**claim, "verdict": "refuted", "certificates": [f"certificates/{text[:9]}"]}]
    if "\0" in text:
        claims[0]["certificates"] = []
    verdicts = {"schema": "kvopt.verdicts/1", "study": text, "verdicts": claims}
    (studied / "verdicts.json").write_text(json.dumps(verdicts))
    (studied / "study.toml").write_text(text)
    page = page_of(studied)
    assert page.open == page.handlers == page.loads == []
    assert page.kinds == ["application/json", None]
    data = json.loads(page.inside["script"][0])
    assert {instance[0] for instance in data["instances"]} == {text}
    if text.isprintable():
        assert any(text in cell for row in page.rows for cell in row)


def test_error_of_a_scheduler_is_shown_as_text(studied: Path) -> None:
    cells = {cell for row in page_of(studied).rows for cell in row}
    assert f"RuntimeError: {BROKEN}" in cells
    assert "<b>broken" not in (studied / "report.html").read_text()


# ---- certificates that are gone or wrong -------------------------------------------


def test_missing_certificates_are_named(studied: Path) -> None:
    shutil.rmtree(studied / "certificates")
    page = page_of(studied)
    assert not [link for link in page.links if "certificates" in link]
    text = (studied / "report.html").read_text()
    assert "7 certificates of the folder missing" in text
    assert "Not drawn: " in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["policies"][1]["starts"].reverse(), "starts give|tokens held|before"),
        (lambda c: c["upper"]["starts"].pop(), "is not as it was written"),
        (lambda c: c["upper"].update(starts=None), "is not as it was written"),
        (lambda c: c["upper"].update(starts=[s + 0.5 for s in c["upper"]["starts"]]), "written"),
        (lambda c: c["policies"][0].update(lost=[[-1, 0, 1]]), "is not as it was written"),
        (lambda c: c["instance"].update(memory=10**6), "of another instance"),
        (lambda c: c["policies"].clear(), "is not in the certificate"),
        (lambda c: c.update(schema="other"), "schema"),
    ],
)
def test_certificates_that_do_not_fit_are_named_and_not_drawn(
    studied: Path, change: Callable[[dict[str, object]], object], said: str
) -> None:
    for path in (studied / "certificates").iterdir():
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
    page = page_of(studied)
    refused = [text for text in page.inside["p"] if text.startswith("Not drawn: ")]
    assert any(re.search(said, text) for text in refused)
    assert all("certificates/" in text for text in refused)


# ---- folders of all kinds ----------------------------------------------------------


def test_command_writes_page_and_table(studied: Path, run: Run, tmp_path: Path) -> None:
    code, out, err = run("report", studied)
    assert (code, out) == (0, "")
    assert f"{RECORDS} records" in err
    assert (studied / "report.html").is_file()
    assert (studied / "report.csv").is_file()
    code, _, _ = run("report", studied, "-o", tmp_path / "p.html", "--csv", tmp_path / "t.csv")
    assert code == 0
    assert (tmp_path / "t.csv").read_text() == (studied / "report.csv").read_text()
    assert (tmp_path / "p.html").is_file()
    assert not (tmp_path / "p.csv").exists()


def test_folder_without_a_study_is_refused(run: Run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        code, _, err = run("report", folder)
        assert code == 2
        assert "holds no study: records.jsonl is missing" in err
    assert not list(tmp_path.iterdir())


def test_study_without_records_says_so(run: Run, tmp_path: Path) -> None:
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
    assert not {"schedulers", "worst", "histograms"} & {*page.ids}


def test_page_says_what_bounds_cover(studied: Path) -> None:
    assert sum(COVERED in text for text in page_of(studied).inside["p"]) == 1


def test_damaged_lines_are_reported_and_do_not_count(studied: Path, run: Run) -> None:
    lines = (studied / FILE).read_bytes().splitlines(keepends=True)
    changed = lines[0].replace(b'"evictions": 0', b'"evictions": 1')
    (studied / FILE).write_bytes(b"".join([changed, b"\xff\n", *lines[1:], lines[1][:50]]))
    code, _, err = run("report", studied)
    assert code == 0
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
    code, _, err = run("report", studied)
    assert code == 2
    assert f"{FILE}: " in err.replace("\n", "")
    assert said in err
    assert not (studied / "report.html").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "kvopt.verdicts/2"},
        {"verdicts": {}},
        {"verdicts": [{"claim": "x"}]},
        {"extra": 1},
        {"verdict": "fine"},
        {"found": 3},
        {"certificates": ["../x"]},
        {"certificates": "x"},
    ],
)
def test_verdicts_that_are_not_as_described_are_refused(
    studied: Path, run: Run, change: dict[str, object]
) -> None:
    claim = dict.fromkeys(("claim", "source", "published", "found"), "x")
    row: dict[str, object] = {**claim, "verdict": "refuted", "certificates": []}
    content: dict[str, object] = {
        "schema": "kvopt.verdicts/1",
        "study": "x",
        "verdicts": [row],
    }
    (studied / "verdicts.json").write_text(json.dumps(content))
    assert run("report", studied)[0] == 0
    for key, value in change.items():
        (row if key in row else content)[key] = value
    (studied / "verdicts.json").write_text(json.dumps(content))
    code, _, err = run("report", studied)
    assert code == 2
    assert "verdicts.json: " in err.replace("\n", "")


def test_page_that_cannot_be_written_leaves_the_old_one(studied: Path, run: Run) -> None:
    write_report(studied)
    old = (studied / "report.html").read_bytes()
    (studied / FILE).write_text('{"half": ')
    blocked = studied / "report.csv"
    blocked.unlink()
    blocked.mkdir()
    code, _, err = run("report", studied)
    assert code == 2
    assert "cannot be written" in err
    assert (studied / "report.html").read_bytes() == old


def test_thousands_of_records_stay_light(studied: Path) -> None:
    records = [record for record in read_records(studied) if record.policy]
    lines = []
    for number in range(3_000):
        record = records[number % len(records)]
        place = replace(
            record.instance, hash=f"{record.instance.hash}-{number // len(records)}", seed=number
        )
        lines.append(json.dumps(replace(record, key=str(number), instance=place).to_json()))
    (studied / FILE).write_text("\n".join(lines))
    write_report(studied)
    assert (studied / "report.html").stat().st_size < 1_500_000
    assert len((studied / "report.csv").read_text().splitlines()) == 3_001


# ---- certificates verified anew ----------------------------------------------------


def test_certificates_are_verified_when_asked(studied: Path, run: Run) -> None:
    assert run("report", studied)[0] == 0
    text = (studied / "report.html").read_text()
    assert "not verified anew" in text
    code, _, err = run("report", studied, "--verify")
    assert code == 0
    assert "verified 7 of 7 certificates" in err
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
    page = Page((studied / "report.html").read_text())
    assert page.open == []
    assert "5 certificates verified" in (studied / "report.html").read_text()


def test_records_that_say_more_than_their_certificates_are_found(studied: Path, run: Run) -> None:
    def better(record: Record) -> Record:
        return replace(record, lower=record.upper) if record.policy == "fcfs" else record

    rewrite(studied, better)
    code, _, err = run("report", studied, "--verify")
    open_still = {r.certificate for r in read_records(studied) if not r.proved}
    assert code == (1 if open_still else 0)
    assert err.count("fcfs: lower is ") == len(open_still) > 0

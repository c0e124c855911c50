"""The instance library: submissions are checked, better ones entered, and the pages say so."""

from __future__ import annotations

import json
import lzma
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, DRIVER, MISSING, chromium
from commands import Run
from pages import Page

from kvopt import Instance, Request, Schedule, certify, write_instance
from kvopt.certificates import Certificate, write_certificate
from kvopt.errors import InvalidInput
from kvopt.experiments.library import table
from kvopt.experiments.library.page import write_pages
from kvopt.experiments.library.table import (
    CHALLENGE,
    TABLE,
    Library,
    clock_of,
    difficulty,
    merged,
)
from kvopt.incumbent.proofs import CheckedBound, VolumeProof
from kvopt.problem.clocks import Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.scopes import Scope

BASE = [Request(0, 1, o) for o in (1, 2, 3, 4)]
PLAIN = Instance(7, BASE, name="plain")
FLEET = Instance(7, [*BASE, Request(1, 2, 5)], name="fleet", workers=2)
TIMED = Instance(12, BASE, name="timed", notes={"batch_time": DEFAULT_MODEL})
PAUSING = Instance(10, [Request(0, 0, 10), Request(6, 5, 1)], name="pausing")  # 12, without 14
SECONDS = Seconds(batch_time(DEFAULT_MODEL))

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a library of which nothing is known yet."""
    home = tmp_path / "library"
    (home / CHALLENGE).mkdir(parents=True)
    (home / TABLE).write_text("{}")
    for instance in (PLAIN, PAUSING):
        write_instance(instance, home / f"{instance.name}.json")
    for instance in (FLEET, TIMED):
        write_instance(instance, home / CHALLENGE / f"{instance.name}.json")
    return home


def entries(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / TABLE).read_text())
    return found


Send = Callable[..., tuple[int, str, str]]


@pytest.fixture
def send(run: Run, folder: Path, tmp_path: Path) -> Send:
    """Return what writes a certificate, submits it and returns what the command says."""

    def sent(found: Certificate, *options: str, who: str = "Ada") -> tuple[int, str, str]:
        path = tmp_path / "c.json"
        write_certificate(found, path)
        return run("submit", path, "--who", who, "--library", folder, *options)

    return sent


def certified(instance: Instance) -> Certificate:
    """Certify what closes at once until it has; of the others take what comes at once."""
    limit = None if instance is PLAIN else 0.0
    return certify(instance, time_limit=limit, threads=1, clock=clock_of(instance))


def set_entry(folder: Path, name: str, **facts: Any) -> None:
    known = entries(folder)
    known[name] |= facts
    (folder / TABLE).write_text(json.dumps(known))


@pytest.mark.parametrize("instance", [PLAIN, FLEET, TIMED])
def test_what_is_better_is_entered(send: Send, folder: Path, instance: Instance) -> None:
    found = certified(instance)
    name = str(instance.name)
    code, out, _ = send(found, "--took", "7")
    assert (code, out.count("\n")) == (0, 2)
    entry = entries(folder)[name]
    assert (entry["objective"], entry["lower_bound"]) == (found.objective, found.lower_bound)
    assert (entry["bound_source"], entry["who"], entry["seconds"]) == ("checked", "Ada", 7)
    assert entry["schedule"]["who"] == "Ada"
    made = Library(folder).run_of(name)
    assert made.violations() == []
    assert made.objective == found.objective
    kept = lzma.decompress((folder / entry["certificate"]).read_bytes())
    assert json.loads(kept)["hash"] == instance.hash
    assert f"| {name} |" in (folder / "README.md").read_text()
    assert f'id="{name}"' in (folder / "library.html").read_text()


def test_each_side_is_entered_alone(send: Send, folder: Path) -> None:
    found = certified(PLAIN)
    assert send(found)[0] == 0
    (best,) = entries(folder).values()
    for worse, side, other in (
        ({"objective": 20, "starts": [0, 1, 3, 6], "schedule": None}, "schedule", "who"),
        ({"lower_bound": 11}, "who", "schedule"),
    ):
        set_entry(folder, "plain", **{**best, **worse})
        code, out, _ = send(found, who="Grace")
        assert (code, out.count("\n")) == (0, 1)
        entry = entries(folder)["plain"]
        assert (entry["objective"], entry["lower_bound"]) == (12, 12)
        assert "Grace" in str(entry[side])
        assert "Grace" not in str(entry[other])


def test_a_certificate_takes_the_place_of_a_solvers_word(send: Send, folder: Path) -> None:
    found = certified(PLAIN)
    assert send(found)[0] == 0
    set_entry(folder, "plain", bound_source="solver", who="kvopt", certificate=None)
    assert "has a certificate that was checked" in send(found)[1]
    assert entries(folder)["plain"]["bound_source"] == "checked"
    assert send(found)[0] == 2


def test_nothing_better_changes_nothing(send: Send, folder: Path) -> None:
    found = certified(PLAIN)
    assert send(found)[0] == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for again in (found, replace(found, upper=None), replace(found, lower=None)):
        code, out, err = send(again, who="Grace")
        assert (code, out) == (2, "")
        assert "c.json: is not better than the known sides of plain: upper" in err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda c: c["upper"].update(value=11), "c.json: upper: says 11, the starts give 12"),
        (lambda c: c["lower"].update(value=13), "c.json: lower: says 13, the proof gives 12"),
        (lambda c: c.update(schema="kvopt.certificate/9"), "c.json: certificate: must have the"),
        (lambda c: c.update(clock=SECONDS.batch_time.to_json()), "c.json: "),
        (lambda c: c["instance"].update(memory=8), "c.json: hash"),
    ],
)
def test_what_is_not_valid_is_refused(
    run: Run, folder: Path, tmp_path: Path, spoil: Callable[[Any], None], said: str
) -> None:
    path = tmp_path / "c.json"
    write_certificate(certified(PLAIN), path)
    content = json.loads(path.read_text())
    spoil(content)
    path.write_text(json.dumps(content))
    code, out, err = run("submit", path, "--who", "Ada", "--library", folder)
    assert (code, out) == (2, "")
    assert said in err
    assert entries(folder) == {}


def test_what_is_of_nothing_here_is_refused(send: Send, folder: Path) -> None:
    code, _, err = send(certified(Instance(8, BASE)))
    assert code == 2
    assert re.search(r"c\.json: hash: sha256:\w{64} is of no instance of the library", err)
    code, _, err = send(certify(TIMED, time_limit=0.0))
    assert code == 2
    assert "c.json: clock: is not that of timed in the library" in err
    assert entries(folder) == {}


@pytest.mark.parametrize("who", ["", "A|B", "<b>", "[a](b)", "line\nline", "x" * 61])
def test_names_that_a_table_cannot_hold_are_refused(send: Send, folder: Path, who: str) -> None:
    code, _, err = send(certified(PLAIN), who=who)
    assert (code, entries(folder)) == (2, {})
    assert "who: must be up to 60 letters" in err


def test_foreign_words_of_a_certificate_become_harmless(send: Send, folder: Path) -> None:
    text = "|<script>x</script>\n"
    said = {"created": "2026-99-99", "seconds": text, "threads": text, "versions": {"kvopt": text}}
    found = certified(PLAIN)
    assert send(replace(found, provenance={**said, "bounded_by": text}))[0] == 0
    assert not re.search(r"[|<>\n]", str(entries(folder)))
    assert "<script>x" not in (folder / "library.html").read_text()
    assert send(replace(certified(FLEET), provenance={"versions": 3}))[0] == 0


def test_of_a_wider_scope_the_bound_counts_and_no_pause(send: Send, folder: Path) -> None:
    paused = Schedule(PAUSING, segments=(((1, 6), (8, 11)), ((7, 7),)))
    bound = CheckedBound(11, "volume", VolumeProof())
    wide = Certificate(PAUSING, paused, bound, scope=Scope.PAUSES)
    assert wide.objective == 12
    code, _, err = send(wide)
    assert (code, entries(folder)) == (2, {})
    assert "is the first of pausing, and has to have both sides" in err
    assert send(Certificate(PAUSING, Schedule(PAUSING, (3, 6)), bound))[0] == 0
    set_entry(folder, "pausing", lower_bound=10, schedule=None)
    assert send(wide)[0] == 0
    entry = entries(folder)["pausing"]
    assert (entry["objective"], entry["lower_bound"], entry["schedule"]) == (14, 11, None)


def test_a_large_certificate_is_not_kept(
    send: Send, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = certified(PLAIN)
    assert send(found)[0] == 0
    kept = folder / entries(folder)["plain"]["certificate"]
    assert kept.exists()
    set_entry(folder, "plain", lower_bound=11)
    monkeypatch.setattr(table, "LARGEST_KEPT", 10)
    assert send(found)[0] == 0
    assert entries(folder)["plain"]["certificate"] is None
    assert not kept.exists(), "it would be the proof of another bound"


def test_a_folder_without_a_table_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write_certificate(certified(PLAIN), path)
    for content in (None, "[]", '{"plain": {"objective": 3}}'):
        if content is not None:
            (tmp_path / TABLE).write_text(content)
        code, out, err = run("submit", path, "--who", "Ada", "--library", tmp_path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{TABLE}: " in err


def entry_of(value: int | None, bound: int | None, source: str, kept: str | None) -> dict[str, Any]:
    sides = {"objective": value, "starts": [value], "lower_bound": bound, "bound_source": source}
    return {**sides, "bounded_by": "x", "certificate": kept, "seconds": 1.0}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ((9, 5, "solver", None), (8, 4, "checked", "c"), (8, 5, "solver", None)),
        ((9, 5, "solver", None), (9, 5, "checked", None), (9, 5, "checked", None)),
        ((9, 5, "checked", None), (9, 5, "solver", None), (9, 5, "checked", None)),
        ((9, 5, "checked", None), (9, 5, "checked", "c"), (9, 5, "checked", "c")),
        ((9, 5, "checked", "c"), (9, 6, "solver", None), (9, 6, "solver", None)),
        ((None, 5, "checked", "c"), (9, None, "checked", None), (9, 5, "checked", "c")),
        ((9, None, "checked", None), (None, 0, "checked", "c"), (9, 0, "checked", "c")),
    ],
)
def test_the_better_of_each_side_is_kept(old: Any, new: Any, wanted: Any) -> None:
    found = merged({**entry_of(*old), "run": 1}, entry_of(*new))
    assert found == {**entry_of(*wanted), "run": 1}


@pytest.mark.parametrize(
    ("bound", "seconds", "name"),
    [(9, 60.0, "easy"), (9, 60.1, "medium"), (9, 600.0, "medium"), (9, 601.0, "hard"),
     (9, None, "hard"), (8, 1.0, "open")],
)  # fmt: skip
def test_classes_go_by_the_time_of_the_proof(bound: int, seconds: float | None, name: str) -> None:
    assert difficulty({**entry_of(9, bound, "checked", None), "seconds": seconds}) == name


@pytest.fixture
def page(send: Send, folder: Path) -> Path:
    """Return the page of a library with an entry of each kind."""
    for instance in (PLAIN, FLEET, TIMED):
        assert send(certified(instance))[0] == 0
    known = entries(folder)
    set_entry(folder, "plain", lower_bound=11)
    set_entry(folder, "fleet", lower_bound=known["fleet"]["objective"])
    set_entry(folder, "timed", lower_bound=known["timed"]["objective"] - 1)
    write_pages(Library(folder))
    return folder / "library.html"


def test_the_page_is_whole_loads_nothing_and_leads_to_files(page: Path) -> None:
    found = Page(page.read_text())
    assert (found.open, found.loads, found.handlers, found.kinds) == ([], [], [], [None])
    for link in found.links:
        assert link == "data:," or link[1:] in found.ids or (page.parent / link).is_file()
    _, *rows = found.rows
    assert [row[:6] for row in rows] == [
        ["fleet", "challenge", "rounds", "easy", "reproduced", "5"],
        ["plain", "small", "rounds", "open", "-", "4"],
        ["timed", "challenge", "seconds", "open", "-", "4"],
    ]
    assert found.rows[2][8:11] == ["12", "11", "8.33%"]


def test_what_people_wrote_in_the_readme_stays(page: Path) -> None:
    readme = page.parent / "README.md"
    readme.write_text(f"before\n{readme.read_text()}after\n")
    write_pages(Library(page.parent))
    text = readme.read_text()
    assert (text[:7], text[-6:], text.count("| plain |")) == ("before\n", "after\n", 1)
    assert text.splitlines()[2].startswith("3 instances: 1 easy, 0 medium, 0 hard, 2 open.")


@pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason=MISSING)
def test_filters_hide_rows_and_pictures(page: Path, tmp_path: Path) -> None:
    shown = "return [...document.querySelectorAll('tbody tr, main div[id]')]"
    shown += ".filter(e => !e.hidden).map(e => e.id || e.cells[0].textContent)"
    choose = "var s = document.querySelectorAll('.filters select')[{}]; s.value = '{}';"
    choose += "s.dispatchEvent(new Event('change', {{bubbles: true}}));"
    with chromium(tmp_path / "profile") as browser:
        browser.open(page)
        assert browser.messages() == []
        browser.ask(choose.format(0, "challenge"))
        assert browser.ask(shown) == ["fleet", "timed"] * 2
        browser.ask(choose.format(1, "seconds"))
        assert browser.ask(shown) == ["timed"] * 2
        browser.ask(choose.format(0, "") + choose.format(1, ""))
        assert browser.ask(shown) == ["fleet", "plain", "timed"] * 2


def test_a_table_that_misses_a_file_is_refused(folder: Path, send: Send) -> None:
    assert send(certified(PLAIN))[0] == 0
    shutil.move(folder / "plain.json", folder / "plain.txt")
    with pytest.raises(InvalidInput, match="plain"):
        write_pages(Library(folder))

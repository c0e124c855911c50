"""A submission to the instance library is checked; what is better is entered, and pages say so."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import library
import library_pages
import pytest
import submit
from library import CHALLENGE, TABLE, Library, clock_of, difficulty, merged
from pages import Page

from kvopt import Instance, InvalidInput, Request, certify, write_certificate, write_instance

BASE = [Request(0, 1, o) for o in (1, 2, 3, 4)]
PLAIN = Instance(7, BASE, name="plain")
FLEET = Instance(7, [*BASE, Request(1, 2, 5)], name="fleet", workers=2)
TIMED = Instance(12, BASE, name="timed", notes={"batch_time": "llama-2-70b-2xa100"})

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a library of which nothing is known yet."""
    home = tmp_path / "library"
    (home / CHALLENGE).mkdir(parents=True)
    (home / TABLE).write_text("{}")
    write_instance(PLAIN, home / "plain.json")
    for instance in (FLEET, TIMED):
        write_instance(instance, home / CHALLENGE / f"{instance.name}.json")
    return home


def entries(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / TABLE).read_text())
    return found


def certified(instance: Instance, path: Path) -> Path:
    """Write a certificate of what closes at once; of the others of what comes at once."""
    limit = None if instance is PLAIN else 0.0
    found = certify(instance, time_limit=limit, threads=1, clock=clock_of(instance))
    write_certificate(found, path)
    return path


def sent(path: Path, folder: Path, who: str = "Ada", *options: str) -> int:
    return submit.main([str(path), "--who", who, "--library", str(folder), *options])


@pytest.mark.parametrize("instance", [PLAIN, FLEET, TIMED])
def test_what_is_better_is_entered_once(
    folder: Path, tmp_path: Path, instance: Instance, capsys: pytest.CaptureFixture[str]
) -> None:
    path, name = certified(instance, tmp_path / "c.json"), str(instance.name)
    assert sent(path, folder, "Ada", "--took", "7") == 0
    assert capsys.readouterr().out.count(f"{name}: ") == 2
    entry, content = entries(folder)[name], json.loads(path.read_text())
    assert entry["objective"] == content["upper"]["value"]
    assert entry["lower_bound"] == content["lower"]["value"]
    assert (entry["bound_source"], entry["who"], entry["seconds"]) == ("checked", "Ada", 7)
    best = Library(folder).schedule(name)
    assert best is not None
    assert (best.violations(), best.objective) == ([], entry["objective"])
    kept = lzma.decompress((folder / entry["certificate"]).read_bytes())
    assert json.loads(kept)["hash"] == instance.hash
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sent(path, folder, "Grace") == 2
    assert f"c.json: is not better than the known sides of {name}" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    readme = (folder / "README.md").read_text()
    assert readme.startswith("<!-- table -->\n1 instance: ")
    assert f"| {name} |" in readme
    found = Page((folder / "library.html").read_text())
    assert name in found.ids
    assert [row[0] for row in found.rows if row[0] == name] == [name]
    shipped = Path(library.__file__).parent  # the page that checks certificates is beside it
    assert all(
        link[1:] in found.ids or (folder / link).is_file() or (shipped / link).is_file()
        for link in (link.split("?")[0] for link in found.links)
    )


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda c: c["upper"].update(value=11), "c.json: says 11, the starts give 12"),
        (lambda c: c["lower"].update(value=13), "c.json: says 13, the proof gives 12"),
        (lambda c: c.update(schema="kvopt.certificate/9"), "c.json: "),
        (lambda c: c["instance"].update(memory=8), "c.json: "),
    ],
)
def test_what_is_not_valid_is_refused(
    folder: Path,
    tmp_path: Path,
    spoil: Callable[[Any], None],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = certified(PLAIN, tmp_path / "c.json")
    content = json.loads(path.read_text())
    spoil(content)
    path.write_text(json.dumps(content))
    assert sent(path, folder) == 2
    assert said.split(": ")[-1] in capsys.readouterr().err
    assert entries(folder) == {}


def test_what_is_of_nothing_here_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sent(certified(Instance(8, BASE), tmp_path / "c.json"), folder) == 2
    assert "hash: sha256:" in capsys.readouterr().err
    write_certificate(certify(TIMED, time_limit=0.0), tmp_path / "c.json")
    assert sent(tmp_path / "c.json", folder) == 2
    assert "clock: is not that of timed in the library" in capsys.readouterr().err
    assert sent(certified(PLAIN, tmp_path / "c.json"), folder, "<b>") == 2
    assert "who: must be up to 60 letters" in capsys.readouterr().err
    assert sent(tmp_path / "c.json", tmp_path) == 2
    assert f"{TABLE}: cannot be read" in capsys.readouterr().err
    assert entries(folder) == {}


def test_foreign_words_become_harmless(folder: Path, tmp_path: Path) -> None:
    path, text = certified(PLAIN, tmp_path / "c.json"), "|<script>x</script>\n"
    content = json.loads(path.read_text())
    made = {"created": text, "seconds": text, "versions": {"kvopt": text}, "bounded_by": text}
    path.write_text(json.dumps({**content, "provenance": made}))
    assert sent(path, folder) == 0
    assert "<script>x" not in (folder / TABLE).read_text() + (folder / "library.html").read_text()


def test_a_large_certificate_is_not_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "LARGEST_KEPT", 10)
    assert sent(certified(PLAIN, tmp_path / "c.json"), folder) == 0
    assert entries(folder)["plain"]["certificate"] is None


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
        ((9, None, "checked", None), (None, 0, "checked", "c"), (9, 0, "checked", "c")),
    ],
)
def test_the_better_of_each_side_is_kept(old: Any, new: Any, wanted: Any) -> None:
    found = merged({**entry_of(*old), "run": 1}, entry_of(*new))
    assert found == {**entry_of(*wanted), "run": 1}


def test_classes_go_by_the_time_of_the_proof() -> None:
    entry = entry_of(9, 9, "checked", None)
    for seconds, name in ((60.0, "easy"), (600.0, "medium"), (601.0, "hard"), (None, "hard")):
        assert difficulty({**entry, "seconds": seconds}) == name
    assert difficulty(entry_of(9, 8, "checked", None)) == "open"


def test_a_table_that_misses_a_file_is_refused(folder: Path, tmp_path: Path) -> None:
    assert sent(certified(PLAIN, tmp_path / "c.json"), folder) == 0
    (folder / "plain.json").rename(folder / "plain.txt")
    with pytest.raises(InvalidInput, match="no file of the instance plain"):
        library_pages.write_pages(Library(folder))

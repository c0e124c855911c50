"""Sections of a report: those of others beside those that are built in, in a fixed order."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
from commands import Run

from kvopt.errors import InvalidInput
from kvopt.experiments.report import SECTIONS, Section, pieces, register, write_report
from kvopt.experiments.studies.records import FILE

pytestmark = pytest.mark.usefixtures("own_things", "sketched")

OWN = """
from kvopt.experiments.report import Section, register

@register("{name}")
def mine(context):
    return {made}
"""


@pytest.fixture
def studied(studied: Path) -> Path:
    """Return the study with one instance, two runs of it and a failure: few pictures."""
    records = studied / FILE
    records.write_text("".join(records.read_text().splitlines(keepends=True)[-3:]))
    return studied


def places(folder: Path) -> list[str]:
    text = write_report(folder).page.read_text()
    found = re.findall(r'<section id="([^"]*)"', text)
    assert re.findall(r'<li><a href="#([^"]*)"', text) == found
    return found


def add(name: str, after: str = "worst") -> None:
    register(name)(lambda context: Section(name, pieces.paragraphs([context.study.name]), after))


def test_built_in_sections_stand_in_the_order_of_their_registry(studied: Path) -> None:
    found = places(studied)
    assert found == [name for name in SECTIONS.built_in if name in found]
    assert found[0] == "overview"
    assert found[-2:] == ["failures", "provenance"]


def test_own_sections_stand_behind_what_they_name_in_order_of_names(studied: Path) -> None:
    before = places(studied)
    for name, after in (("z", "schedulers"), ("last", "provenance"), ("b", "worst")):
        add(name, after)
    add("a")
    add("hidden-place", "latency")  # a section that this study has not
    wanted = [*before, "last"]
    wanted[wanted.index("worst") + 1 : 0] = ["a", "b"]
    wanted.insert(wanted.index("schedulers") + 1, "z")
    wanted.insert(wanted.index("schedulers"), "hidden-place")
    assert places(studied) == wanted


def test_text_of_an_own_section_is_escaped(studied: Path) -> None:
    register("mine")(lambda _: Section("<i>mine</i>", "<b>text</b>"))
    text = write_report(studied).page.read_text()
    assert "&lt;b&gt;text&lt;/b&gt;" in text
    assert "<i>mine" not in text
    assert "<b>text" not in text


def test_a_section_without_data_is_left_out(studied: Path) -> None:
    register("nothing")(lambda _: None)
    assert "nothing" not in places(studied)


def test_a_file_of_ones_own_is_loaded(studied: Path, run: Run, tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    module.write_text(OWN.format(name="mine", made='Section("Mine", "words of mine")'))
    code, _, err = run("report", studied, "--module", module)
    assert code == 0, err
    assert "words of mine" in (studied / "report.html").read_text()


@pytest.mark.parametrize(
    ("name", "made", "said"),
    [
        (
            "mine",
            "1 / 0",
            "mine.py: line 6: section mine failed: ZeroDivisionError: division by zero",
        ),
        ("mine", '"text"', "section mine returned 'text', and must return kvopt."),
        ("mine", 'Section("M", "", after="end")', "section mine: after: must be one of overview, "),
        ("content", "None", "section content: is taken by the page: write another name"),
        (
            "worst",
            "None",
            "worst: is the name of kvopt.experiments.report.sections.worst: write another",
        ),
    ],
)
def test_mistakes_are_one_line_and_leave_no_page(
    studied: Path, run: Run, tmp_path: Path, name: str, made: str, said: str
) -> None:
    module = tmp_path / "mine.py"
    module.write_text(OWN.format(name=name, made=made))
    code, out, err = run("report", studied, "--module", module)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not (studied / "report.html").exists()


def test_packages_register_with_an_entry_point(
    studied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "kvopt_tests_section.py"
    package.write_text(OWN.format(name="installed", made='Section("Installed", "")'))
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = metadata.EntryPoint("installed", "kvopt_tests_section", "kvopt.sections")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: [entry])
    monkeypatch.setattr(SECTIONS, "_has_entries", False)
    found = places(studied)
    assert found[found.index("worst") + 1] == "installed"


def test_a_name_is_needed() -> None:
    with pytest.raises(InvalidInput, match=r'has no name: write @register\("\.\.\."\) above it'):
        register(print)  # type: ignore[arg-type]

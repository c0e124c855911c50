"""The pages of docs/ tell the truth: what they run runs, and nothing public is left out.

``python -m pytest tests/test_docs.py --update-docs`` writes into the console blocks what the
commands print now, wherever that is not what the page says.
"""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

import kvopt
from kvopt.bounds.relaxations import RELAXATIONS
from kvopt.cli import main
from kvopt.cli.app import MESSAGES, app
from kvopt.verify.certified_problem import hash_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts
}
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PYTHON = sorted(name for name, text in PAGES.items() if ">>>" in text)
CONSOLE = sorted(name for name, text in PAGES.items() if "```console" in text)

pytestmark = pytest.mark.usefixtures("own_things")  # a page registers its own

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_BLOCK = re.compile(
    r"^(?:<!-- numbers within (\d+)% -->\n)?```console\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
_PROGRESS = re.compile(
    r"^.*(  latency \S+( s)?  bound \S+( s)?  gap \S+|kvopt: compiling in .*)\n", re.MULTILINE
)
_SECONDS = re.compile(r"(?<![\d.])\d+\.\d\d(?![\d.%])")
_JSON_SECONDS = re.compile(r'(?<=seconds": )[\d.e-]+')
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page in a folder of its own, beside the files that a reader has."""
    monkeypatch.chdir(tmp_path)
    for folder in ("instances", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shutil.copytree(ROOT / "samples", tmp_path / "samples")  # commands write beside a log
    # A process ends at once when a solver was left behind: here it would take all tests with it,
    # and say that they passed.
    monkeypatch.setattr(os, "_exit", sys.exit)


def write_files(page: str) -> None:
    """Write the files that a page shows, each a block with the name as its caption."""
    for name, content in _FILE.findall(PAGES[page]):
        Path(name).write_text(content, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", PYTHON)
def test_python_examples_are_true(page: str) -> None:
    examples = doctest.DocTestParser().get_doctest(PAGES[page], {}, page, page, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    assert runner.run(examples, out=said.append).failed == 0, "".join(said)


class Example(NamedTuple):
    """A command, what the page says it prints, where that stands, and by how much numbers vary."""

    command: str
    wanted: str
    begin: int
    end: int
    tolerance: float


@pytest.mark.slow
@pytest.mark.parametrize("page", CONSOLE)
def test_console_examples_are_true(
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    status, text, news = 0, PAGES[page], []
    write_files(page)
    for example in console_examples(text):
        if example.command == "echo $?":
            found = f"{status}\n"
        else:
            monkeypatch.setattr(sys, "argv", shlex.split(example.command))
            # A process ends at once when a solver was left behind; here another page left it.
            monkeypatch.setattr(os, "_exit", sys.exit)
            status = exit_status()
            said = capsys.readouterr()
            found = said.out + _PROGRESS.sub("", said.err)
        if not same_output(example.wanted, found, example.tolerance):
            news.append((example, found))
    if news and request.config.getoption("--update-docs"):
        (ROOT / "docs" / page).write_text(updated(text, news), encoding="utf-8")
        return
    for example, found in news:
        pytest.fail(f"{example.command}\nthe page says\n{example.wanted}\nand it is\n{found}")


def console_examples(text: str) -> Iterator[Example]:
    """Yield each command of a page with the output that is printed below it."""
    for block in _BLOCK.finditer(text):
        commands = list(_COMMAND.finditer(block[2]))
        assert commands[0].start() == 0, "a block begins with a command"
        for command, following in zip_longest(commands, commands[1:]):
            begin, end = command.end(), following.start() if following else len(block[2])
            start = block.start(2)
            place = start + begin, start + end
            yield Example(command[1], block[2][begin:end], *place, int(block[1] or 0) / 100)


def same_output(wanted: str, found: str, tolerance: float) -> bool:
    """Tell if a command printed what a page says, numbers within a tolerance."""
    wanted, found = timeless(wanted), timeless(found)
    if doctest.OutputChecker().check_output(wanted, found, FLAGS):
        return True
    pieces = re.split(rf"(\.\.\.|{_NUMBER.pattern})", " ".join(wanted.split()))
    pattern = "".join(
        ".*" if piece == "..." else f"({_NUMBER.pattern})" if index % 2 else re.escape(piece)
        for index, piece in enumerate(pieces)
    )
    match = re.fullmatch(pattern, " ".join(found.split()))
    numbers = [piece for piece in pieces[1::2] if piece != "..."]
    return match is not None and all(
        abs(a - b) <= tolerance * max(a, b)
        for a, b in zip(map(as_float, numbers), map(as_float, match.groups()), strict=True)
    )


def as_float(number: str) -> float:
    return float(number.replace(",", ""))


@pytest.mark.parametrize(
    ("found", "same"),
    [
        ("gap 10.2%, 0.99 s, n = 56", True),
        ("gap  10.2%,\n 7.77 s, n = 56", True),
        ("gap 11.9%, 0.99 s, n = 56", False),
        ("gap 10%, 0.99 s, n = 56, m = 5", False),
        ("gap 10%, 0.99 s, k = 56", False),
    ],
)
def test_numbers_of_a_page_may_vary_within_what_it_says(found: str, same: bool) -> None:
    page = "<!-- numbers within 5% -->\n```console\n$ kvopt x\ngap 10%, 1.11 s, n = 56\n```\n"
    (example,) = console_examples(page)
    assert same_output(example.wanted, found, example.tolerance) is same
    assert page[example.begin : example.end] == example.wanted
    (exact,) = console_examples(page.partition("\n")[2])
    assert exact.tolerance == 0


def test_a_page_may_leave_out_lines_among_numbers() -> None:
    wanted = "gap 10%\n...\nVALID 5 times\n"
    assert same_output(wanted, "gap 10.2%\nn = 56\nVALID 5.1 times\n", 0.05)
    assert not same_output(wanted, "gap 10.2%\nn = 56\nVALID 6 times\n", 0.05)
    assert not same_output(wanted, "gap 10.2%\nn = 56\nINVALID\n", 0.05)


def updated(text: str, news: list[tuple[Example, str]]) -> str:
    """Return a page with what commands print now."""
    for example, found in reversed(news):
        text = text[: example.begin] + wrapped(found) + text[example.end :]
    return text


def test_what_commands_print_now_is_written_into_a_page() -> None:
    page = "# A\n```console\n$ one\nold\n$ two\n```\nB\n```console\n$ three\nc\n```\n"
    one, two, three = console_examples(page)
    prose, table = f"  {'word ' * 25}end", f"n  {'a  ' * 40}end"
    assert updated(page, [(one, f"{table}\n"), (two, "b\n"), (three, f"{prose}\nd\n")]) == (
        f"# A\n```console\n$ one\n{table}\n$ two\nb\n```\nB\n"
        f"```console\n$ three\n  {'word ' * 18}word\n    {'word ' * 6}end\nd\n```\n"
    )


def wrapped(output: str) -> str:
    """Wrap prose and JSON as a terminal does; tables stay whole."""
    return "".join(
        f"{textwrap.fill(line, 98, subsequent_indent=indent, break_on_hyphens=False)}\n"
        if len(line) > 98 and "  " not in line.strip()
        else f"{line}\n"
        for line in output.splitlines()
        for indent in (" " * (len(line) - len(line.lstrip()) + 2),)
    )


def exit_status() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def timeless(text: str) -> str:
    """Return the text without what differs from run to run: seconds in tables and in JSON."""
    return _JSON_SECONDS.sub("0.00", _SECONDS.sub("0.00", text))


def test_every_public_name_is_described() -> None:
    described = re.findall(r"^\.\. (?:auto|py:)\w+:: kvopt\.(\w+)$", PAGES["api.md"], re.MULTILINE)
    assert sorted(described) == sorted(kvopt.__all__)


def test_every_command_has_a_section() -> None:
    page = PAGES["command-line.md"]
    group: Any = get_command(app)
    machines = group.commands.pop("hardware").commands
    nested = [f"hardware {name}" for name in machines]
    for name in (*group.commands, *nested):
        assert f"\n## `kvopt {name}`\n" in page, f"kvopt {name} has no section"
    shared = page.partition("\n## ")[0]
    for option in options_of(group, MESSAGES):
        assert f"`{option}" in shared, option


def options_of(command: Any, panel: str | None = None) -> Iterator[str]:
    """Yield the options of a panel of the help; those that all commands share have their own."""
    for parameter in command.params:
        if getattr(parameter, "rich_help_panel", None) != panel:
            continue
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("--"):
                yield option


def test_statements_on_configurations_are_named_by_the_code_that_rests_on_them() -> None:
    text = "".join(PAGES[f"theory/{page}.md"] for page in ("configurations", "ascent"))
    stated = re.findall(r"^\*\*((?:Claim|Lemma|Theorem) 3\.\d+)\.\*\*", text, re.MULTILINE)
    folder = ROOT / "kvopt" / "bounds"
    code = "".join(path.read_text("utf-8") for path in sorted(folder.rglob("*.py")))
    assert len(stated) == 15
    assert set(re.findall(r"\b(?:Claim|Lemma|Theorem) 3\.\d+\b", code)) == set(stated)


@pytest.mark.parametrize("place", [0, 1])
def test_certificates_on_pages_are_valid(place: int) -> None:
    texts = re.findall(r"^```json\n(.*?)^```$", PAGES["certificates.md"], re.MULTILINE | re.DOTALL)
    assert len(texts) == 2
    text = texts[place]
    content = json.loads(text)
    content["hash"] = hash_of(content["instance"])
    Path("shown.cert.json").write_text(json.dumps(content), encoding="utf-8")
    verdict = kvopt.verify("shown.cert.json")
    assert verdict.valid, verdict.lines


def test_statements_are_numbered_by_chapter() -> None:
    """A number is a statement's name: each chapter counts from 1, and no reference is void."""
    theory = {name: text for name, text in PAGES.items() if name.startswith("theory/")}
    kinds = r"(?:Definition|Lemma|Claim|Theorem)"
    stated = re.findall(rf"^\*\*({kinds}) (\d+)\.(\d+)\.\*\*", "\n".join(theory.values()), re.M)
    chapters: dict[str, list[int]] = {}
    for _, chapter, number in stated:
        chapters.setdefault(chapter, []).append(int(number))
    for chapter, numbers in chapters.items():
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), chapter
    names = {f"{kind} {chapter}.{number}" for kind, chapter, number in stated}
    code = "".join(path.read_text("utf-8") for path in (ROOT / "kvopt").rglob("*.py"))
    named = re.findall(rf"\b{kinds} \d+\.\d+\b(?= of docs/theory| there)", code)
    named += re.findall(rf"\b{kinds} \d+\.\d+\b", "".join(theory.values()))
    assert set(named) <= names
    for name, text in theory.items():
        assert not re.search(rf"^\*\*{kinds}\.\*\*", text, re.M), f"{name}: no number"


@pytest.mark.slow
def test_the_table_of_strength_has_the_bounds_of_today() -> None:
    """Those that no limit of time can change; ``benchmarks/strength.py --write`` renews it."""
    head, *rows = re.findall(r"^\| (.*) \|$", PAGES["theory/strength.md"], re.MULTILINE)
    columns = head.split(" | ")
    assert len(rows) == 10
    for row in rows:
        cells = dict(zip(columns, row.split(" | "), strict=True))
        instance = kvopt.read_instance(ROOT / "instances" / f"{cells['instance']}.json")
        for method in ("lp", "volume"):
            value = kvopt.bound(instance, method).value
            assert value is not None
            assert f"{value / int(cells['optimum'].replace(',', '')):.3f}" == cells[method]


def test_every_relaxation_has_a_reason_in_the_theory() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGES["theory/bounds.md"], re.MULTILINE)
    assert sorted(rows) == sorted(RELAXATIONS)


def test_every_column_of_a_table_is_explained() -> None:
    """Headings of the tables that commands print on pages; ``s`` at the end is for seconds."""
    page = re.sub(r"```.*?```", "", PAGES["reading.md"], flags=re.DOTALL)
    explained = {name.removesuffix(" s") for name in re.findall(r"`([^`]+)`", page)}
    begins = ("instance", "policy", "method", "machines", "from round")
    seen = 0
    for name in CONSOLE:
        for line in "".join(each.wanted for each in console_examples(PAGES[name])).splitlines():
            cells = re.split(r"  +", line.strip())
            if len(cells) < 4 or cells[0] not in begins:
                continue
            columns = {cell.removesuffix(" s") for cell in cells[1:] if " + " not in cell}
            assert columns <= explained, (name, columns - explained)
            seen += 1
    assert seen > 10


def test_messages_of_the_troubleshooting_page_are_printed() -> None:
    """Every message of the page is in the code, where strings may go over several lines."""
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "kvopt").rglob("*.py")))
    code = re.sub(r"\"\s*f?\"", "", code)
    for message in re.findall(r"^\| `([^`]+)` \|", PAGES["troubleshooting.md"], re.MULTILINE):
        assert message in code, message


def test_files_on_which_claims_depend_exist() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kvopt").rglob("*.py")}
    section = CONTRIBUTING.partition("\n## Where a false claim could come from\n")[2]
    for name in re.findall(r"`([a-z_/]+(?:\.py|/))`", section):
        assert any(f"/{name}" in f"/{file}" for file in files) or (ROOT / name).exists(), name


def test_every_page_is_in_the_contents() -> None:
    entries = set(PAGES["index.md"].split())
    entries |= {f"theory/{entry}" for entry in PAGES["theory/index.md"].split()}
    assert {name.removesuffix(".md") for name in PAGES} - {"index"} <= entries


def test_words_of_the_glossary_stand_in_order_and_lead_to_a_page() -> None:
    _, *sections = PAGES["glossary.md"].partition("\n## Symbols\n")[0].split("\n## ")
    for section in sections:
        rows = re.findall(r"^\| (?!word \|)(.+?) \| .+ \|$", section, re.MULTILINE)
        links = [re.fullmatch(r"\[(.+)\]\([\w/-]+\.md(?:#[\w-]+)?\)", row) for row in rows]
        words = [re.sub(r"[^a-z0-9 ]", "", link[1].lower()) for link in links if link]
        assert len(words) == len(rows), section.splitlines()[0]
        assert words == sorted(set(words)), section.splitlines()[0]


WORDS = 45_000
"""Of all pages, README and CONTRIBUTING, code included; one page has 3,500 at most."""
PRIVATE = r"\b(?:scenes?|crowds?|habits?|stretch(?:es)?|heirs?|quarr(?:y|ies))\b"
"""Words that the code used for nodes, requests, rules and expansions; readers know none of them."""


def test_the_manual_is_short() -> None:
    words = {name: len(text.split()) for name, text in PAGES.items()}
    assert sum(words.values()) + len(f"{README} {CONTRIBUTING}".split()) <= WORDS
    assert max(words.values()) <= 3_500


def test_tables_are_whole() -> None:
    """A blank line ends a table: rows after it would be shown as text."""
    for name, text in PAGES.items():
        lines = text.splitlines()
        for before, row, after in zip(lines, lines[1:], lines[2:], strict=False):
            begins = row.startswith("|") and not before.startswith("|")
            assert not begins or after.startswith("|-"), f"{name}: {row}"


def test_pages_use_the_words_of_the_field() -> None:
    for name, text in PAGES.items():
        assert not re.findall(PRIVATE, text, re.IGNORECASE), name


def test_docstrings_begin_in_the_words_of_the_field() -> None:
    for path in sorted((ROOT / "kvopt").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                assert not re.search(PRIVATE, first, re.IGNORECASE), f"{path}: {first}"


README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks_of_readme(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_readme_is_short_and_begins_with_the_two_commands() -> None:
    assert len(README.splitlines()) <= 110
    first, *_ = blocks_of_readme("sh")
    assert re.findall(r"^make \w+", first, re.MULTILINE) == ["make demo", "make test"]


@pytest.mark.slow
def test_the_python_of_the_readme_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks_of_readme("python")
    exec(block, {})
    assert f"  # {capsys.readouterr().out}" in block


@pytest.mark.slow
def test_the_commands_of_the_readme_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, block = blocks_of_readme("sh")
    for command in block.replace("-t 10", "-t 2").splitlines():  # it holds with less time, too
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        assert exit_status() == 0, command
    said = capsys.readouterr().out
    assert re.search(r"'fcfs' is at most \S+ and at least 2\.[5-9]\d* times the optimum", said)
    assert re.search(r"'svf' is at most 1\.[1-5]\d* and at least", said)


def test_the_readme_shows_the_headroom_of_its_page() -> None:
    _, command, _ = blocks_of_readme("sh")
    page = " ".join(PAGES["headroom.md"].split())
    assert f"$ {command.strip()} " in page
    lines = [line for line in "".join(blocks_of_readme("text")).splitlines() if "..." in line]
    assert lines
    for line in lines:
        assert line.removesuffix("...").strip() in page


def test_the_readme_links_to_what_is_there() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), target


def test_citations_name_this_version_and_the_papers_of_the_readme() -> None:
    plain, bibtex = ((ROOT / f"CITATION.{kind}").read_text("utf-8") for kind in ("cff", "bib"))
    assert f"version: {kvopt.__version__}\n" in plain
    assert f"version = {{{kvopt.__version__}}}" in bibtex
    papers = set(re.findall(r"arxiv\.org/abs/(\S+?)\)", README))
    assert papers == {*re.findall(r"arXiv:(\S+?)\"", plain)}
    assert papers == {*re.findall(r"eprint = \{(\S+?)\}", bibtex)}
    for name in re.findall(r"family-names: (\w+)", plain):
        assert f"{name}, " in bibtex


def test_no_address_of_the_repository_is_a_placeholder() -> None:
    texts = [README, *PAGES.values(), CONTRIBUTING]
    for text in texts:
        assert not re.search(r"git clone|<repository|your-org|example\.org|OWNER/", text)

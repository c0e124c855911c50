"""The pages of docs/ tell the truth: what they run runs, and nothing public is left out."""

from __future__ import annotations

import doctest
import os
import pkgutil
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import kvopt
from kvopt.cli import main
from kvopt.cli.app import app
from kvopt.cli.help import MESSAGES

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
PYTHON = sorted(name for name, text in PAGES.items() if ">>>" in text)
CONSOLE = sorted(name for name, text in PAGES.items() if "```console" in text)

pytestmark = pytest.mark.usefixtures("own_things")  # a page registers its own

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(
    r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
_PROGRESS = re.compile(
    r"^.*(  latency \S+  bound \S+  gap \S+|  compiling, .*|: compiling took .*)\n", re.MULTILINE
)
_SECONDS = re.compile(r"(?<![\d.])\d+\.\d\d(?![\d.%])")


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page in a folder of its own, beside the files that a reader has."""
    monkeypatch.chdir(tmp_path)
    for folder in ("instances", "models", "samples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
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


@pytest.mark.slow
@pytest.mark.parametrize("page", CONSOLE)
def test_console_examples_are_true(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = 0
    write_files(page)
    for command, wanted in console_examples(PAGES[page]):
        if command == "echo $?":
            found = f"{status}\n"
        else:
            monkeypatch.setattr(sys, "argv", shlex.split(command))
            # A process ends at once when a solver was left behind; here another page left it.
            monkeypatch.setattr(os, "_exit", sys.exit)
            status = exit_status()
            said = capsys.readouterr()
            found = said.out + _PROGRESS.sub("", said.err)
        same = doctest.OutputChecker().check_output(timeless(wanted), timeless(found), FLAGS)
        assert same, f"{command}\nthe page says\n{wanted}\nand it is\n{found}"


def console_examples(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a page with the output that is printed below it."""
    for block in _BLOCK.findall(text):
        pieces = _COMMAND.split(block)
        assert not pieces[0], "a block begins with a command"
        yield from zip(pieces[1::2], pieces[2::2], strict=True)


def exit_status() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def timeless(text: str) -> str:
    """Return the text without what differs from run to run: the seconds in tables."""
    return _SECONDS.sub("0.00", text)


def test_every_public_name_is_described() -> None:
    described = re.findall(r"^\.\. (?:auto|py:)\w+:: kvopt\.(\w+)$", PAGES["api.md"], re.MULTILINE)
    assert sorted(described) == sorted(kvopt.__all__)


def test_every_command_and_option_is_described() -> None:
    page = PAGES["command-line.md"]
    group: Any = get_command(app)
    for name, command in group.commands.items():
        _, found, rest = page.partition(f"\n## `kvopt {name}`\n")
        assert found, f"kvopt {name} has no section"
        section = rest.partition("\n## ")[0]
        for option in options_of(command):
            assert f"`{option}`" in section, f"kvopt {name} {option}"
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


def test_claims_and_the_functions_that_rest_on_them_name_each_other() -> None:
    rows = re.findall(
        r"^\| ((?:Claim|Lemma) \d+) \|[^|]*\|([^|]*)\|$", PAGES["configurations.md"], re.M
    )
    proved = re.findall(r"^\*\*((?:Claim|Lemma) \d+)\.\*\*", PAGES["configurations.md"], re.M)
    assert sorted(claim for claim, _ in rows) == sorted(proved)
    for claim, users in rows:
        names = re.findall(r"`(kvopt[\w.]+)`", users)
        assert names or users.strip() == "a further fact", claim
        for name in names:
            described = " ".join((pkgutil.resolve_name(name).__doc__ or "").split())
            assert re.search(rf"\b{claim}\b", described), f"{name} does not name {claim}"
            assert "docs/configurations.md" in described, name


def test_every_page_is_in_the_contents() -> None:
    entries = set(PAGES["index.md"].split())
    assert {name.removesuffix(".md") for name in PAGES} - {"index"} <= entries

"""Help as it is read: transcripts of five commands, and examples of all that run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import Run

import kvopt
from kvopt.cli.app import EXAMPLES as SCRIPT
from kvopt.cli.app import HARDWARE, PANELS, app, examples_of
from kvopt.cli.common import NAMES, completing, names_of

GROUP: Any = typer.main.get_command(app)
COMMANDS = sorted(
    [*" ".join(PANELS.values()).split(), *(f"hardware {name}" for name in HARDWARE.split())]
)
EXAMPLES = {command: examples_of(command) for command in COMMANDS}
SAMPLES = Path(kvopt.__file__).parents[1] / "samples"

GOLDEN = Path(__file__).parent / "golden"
TRANSCRIPTS = {
    "solve": ["solve --help"],
    "bound": ["bound --help"],
    "certify": ["certify --help"],
    "run": ["run --help"],
    "study": ["study --help", "study smoke --describe"],
}
"""Commands of each file in ``golden``; ``pytest --update-golden`` writes them anew."""

LISTED = {
    "plot": ["policies"],
    "generate": ["families"],
    "import": ["traces"],
    "export": ["formulations", "exports"],
    "hardware capacity": ["models", "gpus"],
    "hardware show": ["batch_times"],
}
"""Other commands with a choice, and of what."""


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_commands_print_what_they_did(
    run: Run, name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    transcript = ""
    for command in TRANSCRIPTS[name]:
        code, out, err = run(*command.split())
        assert (code, err) == (0, "")
        lines = [line.rstrip() for line in out.splitlines()]
        transcript += "\n".join([f"$ kvopt {command}", *lines, "", ""])
    file = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        file.write_text(transcript, encoding="utf-8")
    assert transcript == file.read_text(encoding="utf-8")


def test_help_of_every_command_is_fit_to_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for command in ["", "hardware", *COMMANDS]:
        code, out, err = run(*command.split(), "--help")
        assert (code, err) == (0, "")
        text = " ".join(out.replace("│", " ").split())
        assert not re.search(
            r"<(bool|str|int|float|path|list\[.*?\]|Path)>|x>=|``|\[/?bold\]", text
        )
        assert not re.search(r"\{[a-z_]+\}", text), "names are filled in"
        names = [name for kind in LISTED.get(command, ()) for name in names_of(kind)]
        assert [name for name in names if name not in text] == []


def test_every_command_has_examples_of_itself() -> None:
    machines = GROUP.commands["hardware"].commands
    names = {*GROUP.commands, *(f"hardware {name}" for name in machines)} - {"hardware"}
    assert names == {*EXAMPLES}
    every = sorted(line for lines in EXAMPLES.values() for line in lines)
    assert every == sorted(SCRIPT.split("\n")[1:-1]), "each is of one command"
    for command, lines in EXAMPLES.items():
        assert lines, command
        for line in lines:
            assert len(line) <= 76, "wider examples would be broken"
            assert f"kvopt {command} " in f"{line} "


def test_examples_are_understood() -> None:
    for part in SCRIPT.strip().replace(" | ", "\n").split("\n"):
        _, name, *arguments = shlex.split(part)
        known = GROUP.commands[name]
        if hasattr(known, "commands"):
            known, *arguments = known.commands[arguments[0]], *arguments[1:]
        known.make_context(name, arguments)


@pytest.mark.thorough
def test_examples_run_in_the_order_of_their_list(tmp_path: Path) -> None:
    # One shell for all of them: each process takes a second to begin.
    shutil.copytree(SAMPLES, tmp_path / "samples")
    script = f'set -e -o pipefail\nkvopt() {{ "{sys.executable}" -m kvopt "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", script + SCRIPT], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


class TestCompletion:
    """Shells complete commands, options and names."""

    @pytest.fixture
    def completed(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
        """Return what completes a line as bash asks for it."""

        def call(line: str) -> list[str]:
            monkeypatch.setenv("_KVOPT_COMPLETE", "complete_bash")
            monkeypatch.setenv("COMP_WORDS", line)
            monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
            code, out, err = run()
            assert (code, err) == (0, "")
            return out.split()

        return call

    @pytest.mark.parametrize(
        ("line", "names"),
        [
            ("kvopt run a.json --policy mc", ["mc-sf", "mc-sf-total"]),
            ("kvopt run a.json --policy mc-sf --batch-time llama-2-70b-2xa100-", None),
            ("kvopt -q solve -e hi", ["highs"]),
        ],
    )
    def test_bash_completes_names(
        self, completed: Callable[[str], list[str]], line: str, names: list[str] | None
    ) -> None:
        assert completed(line) == (names or ["llama-2-70b-2xa100-linear"])

    def test_names_of_each_kind_are_completed(self) -> None:
        for kind in NAMES:
            names = names_of(kind)
            assert completing(kind)("") == names
            assert names[0] in completing(kind)(names[0][:2])
            assert completing(kind)("no such thing") == []

    def test_a_log_is_not_begun(
        self, completed: Callable[[str], list[str]], tmp_path: Path
    ) -> None:
        assert completed(f"kvopt --log {tmp_path}/a.log sol") == ["solve"]
        assert list(tmp_path.iterdir()) == []

    def test_scripts_are_shown(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
        code, out, _ = run("--show-completion", "zsh")
        assert (code, out.startswith("#compdef kvopt")) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "{"])
def test_a_path_is_named_once(run: Run, ec1: Path, tmp_path: Path, content: str | None) -> None:
    bad, out = tmp_path / "bad.json", tmp_path / "out.json"
    if content is not None:
        bad.write_text(content)
    readers = [
        ("solve", bad), ("solve", ec1, "--start", bad), ("bound", bad), ("check", bad, bad),
        ("check", ec1, bad), ("run", bad, "-P", "svf"), ("certify", bad, "-o", out),
        ("certify", ec1, "--schedule", bad, "-o", out), ("export", bad, "-o", tmp_path / "o.lp"),
        ("plot", bad, "-o", tmp_path / "o.svg"), ("hardware", "fit", bad),
        ("run", ec1, "-P", "svf", "--seconds", "--batch-time", bad),
        ("solve", ec1, "--params", bad), ("report", bad),
        ("import", bad, "-f", "csv", "-m", 9, "-o", out), ("hardware", "show", bad, "-o", out),
        ("run", ec1, "-P", "svf", "--module", f"{bad}.py"),
    ]  # fmt: skip
    for words in readers:
        code, shown, err = run(*words)
        assert (code, shown, err.count("\n")) == (2, "", 1), words
        assert err.count(str(bad)) == 1, err
        assert not out.exists()

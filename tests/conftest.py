"""Settings that all tests share."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer.main
from commands import EC1, Run
from effort import NORMAL, THOROUGH, processor_time
from effort import few_steps as with_few_steps
from hypothesis import settings
from registered import forgetting
from reported import make_study, make_study_in_seconds
from tasks_here import WAIT, WORKERS, wait, workers

from kvopt import generate, write_instance
from kvopt.cli import main
from kvopt.kernels import compiler
from kvopt.studies import description, execution

if TYPE_CHECKING:
    from browsing import Browser

# The same examples in every run: a failure is always the fault of the change at hand.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=NORMAL)
# Other examples in every run, and many of them: `make test-thorough`.
settings.register_profile("thorough", deadline=None, max_examples=THOROUGH)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as under nohup, also for what is begun here
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Compiled loops wrap around in silence; as plain Python they would warn of it."""
    if os.environ.get("NUMBA_DISABLE_JIT"):
        config.addinivalue_line("filterwarnings", "ignore:.*encountered in:RuntimeWarning")


_build_commands = typer.main.get_command
_built_commands = cache(_build_commands)
_builtin_study = cache(description.builtin_study)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the examples of docs/, and the transcripts of commands, be written anew."""
    for kept in ("docs", "golden"):
        parser.addoption(
            f"--update-{kept}", action="store_true", help="fill in what is printed now"
        )


@pytest.fixture(autouse=True)
def no_solver_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the same engine answer whether or not machine code is there already."""
    monkeypatch.setattr(compiler, "is_running", lambda: False)


@pytest.fixture(autouse=True, scope="session")
def tasks_here() -> Iterator[None]:
    """Do tasks of studies in this process: another one takes seconds to load what they need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "workers", workers)
        patch.setattr(execution, "wait", wait)
        yield


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let studies begin processes, as they do for users."""
    monkeypatch.setattr(execution, "workers", WORKERS)
    monkeypatch.setattr(execution, "wait", WAIT)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process; return exit code, output and messages."""

    def call(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kvopt", *map(str, args)])
        # To build all commands takes most of a short run; these two options change them.
        is_changing = {"--help", "--show-completion"} & {*map(str, args)}
        built = _build_commands if is_changing else _built_commands
        monkeypatch.setattr(typer.main, "get_command", built)
        # A process ends at once when a solver was left behind; here that is a thread of others.
        monkeypatch.setattr(os, "_exit", sys.exit)
        try:
            main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        assert isinstance(code, int)
        return code, out, err

    return Run(call)


@pytest.fixture
def processor_clock() -> Iterator[None]:
    """Let limits count processor time, in which what waits for another process has no end."""
    with processor_time():
        yield


@pytest.fixture
def few_steps() -> Iterator[None]:
    """Let ascents of prices end soon, where the last digits of a bound are not the subject."""
    with with_few_steps():
        yield


@pytest.fixture
def own_things() -> Iterator[None]:
    """Forget at the end what a test registers."""
    with forgetting():
        yield


@pytest.fixture
def public_data() -> Path:
    """Return the folder of public traces and profiles, which ``KVOPT_DATA`` names."""
    folder = os.environ.get("KVOPT_DATA")
    if not folder:
        pytest.skip("KVOPT_DATA names no folder")
    return Path(folder)


@pytest.fixture
def ec1(tmp_path: Path) -> Path:
    """Return the file of an example with four requests."""
    path = tmp_path / "ec1.json"
    path.write_text(json.dumps(EC1))
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return the file of an instance that no engine finishes."""
    path = tmp_path / "large.json"
    write_instance(generate("arrival-1", n=70, seed=1), path)
    return path


@pytest.fixture
def studies_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read each built-in study once for all tests: it draws instances to see if they exist."""
    for module in (description, execution):
        monkeypatch.setattr(module, "builtin_study", _builtin_study)


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small study, which no test may change."""
    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a Chromium that all tests of pages share."""
    from browsing import chromium  # it loads what drives a browser

    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write reports with the names of their pictures alone, and check no certificate twice."""
    from pages import sketch  # it loads what draws pictures

    sketch(monkeypatch)


@pytest.fixture
def studied(finished_study: Path, tmp_path: Path) -> Path:
    """Return a folder of a small study."""
    return shutil.copytree(finished_study, tmp_path / "study")


@pytest.fixture(scope="session")
def study_in_seconds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small study in seconds, which no test may change."""
    return make_study_in_seconds(tmp_path_factory.mktemp("seconds"))

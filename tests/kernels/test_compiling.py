"""Compiling is no work: limits leave it out, it is reported apart, ends at signals, and is kept."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known import known

from kvopt import Instance, Request, bound, certify, solve
from kvopt.cli.messages import LiveProgress, messages_shown, set_up
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt
from kvopt.incumbent.limits import Limits
from kvopt.kernels import compile_clock as compiling
from kvopt.kernels.compile_clock import (
    Abandoned,
    awaited,
    compile_seconds,
    left_when,
    working_time,
)
from kvopt.kernels.compiled import compiled

COMMAND = [sys.executable, "-m", "kvopt"]
EIGHT = Path("instances/arrival-1-n8.json")
TWELVE = Path("instances/arrival-2-n12.json")  # more than a solver proves while loops are compiled
SMALL = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])
SOME_CODE = (
    "import numpy as np\n"
    "from kvopt.kernels.compile_clock import compile_seconds\n"
    "from kvopt.kernels.random_numbers import reseed\n"
    "reseed(np.zeros(1, np.int64), 1, 2, 3)\n"
    "import os\n"
    "from kvopt.kernels.compiled import folders, is_temporary\n"
    "kept = ['no' if f is None else 'temporary' if is_temporary(f) else 'yes' for f in folders()]\n"
    "where = compile_seconds.__code__.co_filename\n"
    "print(where, compile_seconds(), os.access('lib/kvopt', os.W_OK), *kept)\n"
)


@pytest.fixture
def clock(compile_clock: None, monkeypatch: pytest.MonkeyPatch) -> list[float]:  # noqa: ARG001
    """Return a time that passes when it is set; nothing was compiled before."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def cold(folder: Path) -> dict[str, str]:
    """Return the environment of a process that has an empty cache."""
    return {**os.environ, "NUMBA_CACHE_DIR": str(folder)}


def machine_code(folder: Path) -> int:
    """Return how many functions a cache has."""
    return len([*folder.rglob("*.nbc")])


LOWER = """
from kvopt.kernels.compiled import compiled

@compiled
def more(x: int) -> int:
    return x + {}
"""
UPPER = """
from kvopt.kernels.compiled import compiled
from lower import more

@compiled
def twice(x: int) -> int:
    return 2 * more(x)
"""


def answer(folder: Path, added: int | None = None) -> list[str]:
    """Return twice one and more, and how many of its functions were on the disk."""
    if added is not None:
        (folder / "lower.py").write_text(LOWER.format(added), encoding="utf-8")
    command = "import upper; print(upper.twice(1), sum(upper.twice.stats.cache_hits.values()))"
    found = subprocess.run(
        [sys.executable, "-c", command],
        cwd=folder,
        env=cold(folder / "kept"),
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split()


@pytest.mark.slow
def test_machine_code_is_made_again_where_a_file_that_it_calls_changed(tmp_path: Path) -> None:
    (tmp_path / "upper.py").write_text(UPPER, encoding="utf-8")
    assert answer(tmp_path, 1) == ["4", "0"]
    assert answer(tmp_path) == ["4", "1"]
    assert answer(tmp_path, 10) == ["22", "0"]


SHAPES = "from typing import NamedTuple\nclass Point(NamedTuple):\n    x: int\n"
OF_A_POINT = """
from kvopt.kernels.compiled import compiled
from {module} import Point

@compiled
def once(point: Point) -> int:
    return 2 * point.x

def twice(x: int) -> int:
    return once(Point(x))

twice.stats = once.stats
"""


@pytest.mark.slow
def test_machine_code_is_made_again_where_a_module_of_its_types_has_a_new_name(
    tmp_path: Path,
) -> None:
    for module, kept in (("shapes", ["0", "1"]), ("forms", ["0"])):
        (tmp_path / f"{module}.py").write_text(SHAPES, encoding="utf-8")
        (tmp_path / "upper.py").write_text(OF_A_POINT.format(module=module), encoding="utf-8")
        assert [answer(tmp_path) for _ in kept] == [["2", found] for found in kept]
        (tmp_path / f"{module}.py").unlink()


# ---- the clock ------------------------------------------------------------------------------


def test_the_clock_stands_still_and_overlaps_count_once(clock: list[float]) -> None:
    began = working_time()
    clock[0] += 2
    compiling.begins(ours=True)
    clock[0] += 3
    compiling.begins(ours=False)  # for the first one, or by another thread
    clock[0] += 4
    assert (working_time() - began, compile_seconds()) == (2, 7)
    compiling.ends()
    clock[0] += 5
    compiling.ends()
    clock[0] += 6
    assert (working_time() - began, compile_seconds()) == (8, 12)
    compiling.ends()  # of one that nobody saw begin
    clock[0] += 1
    assert (working_time() - began, compile_seconds()) == (9, 12)


def test_deadlines_of_all_searches_move(clock: list[float]) -> None:
    outer = Search(SMALL, Limits(time_limit=10))
    clock[0] += 1
    inner = Search(SMALL, Limits(time_limit=4))
    compiling.begins(ours=True)
    clock[0] += 60
    assert (outer.remaining, inner.remaining) == (9, 4)
    compiling.ends()
    clock[0] += 3
    assert (outer.remaining, inner.remaining) == (6, 1)
    assert not inner.should_stop()
    assert (outer.seconds, inner.seconds) == (4, 3)
    assert outer.result("auto").compile_seconds == inner.compile_seconds == 60
    clock[0] += 1
    assert inner.should_stop()


@pytest.mark.slow
def test_answers_say_what_was_compiled_apart() -> None:
    assert solve(SMALL, "exact").to_json()["compile_seconds"] >= 0
    assert bound(SMALL).to_json()["compile_seconds"] >= 0
    assert certify(SMALL).provenance["compile_seconds"] >= 0


# ---- signals --------------------------------------------------------------------------------


@pytest.fixture
def slow() -> Iterator[threading.Event]:
    """Return an event for which a compiler waits, until the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def soon() -> Iterator[None]:
    """Let Ctrl-C come a little later."""
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()


@pytest.mark.usefixtures("soon")
def test_ctrl_c_ends_the_wait_for_a_compiler(slow: threading.Event) -> None:
    with pytest.raises(KeyboardInterrupt):
        awaited(slow.wait)


@pytest.mark.usefixtures("soon")
def test_a_search_goes_on_to_its_answer(slow: threading.Event) -> None:
    search = Search(SMALL)
    with signals_interrupt(search):
        search.offer_starts((0, 1, 3, 6), "test")
        awaited(slow.wait)
    assert search.signal_number == signal.SIGINT
    assert search.result("auto").schedule is not None


def test_what_nobody_remembers_is_not_left() -> None:
    with left_when(lambda: False):
        assert awaited(lambda: 3) == 3
        with pytest.raises(Abandoned), left_when(lambda: False):
            raise Abandoned


def test_errors_of_a_compiler_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        awaited(lambda: 1 // 0)


def test_the_main_thread_lets_others_compile() -> None:
    def twice(x: int) -> int:
        return 2 * x

    threads: list[str] = []
    function: Any = compiled(twice)
    save = function._cache.save_overload

    def kept(*arguments: Any) -> None:
        threads.append(threading.current_thread().name)
        save(*arguments)

    function._cache.save_overload = kept
    function._cache.load_overload = lambda *_: None
    before, known = compile_seconds(), compiling.compiling().known
    assert function(21) == 42
    assert threads == [compiling.THREAD]
    assert compile_seconds() > before
    assert not compiling.compiling().is_running
    after = compile_seconds()
    assert function(4) == 8
    assert compile_seconds() == after
    assert known > 0


def test_a_full_disk_is_no_error() -> None:
    def thrice(x: int) -> int:
        return 3 * x

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    function: Any = compiled(thrice)
    function._cache.load_overload = lambda *_: None
    function._cache._cache_file.save = full
    assert function(14) == 42


# ---- the command line -----------------------------------------------------------------------


def twice(folder: Path, *command: str) -> list[dict[str, Any]]:
    """Return what a command says with an empty cache, and once more."""
    return [
        json.loads(
            subprocess.run([*COMMAND, *command], env=cold(folder), stdout=-1, check=True).stdout
        )
        for _ in range(2)
    ]


@pytest.mark.slow
def test_what_compiles_the_first_bound_is_no_part_of_its_time(tmp_path: Path) -> None:
    first, second = twice(tmp_path, "bound", str(EIGHT), "--method", "lp", "--json")
    assert first["value"] == second["value"] == 216
    assert first["compile_seconds"] > 1
    assert second["compile_seconds"] == 0


@pytest.mark.slow
def test_signals_while_compiling_keep_what_is_known(tmp_path: Path) -> None:
    command = [*COMMAND, "solve", str(TWELVE)]
    with subprocess.Popen(command, env=cold(tmp_path), stdout=-1, stderr=-1, text=True) as child:
        while "compiling" not in known(child.stderr).readline():
            assert child.poll() is None
        before = machine_code(tmp_path)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate()
    assert child.returncode == 130
    assert machine_code(tmp_path) - before < 10, "of some hundred functions to the end"
    assert "interrupted" in out
    assert "239" in out


def shown(capsys: pytest.CaptureFixture[str], words: str) -> str:
    """Return what is shown until words are there."""
    said = ""
    while words not in said:
        threading.Event().wait(0.02)
        said += capsys.readouterr().err
    return said


def test_a_terminal_shows_how_far_it_got(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    monkeypatch.setattr("kvopt.cli.messages.is_watched", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    compiling.known_one_more()
    compiling.known_one_more()
    with messages_shown(), LiveProgress("an instance"):
        compiling.begins(ours=True)
        clock[0] += 8
        said = shown(capsys, "8 s")
        compiling.ends()
    said += capsys.readouterr().err
    assert "compiling (first use after installation): 1 of ~2 functions, 8 s" in said
    assert "compiling took 8 s; limits" in said
    assert "once" not in said, "later commands may compile what this one did not need"


@pytest.mark.usefixtures("clock")
def test_a_log_has_one_line_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with messages_shown(), LiveProgress("an [instance]"):
        compiling.begins(ours=True)
        said = shown(capsys, "an [instance]  compiling")
        compiling.ends()
        compiling.begins(ours=True)
        threading.Event().wait(0.3)
        compiling.ends()
    assert (said + capsys.readouterr().err).count("an [instance]  compiling") == 1
    with messages_shown():
        set_up(verbose=False, quiet=False, log=None, as_json=True)
        with LiveProgress("quiet"):
            compiling.begins(ours=True)
            threading.Event().wait(0.3)
            compiling.ends()
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    """What a person watches."""

    def isatty(self) -> bool:
        """Say so."""
        return True


class OutStream(io.StringIO):
    """What a notebook shows."""

    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize(("stream", "times"), [(Terminal, 2), (OutStream, 2), (io.StringIO, 0)])
def test_who_watches_python_is_told_and_not_too_often(
    stream: type[io.StringIO], times: int, monkeypatch: pytest.MonkeyPatch, clock: list[float],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(compiling, "_told", 0.0)
    seen = stream()
    monkeypatch.setattr(sys, "stderr", seen)
    for later in (1, 2, 90):
        clock[0] += later
        compiling.begins(ours=False)  # a function of somebody else's
        compiling.begins(ours=True)
        compiling.ends()
        compiling.ends()
    line = f"kvopt: {compiling.FIRST_USE}\n"
    assert (seen.getvalue(), capsys.readouterr().out) == (times * line, "")


@pytest.mark.usefixtures("clock")
def test_commands_tell_it_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_told", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with messages_shown():
        compiling.begins(ours=True)
        compiling.ends()
        assert isinstance(sys.stderr, Terminal)
        assert sys.stderr.getvalue() == ""


# ---- where it is kept -----------------------------------------------------------------------


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Return a folder with an installation that cannot be written, and one that can beside it."""
    folder = tmp_path
    shutil.copytree("kvopt", folder / "lib/kvopt", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "own").mkdir()
    for path in (folder / "lib", *(folder / "lib").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in (folder / "lib", *(folder / "lib").rglob("*")):
        path.chmod(0o755)  # so that it can be removed


def keep_to_permissions() -> None:
    """Take from root, in a process that begins, what lets it write anywhere."""
    if os.getuid() == 0:
        ctypes.CDLL(None, use_errno=True).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def compile_seconds_of(folder: Path, home: Path, temporary: Path, kept: str) -> float:
    """Return how long a process compiles that has these two folders to write to, if it may.

    It also says whether it kept what it compiled.
    """
    environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    environment |= {"PYTHONPATH": str(folder / "lib"), "HOME": str(home), "TMPDIR": str(temporary)}
    done = subprocess.run(
        [sys.executable, "-c", SOME_CODE],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
        preexec_fn=keep_to_permissions,
    )  # fmt: skip
    where, seconds, writable, said = done.stdout.split()
    assert Path(where) == folder / "lib/kvopt/kernels/compile_clock.py"
    if writable == "True":
        pytest.skip("permissions do not bind here")
    assert said == kept
    return float(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("at_home", [True, False])
def test_an_installation_that_cannot_be_written_compiles_once(
    read_only: Path, at_home: bool
) -> None:
    own, closed = read_only / "own", read_only / "lib"
    home, temporary = (own, closed) if at_home else (closed, own)
    kept = "yes" if at_home else "temporary"
    assert compile_seconds_of(read_only, home, temporary, kept) > 0
    assert compile_seconds_of(read_only, home, temporary, kept) == 0
    assert list(own.rglob("random_numbers.reseed*.nbc"))


@pytest.mark.slow
def test_what_others_could_have_written_is_not_run(read_only: Path) -> None:
    folder = read_only / "own" / f"kvopt-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert compile_seconds_of(read_only, read_only / "lib", read_only / "own", "no") > 0
    assert not list(folder.iterdir())


def test_hot_functions_are_numbas_own() -> None:
    """A call of what is compiled goes through nothing of ours."""
    from kvopt.kernels.random_numbers import normal

    assert type(normal).__module__.partition(".")[0] == "numba"
    assert normal(np.zeros(1, np.int64)) != 0

"""Another process compiles: limits and signals end the wait for it, and what it made is kept."""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from interpreters import python
from known import known
from numba import int64

from kvopt import Instance, Request
from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import signals_interrupt, waiting_within
from kvopt.incumbent.limits import Limits
from kvopt.kernels import compiler, linking
from kvopt.kernels.compiled import borrowing, compiled
from kvopt.kernels.compiler import Place, compile_elsewhere

COMMAND = [sys.executable, "-m", "kvopt"]
TWELVE = Path("instances/arrival-2-n12.json")  # more than a solver proves while loops are compiled
SMALL = Instance(7, [Request(0, 1, o) for o in (1, 2, 3, 4)])
SOME_CODE = (
    "import numpy as np\n"
    "from kvopt.kernels.random_numbers import reseed\n"
    "reseed(np.zeros(1, np.int64), 1, 2, 3)\n"
    "import os\n"
    "from kvopt.kernels.compiled import is_kept\n"
    "hits = sum(reseed.stats.cache_hits.values())\n"
    "print(is_kept.__code__.co_filename, hits, os.access('lib/kvopt', os.W_OK), is_kept())\n"
)


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
    return python("-c", command, cwd=folder, env=cold(folder / "kept"), check=True).stdout.split()


@pytest.mark.slow
def test_machine_code_is_made_again_where_a_file_that_it_calls_changed(tmp_path: Path) -> None:
    (tmp_path / "upper.py").write_text(UPPER, encoding="utf-8")
    assert answer(tmp_path, 1) == ["4", "0"]
    assert answer(tmp_path) == ["4", "1"]
    assert answer(tmp_path, 10) == ["22", "0"]


@pytest.mark.slow
def test_python_can_call_a_function_that_was_compiled_for_another_one(tmp_path: Path) -> None:
    (tmp_path / "lower.py").write_text(LOWER.format(1), encoding="utf-8")
    (tmp_path / "upper.py").write_text(UPPER, encoding="utf-8")
    command = "import lower, upper; print(upper.twice(1), lower.more(1), upper.twice(2))"
    for _ in range(2):  # then both are on the disk
        done = python("-c", command, cwd=tmp_path, env=cold(tmp_path / "kept"), check=True)
        assert done.stdout.split() == ["4", "2", "6"]
    assert machine_code(tmp_path / "kept") == 3


def test_a_function_that_borrows_arrays_returns_none() -> None:
    def first(rows: list[int]) -> list[int]:
        return rows

    with pytest.raises(TypeError, match="first returns more than a number"):
        borrowing(first)


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


# ---- the child ------------------------------------------------------------------------------

MODULE = """
from kvopt.kernels.compiled import compiled

@compiled
def {name}(x: int) -> int:
    return {factor} * x
"""


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function of a module that both processes can import, of which nothing is stored."""
    package = tmp_path / "kvopt_of_a_test.py"
    package.write_text(MODULE.format(name="twice", factor=2), encoding="utf-8")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module(package.stem)
    monkeypatch.setitem(sys.modules, "kvopt.of_a_test", module)  # found by its name
    yield module.twice
    del sys.modules[package.stem]
    end_children()


def test_the_child_stores_what_the_parent_calls(missing: Any, tmp_path: Path) -> None:
    place = Place("kvopt_of_a_test", "twice", is_python=False)
    assert compile_elsewhere(place, (int64,))
    assert machine_code(tmp_path / "kept") == 1
    assert missing(21) == 42
    assert sum(missing.stats.cache_hits.values()) == 1


def test_an_unknown_function_is_compiled_here(missing: Any) -> None:
    assert not compile_elsewhere(Place("kvopt_of_a_test", "thrice", is_python=False), (int64,))
    assert missing(21) == 42


def end_children() -> None:
    """End the compilers that were left behind."""
    compiler.stop()
    while compiler.CompilerState.ending:
        child = compiler.CompilerState.ending.pop()
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def never() -> Iterator[Callable[[], bool]]:
    """Return a function that waits for a child that takes for ever."""
    place = Place("kvopt.kernels.random_numbers", "reseed", is_python=False)
    yield partial(compile_elsewhere, place, (), "import time; {!r}; time.sleep(100)")
    end_children()


def test_the_wait_ends_with_the_limit(
    never: Callable[[], bool], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And Python says once what takes so long."""
    monkeypatch.setattr(compiler.CompilerState, "is_announced", False)
    monkeypatch.setattr(logging.getLogger("kvopt"), "handlers", [])
    search = Search(SMALL, Limits(time_limit=0.2))
    with waiting_within(search.granted):
        search.offer_starts((0, 1, 3, 6), "test")
        never()
    assert search.result("auto").stop_reason == "time-limit"
    assert search.result("auto").schedule is not None
    assert not compiler.is_running()
    assert capsys.readouterr().err == f"kvopt: {compiler.FIRST_USE}\n"


def test_an_inner_error_is_not_the_end_of_the_limit() -> None:
    with pytest.raises(Stopped), waiting_within(Search(SMALL).granted):
        raise Stopped


@pytest.fixture
def soon() -> Iterator[None]:
    """Let Ctrl-C come a little later."""
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()


@pytest.mark.usefixtures("soon")
def test_ctrl_c_ends_the_wait(never: Callable[[], bool]) -> None:
    with pytest.raises(KeyboardInterrupt):
        never()


@pytest.mark.usefixtures("soon")
def test_a_search_goes_on_to_its_answer(never: Callable[[], bool]) -> None:
    search = Search(SMALL)
    with signals_interrupt(search):
        search.offer_starts((0, 1, 3, 6), "test")
        never()
    assert search.granted.signal_number == signal.SIGINT
    assert search.result("auto").schedule is not None


def test_a_thread_that_was_left_behind_stops_waiting(never: Callable[[], bool]) -> None:
    ended: list[type[BaseException]] = []

    def wait() -> None:
        try:
            never()
        except Stopped as end:
            ended.append(type(end))

    with compiler.wait_until(lambda: False):
        thread = threading.Thread(target=wait)
        thread.start()
        while not compiler.CompilerState.wanted:
            time.sleep(0.01)
    thread.join()
    assert ended == [Stopped]


def test_without_a_child_the_process_compiles_itself(
    missing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert missing(21) == 42


def test_a_full_disk_is_no_error() -> None:
    def thrice(x: int) -> int:
        return 3 * x

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    function: Any = compiled(thrice)
    function._cache.load_overload = lambda *_: None
    function._cache._cache_file.save = full
    assert function(14) == 42


@pytest.mark.skipif(
    not numba.__version__.startswith(linking.TESTED), reason="other releases only warn"
)
def test_a_loop_with_an_address_of_this_process_is_refused() -> None:
    large = np.zeros(10**6)  # numba does not copy so many bytes

    def entry(place: int) -> float:
        return float(large[place])

    with pytest.raises(RuntimeError, match="address"):
        compiled(entry)(1)


# ---- the command line -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_first_use_keeps_its_limit(large: Path, tmp_path: Path) -> None:
    command = ("-m", "kvopt", "solve", large, "-t", "8", "--json")
    done = python(*command, env=cold(tmp_path), check=True)
    found = json.loads(done.stdout)
    assert found["stop_reason"] == "time-limit"
    assert found["objective"] is not None
    assert done.stderr.count(compiler.FIRST_USE) == 1


@pytest.mark.slow
def test_signals_while_compiling_keep_what_is_known(tmp_path: Path) -> None:
    command = [*COMMAND, "solve", str(TWELVE)]
    with subprocess.Popen(command, env=cold(tmp_path), stdout=-1, stderr=-1, text=True) as child:
        while "compiling" not in known(child.stderr).readline():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate()
    assert child.returncode == 130
    assert "interrupted" in out
    assert "239" in out


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


def found_by(folder: Path, home: Path) -> tuple[int, bool]:
    """Return what a process with this home finds on disk, and whether it kept what it compiled."""
    environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}
    environment |= {"PYTHONPATH": str(folder / "lib"), "HOME": str(home)}
    options = {"env": environment, "cwd": folder, "preexec_fn": keep_to_permissions}
    done = python("-c", SOME_CODE, check=True, **options)
    where, found, writable, kept = done.stdout.split()
    assert Path(where) == folder / "lib/kvopt/kernels/compiled.py"
    if writable == "True":
        pytest.skip("permissions do not bind here")
    return int(found), kept == "True"


@pytest.mark.slow
def test_an_installation_that_cannot_be_written_compiles_once_for_a_user(read_only: Path) -> None:
    own, closed = read_only / "own", read_only / "lib"
    # The first process stores it, or its child does.
    found_by(read_only, own)
    assert found_by(read_only, own) == (1, True)
    assert list(own.rglob("random_numbers.reseed*.nbc"))
    assert found_by(read_only, closed) == (0, False)


def test_hot_functions_are_numbas_own() -> None:
    """A call of what is compiled goes through nothing of ours."""
    from kvopt.kernels.random_numbers import normal

    assert type(normal).__module__.partition(".")[0] == "numba"
    assert normal(np.zeros(1, np.int64)) != 0

"""Ctrl-C wherever it falls: what was found is printed and written whole, and the status is 130."""

from __future__ import annotations

import ast
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from interpreters import python
from known import known
from theirs import installed

from kvopt import BatchTime, Instance, Line, Request, certify, generate, write_instance
from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.loop_calls import interruptible
from kvopt.problem.clocks import Seconds

COMMAND = [sys.executable, "-m", "kvopt"]
COMPILERS = {"compiled", "steering", "borrowing", "inlined", "machine_code", "_quick"}
SCALARS = {"None", "int", "float", "bool", "Any", "tuple"}


def name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def compiled_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield what is compiled: decorated, or handed to a function that compiles."""
    for path in sorted(Path("kvopt").rglob("*.py")):
        tree = parsed(path)
        handed = {
            name_of(argument)
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and name_of(call.func) in COMPILERS
            for argument in call.args
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (
                node.name in handed or COMPILERS & {name_of(d) for d in node.decorator_list}
            ):
                yield f"{path}: {node.name}", node


@cache
def names_in_calls(where: str) -> tuple[set[str], set[str]]:
    """Return the functions that a compiled loop is made of, and those that are called by name."""
    paths = [Path(where)] if where.endswith(".py") else Path(where).rglob("*.py")
    trees = map(parsed, paths)
    calls = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Call)]
    made = [call for call in calls if name_of(call.func) == "Operations"]
    handed = {name_of(part) for call in made for part in call.args}
    return handed, {call.func.id for call in calls if isinstance(call.func, ast.Name)}


@cache
def uses(node: ast.AST) -> Counter[str]:
    """Count the names inside a function or a module."""
    return Counter(name_of(each) for each in ast.walk(node) if isinstance(each, ast.expr))


def is_called_from_python(label: str, seen: dict[str, ast.FunctionDef]) -> bool:
    """Whether a function is named where nothing is compiled."""
    path, _, name = label.partition(": ")
    handed, _ = names_in_calls("kvopt")
    if name in handed:
        return name in names_in_calls(path if name.startswith("_") else "kvopt")[1]
    private = name.startswith("_")
    trees = map(parsed, [Path(path)] if private else Path("kvopt").rglob("*.py"))
    within = [each for other, each in seen.items() if not private or other.startswith(f"{path}: ")]
    return sum(uses(each)[name] for each in trees) != sum(uses(each)[name] for each in within)


@pytest.mark.slow
def test_compiled_functions_return_numbers() -> None:
    """Where they return several arrays, or a named tuple, Ctrl-C can end the process.

    Those that only compiled functions call hand nothing to Python.
    """
    seen = dict(compiled_functions())
    assert len(seen) > 50
    assert any(label.endswith("startable_sets.py: _fronts") for label in seen)
    for label, function in seen.items():
        assert function.returns is not None, label
        names = {name_of(n) for n in ast.walk(function.returns) if isinstance(n, ast.expr)}
        assert names - {""} <= SCALARS or not is_called_from_python(label, seen), label


@pytest.mark.slow
def test_ctrl_c_while_a_long_answer_is_printed_leaves_it_whole(tmp_path: Path) -> None:
    file = tmp_path / "many.json"
    write_instance(generate("conversation", n=6_000, memory=16_492), file)
    command = [*COMMAND, "run", str(file), "--json", *["-P", "fcfs"] * 3]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=buffered) as child:
        begin = known(child.stdout).read(1)  # it prints, more than there is room for in a pipe
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        rest = known(child.stdout).read()
    assert child.returncode == 130
    runs = json.loads(begin + rest)["policies"]
    assert [len(run["starts"]) for run in runs] == 3 * [6_000]


@pytest.mark.slow
def test_ctrl_c_in_code_that_was_a_string_keeps_what_is_known(ec1: Path, tmp_path: Path) -> None:
    """It falls there while modules are loaded; Python would end by the signal, with no status."""
    body = "exec('import os, signal; os.kill(os.getpid(), signal.SIGINT)')"
    command = ("-m", "kvopt", "run", ec1, "-P", "mc-sf", "-P", "ending", "--json")
    done = python(*command, env=installed(tmp_path, "ending", body))
    assert done.returncode == 130
    assert [run["policy"] for run in json.loads(done.stdout)["policies"]] == ["mc-sf"]


@pytest.mark.parametrize(
    "command",
    [
        ["solve", "-o", "out.json"],
        ["certify", "-o", "out.json"],
        ["bound", "--json"],
        ["certify", "--seconds", "--policy", "svf", "-o", "out.json"],
    ],
)
def test_ctrl_c_between_search_and_file_writes_both(
    command: list[str], run: Run, ec1: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search is over, and nothing is printed or written yet."""
    name = command[0]
    home = {"bound": "solve"}.get(name, name)
    commands = importlib.import_module(f"kvopt.cli.{home}")
    search = getattr(commands, name)

    def interrupted(*arguments: Any, **keys: Any) -> Any:
        found = search(*arguments, **keys)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commands, name, interrupted)
    code, out, _ = run(command[0], ec1, *command[1:])
    assert code == 130
    assert out
    if "-o" in command:
        assert json.loads(Path("out.json").read_text())


@pytest.mark.slow
def test_a_bound_in_seconds_ends_with_what_it_has() -> None:
    instance = generate("conversation", n=30_000, memory=16_492)
    model = BatchTime([Line(45_000_000, 160_000), Line(32_000_000, 310_000)], 80)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    found = certify(instance, ["svf"], clock=Seconds(model))
    timer.join()
    assert found.signal_number == signal.SIGINT
    assert found.lower_bound
    assert [(run.policy, run.outcome) for run in found.runs] == [("svf", "unfinished")]
    assert found.provenance["stop_reason"] == "interrupted"


def test_ctrl_c_while_modules_are_loaded_ends_without_a_traceback() -> None:
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], "policies"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        while "typer.models" not in known(child.stderr).readline():
            pass
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_a_solver_that_begins_late_is_asked_again_to_return() -> None:
    search = Search(Instance(7, [Request(0, 1, 2)]))
    search.granted.interrupt()
    has_begun, is_asked = threading.Event(), threading.Event()

    def cancel() -> None:
        (is_asked if has_begun.is_set() else has_begun).set()

    def work() -> None:
        is_asked.wait(60)

    assert run_in_thread(search, work, cancel)


def test_ctrl_c_in_compiled_code_is_ctrl_c() -> None:
    def raising(cause: BaseException) -> None:
        raise SystemError("a result with an exception set") from cause

    with pytest.raises(KeyboardInterrupt):
        interruptible(raising)(KeyboardInterrupt())
    with pytest.raises(SystemError):
        interruptible(raising)(ValueError())

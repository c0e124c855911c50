"""``kvopt warmup`` compiles everything once, says so, and says where it is not kept."""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from commands import Run
from doors import compiled_by
from interpreters import python

import kvopt
from kvopt import warmup
from kvopt.kernels import compiled
from kvopt.warmup import Warmed

COMMAND = [sys.executable, "-m", "kvopt"]
INSTANCES = ("arrival-1-n8", "arrival-2-n12", "conversation-n20", "uniform-n20", "mixed-n12")


@pytest.mark.slow
def test_a_second_call_has_nothing_to_compile(run: Run) -> None:
    nothing = "done: nothing to compile, all of it was kept from before"
    code, out, err = run("warmup")
    if out.splitlines()[-1] != nothing:  # these tests did not need all of it so far
        code, out, err = run("warmup")
    assert code == 0
    assert out.splitlines()[-1] == nothing
    assert "exact search: 0 functions compiled" in err
    assert "warning" not in err


def test_json_counts_what_was_compiled(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Warmed("one", 2, 2.0, True), Warmed("other", 1, 0.7, True)]
    monkeypatch.setattr(warmup, "warm_up", lambda: iter(parts))
    found = run.json("warmup")
    assert found["compiled"] == 3
    assert [part["compiled"] for part in found["parts"]] == [2, 1]


@pytest.mark.slow
def test_a_signal_ends_it(tmp_path: Path) -> None:
    cold = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [*COMMAND, "warmup", "--json"]
    with subprocess.Popen(command, env=cold, stdout=-1, stderr=-1, text=True) as child:
        while not kept(tmp_path):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    assert err.endswith("kvopt: interrupted; compiled parts are kept\n")


def kept(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.nb?")}


@pytest.mark.thorough
def test_commands_compile_nothing_after_it(tmp_path: Path) -> None:
    cache, cold = tmp_path / "cache", {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def call(*arguments: str) -> str:
        return python("-m", "kvopt", *arguments, env=cold, check=True).stdout

    assert json.loads(call("warmup", "--json"))["compiled"] > 0
    before = kept(cache)
    for module in pkgutil.walk_packages(kvopt.__path__, "kvopt."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    functions = [dispatcher.py_func for dispatcher in compiled.DISPATCHERS]
    every = {f.__name__ for f in functions if f.__module__.startswith("kvopt.")}
    assert every <= {name.split(".")[1].split("-")[0] for name in before if "nbi" in name}

    assert json.loads(call("warmup", "--json"))["compiled"] == 0
    backlog, long = str(tmp_path / "backlog.json"), str(tmp_path / "long.json")
    call("generate", "conversation", "--n", "300", "--memory", "4000", "-o", backlog)
    call("generate", "uniform", "--n", "150", "-o", long)
    policies = [name for each in ("fcfs", "mc-sf", "svf", "h-sf", "sorted-f", "a-min", "patient")
                for name in ("--policy", each)]  # fmt: skip
    for file in (*(f"instances/{name}.json" for name in INSTANCES), backlog, long):
        certificate = str(tmp_path / "cert.json")
        call("run", file, *policies)
        if file in (backlog, long):  # whose arrivals a clock of seconds knows
            call("run", file, "--policy", "svf", "--seconds")
            call("certify", file, "--policy", "svf", "-t", "2", "--seconds", "-o", certificate)
        call("solve", file, "-t", "2")
        call("bound", file, "-t", "2")
        call("certify", file, "--policy", "svf", "-t", "2", "-o", certificate)
        call("certify", file, "--scope", "pauses", "-t", "2", "-o", certificate)
        assert kept(cache) - before == set(), file


@pytest.mark.thorough
def test_python_compiles_nothing_after_it(tmp_path: Path) -> None:
    """On both clocks, of all scopes and of fleets, for up to 60 requests."""
    cold = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    python("-m", "kvopt", "warmup", "--json", env=cold, check=True)
    assert compiled_by(cold) == []


def test_what_is_not_kept_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Warmed("one", 2, 2.0, True), Warmed("other", 1, 0.7, False)]
    monkeypatch.setattr(warmup, "warm_up", lambda: iter(parts))
    code, out, err = run("warmup")
    assert (code, out.startswith("done: 3 functions compiled in ")) == (0, True)
    assert "warning: not kept on disk: set NUMBA_CACHE_DIR" in err

"""Any solver of Pyomo, by name, on the readable time-indexed model.

The solver runs in a process of its own (`kvopt.search.solvers.pyomo_worker`).  Pyomo redirects the
standard streams of the process it solves in, and most of its solvers cannot be asked to
stop; a child can be ended at any moment, and its findings until then are kept.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from typing import Any

from kvopt.incumbent.incumbent import Search
from kvopt.incumbent.interrupts import run_in_thread
from kvopt.kernels.solver_versions import DEFAULT_SOLVER, require_solver
from kvopt.problem.instance_files import instance_to_json
from kvopt.search.solvers.highs_engine import offer_bound, windows_for_floats
from kvopt.timetable.schedule import Schedule

_BYTES = 600
"""Bytes that Pyomo and a solver take for each coefficient, in their own process."""


def run(search: Search, *, solver: str = DEFAULT_SOLVER) -> None:
    """Let a child process with a solver of Pyomo work on a search, and receive its findings."""
    require_solver(solver)
    windows = windows_for_floats(search, _BYTES)
    task = {
        "instance": instance_to_json(search.instance),
        "windows": [[window[0], window[-1]] for window in windows],
        "solver": solver,
        "presolve": search.limits.presolve,
        "threads": search.limits.threads,
        "ram": search.budget.ram,
        "seed": search.limits.seed,
        "time_limit": search.budget.left if math.isfinite(search.budget.left) else None,
    }
    label = f"Pyomo with {solver}"
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "kvopt.search.solvers.pyomo_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # the parent handles Ctrl-C and ends the child
        ) as child,  # leaving the block closes the pipes and waits
    ):
        try:
            run_in_thread(search, lambda: _listen(child, task, search, label), cancel=child.kill)
        finally:
            child.kill()
        errors.seek(0)
        lines = [line.strip() for line in errors if line.strip()]
        if child.wait() != 0 and not search.budget.over():
            search.note(f"{label} failed: {lines[-1] if lines else child.returncode}")


def _listen(child: subprocess.Popen[str], task: dict[str, Any], search: Search, label: str) -> None:
    """Hand a child its task, and take its findings line by line until it ends."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(json.dumps(task))
        child.stdin.close()
        for line in child.stdout:
            _take(json.loads(line), search, label)
    except (BrokenPipeError, json.JSONDecodeError):
        pass  # the child ended in the middle of a line
    child.wait()


def _take(message: dict[str, Any], search: Search, label: str) -> None:
    """Offer the findings of a line; schedules are checked, bounds are claims."""
    if "schedule" in message:
        search.offer(Schedule(search.instance, **message["schedule"]), label)
    if "bound" in message:
        offer_bound(search, message["bound"], label)
    if "fault" in message:
        search.fault(f"{label} {message['fault']}")
    if "note" in message:
        search.note(f"{label}: {message['note']}")
    if "out_of_time" in message:
        search.granted.expire()
    for phase in ("build", "solve"):
        if phase in message:
            search.count_time(phase, message[phase])

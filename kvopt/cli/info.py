"""``kvopt info``: what a bug report needs."""

from __future__ import annotations

import os
import platform

import typer

from kvopt.cli import common
from kvopt.engines.solving import available_threads
from kvopt.errors import KvoptError
from kvopt.kernels.dependencies import available_solvers, versions


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("info")(info_command)


def info_command(json: common.Json = False) -> None:
    """Print versions, machine and available solvers, for a bug report."""
    try:
        solvers = available_solvers()
        problem = None
    except KvoptError as error:
        solvers, problem = [], str(error)
    facts: dict[str, object] = {
        "versions": versions(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "usable_threads": available_threads(),
        "pyomo_solvers": solvers,
        "problem": problem,
    }
    if json:
        common.print_json(facts)
        return
    for name, value in {**versions(), **facts}.items():
        if name != "versions" and value is not None:
            print(f"{name:15} {', '.join(value) if isinstance(value, list) else value}")

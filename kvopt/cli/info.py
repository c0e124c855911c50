"""``kvopt info``: what a bug report needs."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.errors import KvoptError
from kvopt.kernels.dependencies import available_solvers, versions
from kvopt.search.incumbent import available_threads
from kvopt.search.params import DEFAULT


def info_command(
    json: common.Json = False,
    params: Annotated[
        bool, option("--params", "Print what --params FILE may change, as TOML.")
    ] = False,
) -> None:
    """Print versions, machine and available solvers, for a bug report."""
    if params:
        if json:
            common.print_json(asdict(DEFAULT))
        else:
            print(DEFAULT.to_toml(), end="")
        return
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

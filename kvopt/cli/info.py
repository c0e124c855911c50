"""``kvopt info``: what a bug report needs."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.errors import KvoptError
from kvopt.incumbent.limits import available_threads
from kvopt.incumbent.params import DEFAULT
from kvopt.kernels.dependencies import available_solvers, missing_extras, versions
from kvopt.show.optional import EXTRAS, remedy


def info_command(
    json: common.Json = False,
    params: Annotated[
        bool, option("--params", "Print what --params FILE may change, as TOML.")
    ] = False,
) -> None:
    """Print versions, machine and available solvers, for a bug report; and which parts lack."""
    if params:
        if json:
            common.print_json(asdict(DEFAULT))
        else:
            print(DEFAULT.to_toml(), end="")
        return
    missing = missing_extras()
    solvers, problem = [], None
    try:
        solvers = available_solvers()
    except KvoptError as error:
        problem = str(error)
    facts: dict[str, object] = {
        "versions": versions(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "usable_threads": available_threads(),
        "pyomo_solvers": solvers,
        "problem": problem,
        "missing_extras": missing,
    }
    if json:
        common.print_json(facts)
        return
    remedies = {EXTRAS[name].package: f"not installed: {remedy(name)}" for name in missing}
    for name, value in {**versions(), **remedies, **facts}.items():
        if name not in ("versions", "missing_extras") and value not in (None, []):
            print(f"{name:15} {', '.join(value) if isinstance(value, list) else value}")

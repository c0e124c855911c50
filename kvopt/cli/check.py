"""``kvopt check``: judge a schedule in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.errors import FalseClaim
from kvopt.files import read_instance, read_schedule


def check_command(
    file: common.InstanceFile,
    schedule: Annotated[
        Path, typer.Argument(metavar="SCHEDULE", help="Schedule file; - is standard input.")
    ],
    memory: common.Memory = None,
    json: common.Json = False,
) -> None:
    """Print the total latency and peak memory of a schedule, or what breaks.

    Exit status: 0 feasible, 1 not feasible or another objective than it claims, 2 unreadable
    or not for this instance.
    """
    instance = read_instance(file, memory)
    try:
        check = read_schedule(schedule, instance).check()
    except FalseClaim as error:
        if json:
            common.print_json({"feasible": False, "violations": [str(error)]})
        else:
            print(error)
        raise typer.Exit(common.FAILED) from None
    if json:
        said = ("feasible", "objective", "peak_memory", "peak_time", "makespan", "violations")
        common.print_json({name: getattr(check, name) for name in said})
    else:
        for line in check.violations:
            print(line)
        verdict = "feasible" if check.feasible else "not feasible"
        print(
            f"{verdict}: total latency {check.objective:,}, peak memory {check.peak_memory:,} of "
            f"{instance.memory:,} at time {check.peak_time:,}, makespan {check.makespan:,}"
        )
    if not check.feasible:
        raise typer.Exit(common.FAILED)

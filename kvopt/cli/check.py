"""``kvopt check``: judge a schedule in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kvopt.cli import common
from kvopt.errors import FalseClaim
from kvopt.files import read_instance, read_schedule
from kvopt.model.schedule import ScheduleCheck


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("check")(check_command)


def check_command(
    file: common.InstanceFile,
    schedule: Annotated[Path, typer.Argument(metavar="SCHEDULE", help="Schedule file.")],
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
        raise typer.Exit(1) from None
    if json:
        common.print_json(_as_json(check))
    else:
        _print(check, instance.memory)
    if not check.feasible:
        raise typer.Exit(1)


def _as_json(check: ScheduleCheck) -> dict[str, Any]:
    return {
        "feasible": check.feasible,
        "objective": check.objective,
        "peak_memory": check.peak_memory,
        "peak_time": check.peak_time,
        "makespan": check.makespan,
        "violations": list(check.violations),
    }


def _print(check: ScheduleCheck, memory: int) -> None:
    for line in check.violations:
        print(line)
    verdict = "feasible" if check.feasible else "not feasible"
    print(
        f"{verdict}: total latency {check.objective:,}, peak memory {check.peak_memory:,} of "
        f"{memory:,} at time {check.peak_time:,}, makespan {check.makespan:,}"
    )

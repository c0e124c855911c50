"""``kvopt check``: judge a schedule in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.errors import FalseClaim
from kvopt.problem.instance_files import read_instance
from kvopt.timetable.pausing import PausedSchedule
from kvopt.timetable.schedule_files import read_either_schedule


def check_command(
    file: common.InstanceFile,
    schedule: Annotated[
        Path, typer.Argument(metavar="SCHEDULE", help="Schedule file; - is standard input.")
    ],
    memory: common.Memory = None,
    workers: common.Workers = None,
    block_size: common.BlockSize = None,
    json: common.Json = False,
) -> None:
    """Print the total latency and peak memory of a schedule, or what breaks.

    Exit status: 0 feasible, 1 not feasible or another objective than it claims, 2 unreadable
    or not for this instance.
    """
    instance = read_instance(file, memory, workers, block_size)
    try:
        judged = read_either_schedule(schedule, instance)
        check = judged.check()
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
        pauses = judged.pauses if isinstance(judged, PausedSchedule) else 0
        paused = f", {pauses:,} pause{'s' * (pauses > 1)} with tokens kept" if pauses else ""
        verdict = "feasible" if check.feasible else "not feasible"
        print(
            f"{verdict}: total latency {check.objective:,}, peak memory {check.peak_memory:,} of "
            f"{instance.memory:,} at time {check.peak_time:,}, makespan {check.makespan:,}{paused}"
        )
    if not check.feasible:
        raise typer.Exit(common.FAILED)

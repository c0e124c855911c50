"""``kvopt check``: judge a schedule in integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from kvopt.cli import common
from kvopt.cli.common import argument
from kvopt.cli.verify import verify_command
from kvopt.errors import FalseClaim
from kvopt.timetable.schedule_files import read_schedule

_SAID = ("feasible", "objective", "peak_memory", "peak_time", "makespan", "violations")


def check_command(
    problem: common.InstanceOptions,
    schedule: Annotated[
        Path | None,
        argument("[SCHEDULE]", "Schedule file; - is standard input.  Not for a certificate."),
    ] = None,
    json: common.Json = False,
) -> None:
    """Print the total latency and peak memory of a schedule, or what breaks.

    Without a schedule FILE is a certificate, which is checked as ``kvopt verify`` does.

    Exit status: 0 feasible, 1 not feasible or another objective than it claims, 2 unreadable
    or not for this instance.
    """
    if schedule is None:
        verify_command(problem.file, json)
        return
    instance = problem.read()
    summary = None
    try:
        made = read_schedule(schedule, instance)
        check = made.check()
        found: dict[str, Any] = {name: getattr(check, name) for name in _SAID}
        pauses = made.pauses
        paused = f", {pauses:,} pause{'s' * (pauses > 1)} with tokens kept" if pauses else ""
        summary = (
            f"{'feasible' if check.feasible else 'not feasible'}: total latency "
            f"{check.objective:,}, peak memory {check.peak_memory:,} of {instance.memory:,} at "
            f"time {check.peak_time:,}, makespan {check.makespan:,}{paused}"
        )
    except FalseClaim as error:
        found = {"feasible": False, "violations": [str(error)]}
    if json:
        common.print_json(found)
    else:
        print(*found["violations"], *filter(None, [summary]), sep="\n")
    common.finish(status=common.FAILED * (not found["feasible"]))

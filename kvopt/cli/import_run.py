"""``kvopt import-run``: what a server decided, as a run that can be judged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import argument
from kvopt.cli.outputs import write_output
from kvopt.timetable.records import read_record
from kvopt.timetable.run_files import write_run


def import_run_command(
    record: Annotated[Path, argument("RECORD", "What a server wrote.")],
    output: common.Output,
) -> None:
    """Read what a server decided, replay it in integers, and write it as a run.

    A record is what kvopt.integrations.vllm writes, or one JSON object with
    all rounds.  What breaks its own rules is refused with request and round.
    """
    run = read_record(record)
    schedule = run.schedule
    about = (
        f": {run.policy}, {len(run.instance):,} requests, total latency "
        f"{schedule.objective:,} rounds, {schedule.pauses:,} pause{'s' * (schedule.pauses != 1)}"
    )
    write_output(output, partial(write_run, run), about)
    if left_out := run.notes.get("left_out"):
        common.say(f"left out {left_out:,} request{'s' * (left_out > 1)} that did not finish")

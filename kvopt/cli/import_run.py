"""``kvopt import-run``: what a server decided, as a run that can be judged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.outputs import try_outputs, write_output
from kvopt.timetable.records import read_record
from kvopt.timetable.run_files import write_run


def import_run_command(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="What a server wrote.")],
    output: Annotated[Path, option("--output -o", "Run to write.", "RUN")],
) -> None:
    """Read what a server decided, replay it in integers, and write it as a run.

    A record is what kvopt.integrations.vllm writes, or one JSON object with
    all rounds.  What breaks its own rules is refused with request and round.
    """
    try_outputs(output=output)
    run = read_record(record)
    schedule = run.schedule
    about = (
        f": {run.policy}, {len(run.instance):,} requests, total latency "
        f"{schedule.objective:,} rounds, {schedule.pauses:,} pause{'s' * (schedule.pauses != 1)}"
    )
    write_output(output, partial(write_run, run), about)
    if left_out := run.notes.get("left_out"):
        common.say(f"left out {left_out:,} request{'s' * (left_out > 1)} that did not finish")

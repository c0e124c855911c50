"""``kvopt plot``: a Gantt chart and the memory profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.files import read_instance, read_schedule


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("plot")(plot_command)


def plot_command(
    file: common.InstanceFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.{png,svg,pdf}", help="The picture.")
    ],
    schedule: Annotated[
        Path | None, typer.Option("--schedule", metavar="SCHEDULE", help="The schedule to draw.")
    ] = None,
    memory: common.Memory = None,
) -> None:
    """Draw a schedule by request and over memory, or the requests alone."""
    from kvopt.plots import plot_instance, plot_schedule, refuse_unknown_suffix

    refuse_unknown_suffix(output)
    instance = read_instance(file, memory)
    if schedule is None:
        plot_instance(instance, output)
    else:
        plot_schedule(read_schedule(schedule, instance), output)
    common.messages.print(f"wrote {output}")

"""``kvopt plot``: a Gantt chart and the memory profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.errors import InvalidInput
from kvopt.files import read_instance, read_schedule
from kvopt.instance import Instance
from kvopt.running import run
from kvopt.schedule import Schedule


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
    policy: Annotated[
        str | None,
        typer.Option("--policy", "-P", metavar="NAME", help="Draw what this scheduler does."),
    ] = None,
    memory: common.Memory = None,
) -> None:
    """Draw a schedule by request and over memory, or the requests alone."""
    from kvopt.plots import plot_instance, plot_schedule, refuse_unknown_suffix

    refuse_unknown_suffix(output)
    if schedule is not None and policy is not None:
        raise InvalidInput("give --schedule or --policy, not both", field="options")
    instance = read_instance(file, memory)
    if policy is not None:
        made, subtitle = _simulated(instance, policy)
        plot_schedule(made, output, subtitle=subtitle)
    elif schedule is not None:
        plot_schedule(read_schedule(schedule, instance), output)
    else:
        plot_instance(instance, output)
    common.messages.print(f"wrote {output}")


def _simulated(instance: Instance, policy: str) -> tuple[Schedule, str]:
    found = run(instance, policy)
    if found.schedule is None:
        raise InvalidInput(
            f"{policy} ends in a livelock, so there is no schedule", field="--policy"
        )
    lost = f"; work lost in {found.evictions:,} evictions is not drawn" if found.evictions else ""
    return found.schedule, f"{policy}{lost}"

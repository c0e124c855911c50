"""``kvopt plot``: a Gantt chart and the memory profile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.outputs import try_outputs, write_named
from kvopt.engines.bounding import bound
from kvopt.errors import InvalidInput
from kvopt.files import read_instance, read_schedule
from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule
from kvopt.search.proofs import Prices
from kvopt.simulation.running import run

_PRICE_SECONDS = 5.0


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
    prices: Annotated[
        bool,
        typer.Option("--prices", help="Show the prices of the lagrangian bound below the memory."),
    ] = False,
    memory: common.Memory = None,
    _modules: common.Modules = None,
) -> None:
    """Draw a schedule by request and over memory, or the requests alone."""
    from kvopt.plots import plot_instance, plot_schedule, refuse_unknown_suffix

    refuse_unknown_suffix(output)
    try_outputs(output=output)
    if schedule is not None and policy is not None:
        raise InvalidInput("give --schedule or --policy, not both", field="options")
    if prices and schedule is None and policy is None:
        raise InvalidInput("goes with --schedule or --policy", field="--prices")
    instance = read_instance(file, memory)
    if schedule is None and policy is None:
        write_named("--output", output, partial(plot_instance, instance))
    else:
        made, known = _made(instance, schedule, policy)
        curve, proved = _priced(instance) if prices else (None, None)
        subtitle = ", ".join(text for text in (known, proved) if text)
        draw = partial(plot_schedule, made, subtitle=subtitle or None, prices=curve)
        write_named("--output", output, draw)
    common.messages.print(f"wrote {output}", markup=False)


def _made(
    instance: Instance, schedule: Path | None, policy: str | None
) -> tuple[Schedule, str | None]:
    """Return the schedule to draw and what to say of it."""
    if schedule is not None:
        return read_schedule(schedule, instance), None
    assert policy is not None
    found = run(instance, policy)
    if found.schedule is None:
        raise InvalidInput(
            f"{policy} ends in a livelock, so there is no schedule", field="--policy"
        )
    lost = f"; work lost in {found.evictions:,} evictions is not drawn" if found.evictions else ""
    return found.schedule, f"{policy}{lost}"


def _priced(instance: Instance) -> tuple[Prices | None, str]:
    """Return the best prices of a few seconds and what they prove."""
    result = bound(instance, "lagrangian", time_limit=_PRICE_SECONDS)
    proof = None if result.checked is None else result.checked.proof
    return proof if isinstance(proof, Prices) else None, f"at least {result.value or 0:,} proved"

"""``kvopt plot``: a Gantt chart and the memory profile."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.outputs import try_outputs, write_output
from kvopt.engines.bounding import bound
from kvopt.errors import InvalidInput
from kvopt.files import read_instance, read_schedule
from kvopt.model.instance import Instance
from kvopt.model.schedule import Schedule
from kvopt.search.proofs import Prices
from kvopt.simulation.running import run
from kvopt.simulation.runs import Outcome

_PRICE_SECONDS = 5.0
"""Seconds for the prices that --prices shows; more of them come nearer to the bound."""


def plot_command(
    file: common.InstanceFile,
    output: Annotated[Path, option("--output -o", "The picture.", "OUT.{png,svg,pdf}")],
    schedule: Annotated[
        Path | None, option("--schedule", "The schedule to draw.", "SCHEDULE")
    ] = None,
    policy: Annotated[
        str | None, option("--policy -P", "Draw what this scheduler does.", "NAME")
    ] = None,
    prices: Annotated[
        bool, option("--prices", "Show the prices of the lagrangian bound below the memory.")
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
        write_output(output, partial(plot_instance, instance))
    else:
        made, known = _made(instance, schedule, policy)
        curve, proved = _priced(instance) if prices else (None, None)
        subtitle = ", ".join(text for text in (known, proved) if text)
        draw = partial(plot_schedule, made, subtitle=subtitle or None, prices=curve)
        write_output(output, draw)


def _made(
    instance: Instance, schedule: Path | None, policy: str | None
) -> tuple[Schedule, str | None]:
    """Return the schedule to draw and what to say of it."""
    if schedule is not None:
        return read_schedule(schedule, instance), None
    assert policy is not None
    found = run(instance, policy)
    if found.schedule is None:
        is_paused = found.outcome is Outcome.COMPLETED
        reason = (
            "pauses requests, which is not drawn"
            if is_paused
            else "ends in a livelock, so there is no schedule"
        )
        raise InvalidInput(f"{policy} {reason}", field="--policy")
    lost = f"; work lost in {found.evictions:,} evictions is not drawn" if found.evictions else ""
    return found.schedule, f"{policy}{lost}"


def _priced(instance: Instance) -> tuple[Prices | None, str]:
    """Return the best prices of a few seconds and what they prove."""
    result = bound(instance, "lagrangian", time_limit=_PRICE_SECONDS)
    proof = None if result.checked is None else result.checked.proof
    return proof if isinstance(proof, Prices) else None, f"at least {result.value or 0:,} proved"

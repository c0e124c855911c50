"""What a command takes for granted when it is not told: said, since results rest on it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kvopt.cli.common import messages
from kvopt.files.batch_times import DEFAULT_MODEL, batch_time
from kvopt.model.batch_time import BatchTime

_MACHINE = "Llama-2-70B on two A100"
"""What `DEFAULT_MODEL` is a model of."""


def clock_of(model: str | None) -> BatchTime:
    """Return the batch-time model that was named, or the default one."""
    return batch_time(model or DEFAULT_MODEL)


def say_assumed_clock(model: str | None) -> None:
    """Say which machine seconds are of, unless it was named."""
    if model is None:
        _say(f"--batch-time {DEFAULT_MODEL} ({_MACHINE})", "--batch-time")


def say_assumed_clock_of_study() -> None:
    """Say the same of a study whose description names no machine."""
    _say(f'batch_time = "{DEFAULT_MODEL}" ({_MACHINE})', "batch_time in the description")


def say_assumed_options(context: typer.Context, names: Sequence[str]) -> None:
    """Say what those of some options are that were not given."""
    assumed = [
        f"--{name.replace('_', '-')} {context.params[name]}"
        for name in names
        if (source := context.get_parameter_source(name)) is not None and source.name == "DEFAULT"
    ]
    if assumed:
        _say(", ".join(assumed), "them" if len(assumed) > 1 else assumed[0].split()[0])


def _say(what: str, option: str) -> None:
    messages.print(f"assumed: {what}; give {option} for another machine", markup=False)

"""What a command takes for granted when it is not told: said, since results rest on it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from kvopt.cli.common import say
from kvopt.errors import InvalidInput
from kvopt.problem.clocks import ROUNDS, Clock, Seconds
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.hardware.roofline import expected_error, is_roofline, parts, roofline

_MACHINE = "Llama-2-70B on two A100"
"""What `DEFAULT_MODEL` is a model of."""


def clock_of(seconds: bool, model: str | None) -> Clock:
    """Return the clock that was asked for: of the model that was named, or of the default one."""
    if seconds:
        return Seconds(batch_time(model or DEFAULT_MODEL))
    if model is not None:
        raise InvalidInput("goes with --seconds", field="--batch-time")
    return ROUNDS


def say_assumed_clock(clock: Clock, model: str | None) -> None:
    """Say which machine seconds are of, unless it was named, and which times are computed."""
    if model is not None:
        _say_roofline(model)
    elif clock != ROUNDS:
        _say(f"--batch-time {DEFAULT_MODEL} ({_MACHINE})", "--batch-time")


def say_assumed_clock_of_study(model: object) -> None:
    """Say the same of a study in seconds, whose description gives this model or None."""
    if model is None:
        _say(f'batch_time = "{DEFAULT_MODEL}" ({_MACHINE})', "batch_time in the description")
    elif isinstance(model, str):
        _say_roofline(model)


def _say_roofline(model: str) -> None:
    if is_roofline(model):
        shape, gpu, gpus = parts(model)
        name, error = roofline(shape, gpu, gpus).name, expected_error(shape, gpu)
        say(f"assumed: {name} is a roofline, not a measurement: {error}")


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
    say(f"assumed: {what}; give {option} for another machine")

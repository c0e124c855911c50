"""``kvopt export``: the model as a file for any other solver."""

from __future__ import annotations

from typing import Annotated

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.cli.outputs import write_output
from kvopt.errors import InvalidInput
from kvopt.formulations.export import SUFFIXES, export, format_of


def export_command(
    problem: common.InstanceOptions,
    output: common.Output,
    formulation: Annotated[
        str, option("--formulation", "One of {formulations}.", "NAME", names="formulations")
    ] = "time-indexed",
    format: Annotated[  # noqa: A002 - the name in the contract
        str | None,
        option("--format", "One of {exports}; default: as OUT ends.", "NAME", names="exports"),
    ] = None,
) -> None:
    """Write the time-indexed program, its LP relaxation, or the one with pauses, as MPS or LP.

    A name that ends in .gz is compressed.
    """
    try:
        kind = format or format_of(output)
    except InvalidInput as error:
        names = ", ".join(SUFFIXES)
        reason = f"must end in one of {names}; another name needs --format"
        raise InvalidInput(reason, field=f"--output {error.file}") from None
    instance = problem.read()
    write_output(output, lambda path: export(instance, path, formulation, kind))

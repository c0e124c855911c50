"""``kvopt export``: the model as a file for any other solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.outputs import try_outputs, write_named
from kvopt.errors import InvalidInput
from kvopt.files import read_instance
from kvopt.formulations.export import FORMATS, FORMULATIONS, SUFFIXES, export, format_of


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("export")(export_command)


def export_command(
    file: common.InstanceFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="The file to write.")
    ],
    formulation: Annotated[
        str, typer.Option("--formulation", help=f"One of {', '.join(FORMULATIONS)}.")
    ] = "time-indexed",
    format: Annotated[  # noqa: A002 - the name in the contract
        str | None,
        typer.Option("--format", help=f"One of {', '.join(FORMATS)}; default: by the name of OUT."),
    ] = None,
    memory: common.Memory = None,
) -> None:
    """Write the time-indexed program, or its LP relaxation, as MPS or LP.

    A name that ends in .gz is compressed.
    """
    try:
        kind = format or format_of(output)
    except InvalidInput as error:
        names = ", ".join(SUFFIXES)
        reason = f"must end in one of {names}; another name needs --format"
        raise InvalidInput(reason, field=f"--output {error.file}") from None
    try_outputs(output=output)
    instance = read_instance(file, memory)
    write_named("--output", output, lambda path: export(instance, path, formulation, kind))
    common.messages.print(f"wrote {output}", markup=False)

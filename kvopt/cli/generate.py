"""``kvopt generate``: an instance of a named family."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from kvopt.cli import common
from kvopt.cli.outputs import try_outputs, write_named
from kvopt.errors import InvalidInput
from kvopt.families import FAMILIES, generate
from kvopt.files import write_instance


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("generate", epilog=_families())(generate_command)


def _families() -> str:
    """List every family with its keys, for the help text."""
    lines = ["[bold]Families[/bold]"]
    for family in FAMILIES.values():
        about = [f"{family.summary}; n {family.n}, M {family.memory} ({family.source})"]
        for key in family.parameters:
            default = "" if key.default is None else f"={key.default}"
            about.append(f"-p {key.name}{default}: {key.help}")
        lines.append(f"[bold]{family.name}[/bold]: {escape('; '.join(about))}")
    return "\n\n".join(lines)


def generate_command(
    family: Annotated[str, typer.Argument(metavar="FAMILY", help="A name from the list below.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Instance file to write.")
    ],
    n: Annotated[int | None, typer.Option("--n", min=0, help="Number of requests.")] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", "-m", min=1, metavar="M", help="Cache size.")
    ] = None,
    seed: common.Seed = 0,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="KEY=VALUE", help="A key of the family."),
    ] = None,
) -> None:
    """Write an instance of a named family; same arguments, same bytes."""
    try_outputs(output=output)
    instance = generate(family, n=n, memory=memory, seed=seed, parameters=_pairs(parameters or []))
    write_named("--output", output, partial(write_instance, instance))
    about = f"{len(instance)} requests, memory {instance.memory}"
    common.messages.print(f"wrote {output}: {about}", markup=False)


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidInput(f"must be key=value, got {text!r}", field="-p")
        if key in pairs:
            raise InvalidInput("is given twice", field=f"-p {key}")
        pairs[key] = value
    return pairs

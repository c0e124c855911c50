"""``kvopt import``: a trace as an instance."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from kvopt.cli import common
from kvopt.cli.outputs import try_outputs, write_named
from kvopt.files import write_instance
from kvopt.model.instance import Instance
from kvopt.traces import FORMATS, import_trace


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("import")(import_command)


def _column(flag: str, about: str) -> Any:
    return typer.Option(flag, metavar="NAME", help=about)


def import_command(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="The file to read.")],
    format_: Annotated[
        str,
        typer.Option("--format", "-f", help=f"{', '.join(FORMATS.built_in)}, or one of --module."),
    ],
    memory: Annotated[
        int, typer.Option("--memory", "-m", min=1, metavar="M", help="Cache size in tokens.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Instance file to write.")
    ],
    limit: Annotated[
        int | None, typer.Option("--limit", min=0, metavar="N", help="Stop after N requests.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=0, metavar="N", help="Draw N of them.")
    ] = None,
    seed: common.Seed = 0,
    round_ms: Annotated[
        float | None,
        typer.Option("--round-ms", metavar="X", help="Length of a round; 50 by default."),
    ] = None,
    all_at_once: Annotated[
        bool, typer.Option("--all-at-once", help="Forget arrivals: a backlog.")
    ] = False,
    max_total: Annotated[
        int | None,
        typer.Option("--max-total", min=1, metavar="T", help="Leave out what needs more tokens."),
    ] = None,
    prompt_column: Annotated[str | None, _column("--prompt-column", "Prompt tokens.")] = None,
    output_column: Annotated[str | None, _column("--output-column", "Output tokens.")] = None,
    time_column: Annotated[str | None, _column("--time-column", "Arrival, for csv.")] = None,
    _modules: common.Modules = None,
) -> None:
    """Turn a trace of requests into an instance; same arguments, same bytes.

    The file is read line by line.  Lines that are no request, or one that cannot be kept, are
    left out; how many and why is printed and stored in the notes of the instance.
    """
    try_outputs(output=output)
    instance = import_trace(
        trace,
        format_,
        memory,
        limit=limit,
        sample=sample,
        seed=seed,
        round_ms=round_ms,
        all_at_once=all_at_once,
        max_total=max_total,
        prompt_column=prompt_column,
        output_column=output_column,
        time_column=time_column,
    )
    write_named("--output", output, partial(write_instance, instance))
    for line in _report(instance, output):
        common.messages.print(line, markup=False)


def _report(instance: Instance, output: Path) -> list[str]:
    notes = instance.notes
    assert isinstance(notes, dict)
    length = "" if instance.round_ms is None else f", rounds of {instance.round_ms:g} ms"
    lines = [f"wrote {output}: {len(instance)} requests, memory {instance.memory}{length}"]
    for reason, found in notes["dropped"].items():
        lines.append(f"left out {found['rows']}: {reason} (first at line {found['first_line']})")
    if notes["out_of_order"]:
        lines.append(f"sorted: {notes['out_of_order']} arrived before one that stands above")
    return lines

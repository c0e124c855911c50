"""What the commands share: options, tables and the rule of what goes where.

With ``--json`` standard output holds one JSON object and nothing else.  Progress and
messages go to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kvopt.engines.threads import signals_remembered

messages = Console(stderr=True, highlight=False)
"""For people watching: progress, warnings, where a file went."""

InstanceFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Instance: JSON, or CSV with --memory.")
]
Memory = Annotated[
    int | None,
    typer.Option("--memory", "-m", min=1, metavar="M", help="Cache size; needed for CSV."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", "-t", min=0, metavar="S", help="Seconds, kept within two."),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, metavar="N", help="Solver threads; default: every core."),
]
Seconds = Annotated[bool, typer.Option("--seconds", help="Let a round last as long as its batch.")]
BatchTime = Annotated[
    str | None,
    typer.Option("--batch-time", metavar="MODEL", help="With --seconds: a .json file or a preset."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="For random choices.")]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Write and print to the end in spite of Ctrl-C, which ends the command afterwards.

    A second signal ends it at once.
    """
    came: list[int] = []
    with signals_remembered(came.append):
        yield
    if came:
        raise typer.Exit(128 + came[0])


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_table(table: Table) -> None:
    """Print a table on standard output, not narrower than it needs to be."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    console.print(table)


def new_table(*columns: str) -> Table:
    """Return an empty table; columns whose name ends in ``>`` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column.endswith(">")
        table.add_column(column.rstrip(">"), justify="right" if right else "left", no_wrap=right)
    return table


def or_dash(value: object) -> str:
    """Return a cell: what is unknown is a dash, never 0."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def percent(value: float | None) -> str:
    """Return a gap as a percentage; a gap that is not 0 never looks like 0."""
    if value is None:
        return "-"
    return "0%" if value == 0 else f"{max(value * 100, 0.01):.2f}%"


def times(value: int | None, by: int | None, *, up: bool) -> str:
    """Return a ratio to four places, rounded outward, so that the interval stays true."""
    if value is None or not by:
        return "-"
    places = -(-10_000 * value // by) if up else 10_000 * value // by
    return f"{places // 10_000}.{places % 10_000:04}"


def warn_oversubscription(threads: int | None) -> None:
    """Say so when more threads were asked for than there are cores."""
    cores = os.cpu_count() or 1
    if threads is not None and threads > cores:
        messages.print(f"kvopt: warning: {threads} threads on {cores} cores slow each other down")


def is_watched() -> bool:
    """Whether a person sees standard error, so that live progress makes sense."""
    return sys.stderr.isatty()


def print_budget(budget: int, output: Path) -> None:
    """Say if a certificate needs more than the default budget of ``kvopt verify``."""
    if budget > 1:
        messages.print(
            f"kvopt: its check needs about {budget} times the default budget: "
            f"kvopt verify {escape(str(output))} --budget {budget}"
        )

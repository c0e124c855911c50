"""What the commands share: options, exit statuses, tables and the rule of what goes where.

With ``--json`` standard output holds one JSON object and nothing else.  Progress and
messages go to standard error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kvopt.cli import INTERRUPTED as INTERRUPTED
from kvopt.cli.messages import detail as detail
from kvopt.cli.messages import is_watched as is_watched
from kvopt.cli.messages import say as say
from kvopt.cli.names import completing
from kvopt.cli.tables import new_table as new_table
from kvopt.cli.tables import print_table as print_table
from kvopt.errors import InvalidInput
from kvopt.files.reading import blamed_on as blamed_on
from kvopt.files.reading import is_standard_input, name_of
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.params import SolveParams
from kvopt.kernels.modules import import_modules, located
from kvopt.problem.scopes import Scope
from kvopt.show.summary import share
from kvopt.show.summary import times as times

FAILED = 1
"""Exit status when what was checked is wrong, or a part of the work failed."""

NOTHING_FOUND = 3
"""Exit status when the work came to its end or limit without what was looked for."""


def option(
    flags: str, about: str, metavar: str | None = None, names: str | None = None, **more: Any
) -> Any:
    """Return an option.

    Parameters
    ----------
    flags
        With blanks between them.
    about
        What help says of it.
    metavar
        What it takes.
    names
        Of which kind in `kvopt.cli.names` that is, so that shells complete it.
    more
        For Typer.
    """
    complete = None if names is None else completing(names)
    return typer.Option(
        *flags.split(), metavar=metavar, help=about, autocompletion=complete, **more
    )


INSTANCES = "JSON, or CSV with --memory; - is standard input."

InstanceFile = Annotated[Path, typer.Argument(metavar="FILE", help=f"Instance: {INSTANCES}")]
Memory = Annotated[
    int | None,
    option(
        "--memory -m", "Cache size: needed for CSV, in place of the file's for JSON.", "M", min=1
    ),
]
Workers = Annotated[
    int | None,
    option(
        "--workers", "Machines with a cache of M tokens each, in place of the file's.", "N", min=1
    ),
]
BlockSize = Annotated[
    int | None,
    option(
        "--block-size", "Memory is given out in whole blocks of B tokens; default: 1.", "B", min=1
    ),
]
Router = Annotated[
    str,
    option(
        "--router",
        "Of a fleet, how requests come to workers: one of {routers}.",
        "NAME[:KEY=VALUE,...]",
        names="routers",
    ),
]
Json = Annotated[bool, option("--json", "Print one JSON object and nothing else.")]
TimeLimit = Annotated[
    float | None, option("--time-limit -t", "Seconds, kept within two.", "S", min=0)
]
Threads = Annotated[
    int | None, option("--threads", "Solver threads; default: every core.", "N", min=1)
]


def _scope(default: str) -> Any:
    """Return the option for what schedules may do."""
    text = f"What schedules may do: one of {{scopes}}; default: {default}."
    return option("--scope", text, "NAME", names="scopes", parser=_parsed_scope)


def _parsed_scope(text: str) -> Scope:
    """Return the scope of a name, else raise what names the option."""
    try:
        return Scope.parse(text)
    except InvalidInput as error:
        raise typer.BadParameter(error.reason) from None


Allows = Annotated[Scope | None, _scope("runs")]
Covers = Annotated[Scope | None, _scope("what the policies need, else runs")]
Seconds = Annotated[bool, option("--seconds", "Let a round last as long as its batch.")]
BatchTime = Annotated[
    str | None,
    option(
        "--batch-time",
        "With --seconds: a .json file, one of {batch_times}, or a roofline, llama-3-8b@h100 say.",
        "MODEL",
        names="batch_times",
    ),
]
Ram = Annotated[
    str | None,
    option(
        "--ram",
        "Memory that may be held, 4G say; default: a share of what the machine has.",
        "SIZE",
    ),
]


def _read_params(path: Path | None) -> SolveParams | None:
    """Read the file of the option; what is wrong with it is said before any work begins."""
    return None if path is None else SolveParams.from_toml(path)


Params = Annotated[
    SolveParams | None,
    option(
        "--params",
        "TOML with widths, limits and shares of time, as kvopt info --params prints them.",
        "FILE",
        parser=Path,
        callback=_read_params,
    ),
]


def _imported(modules: list[str] | None) -> list[str]:
    """Import what the command is to know beside what is built in; return full paths."""
    import_modules(modules or (), must_register=True)
    return [located(module, Path()) for module in modules or ()]


Modules = Annotated[
    list[str] | None,
    option(
        "--module",
        "Python file that registers something of your own; may be given several times.",
        "FILE.py",
        callback=_imported,
    ),
]


def policies(about: str) -> Any:
    """Return the option that names schedulers."""
    return option(
        "--policy -P",
        f"{about}  One of {{policies}}; `kvopt policies` says what they do.",
        "NAME[:KEY=VALUE,...]",
        names="policies",
    )


Seed = Annotated[int, option("--seed", "For random choices.", "N", min=0)]


def label(file: Path) -> str:
    """Return what tables and progress call a file."""
    return name_of(file) if is_standard_input(file) else file.name


@contextmanager
def undisturbed() -> Iterator[list[int]]:
    """Work, write and print to the end in spite of Ctrl-C, which ends the command afterwards.

    What can stop in order, a search say, takes signals for itself; the block gets a list of those
    that came besides.  A second one of them ends the command at once.
    """
    came: list[int] = []
    with signals_remembered(came.append):
        yield came
    exit_by_signal(came[0] if came else None)


def exit_by_signal(number: int | None) -> None:
    """End the command if a signal ended its work, with the exit status that shells give it."""
    if number is not None:
        raise typer.Exit(128 + number)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def or_dash(value: object) -> str:
    """Return a cell: what is unknown is a dash, never 0."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def percent(value: float | None) -> str:
    """Return a gap as a percentage."""
    return share(value) or "-"


def warn_oversubscription(threads: int | None) -> None:
    """Say so when more threads were asked for than there are cores."""
    cores = os.cpu_count() or 1
    if threads is not None and threads > cores:
        say(f"kvopt: warning: {threads} threads on {cores} cores slow each other down")

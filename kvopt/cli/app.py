"""The Typer app and the commands it knows."""

from __future__ import annotations

from typing import Annotated

import typer

from kvopt.cli import (
    batch_time,
    bound,
    capacity,
    certify,
    check,
    export,
    generate,
    hunt,
    import_,
    info,
    plot,
    policies,
    reduce,
    report,
    run,
    solve,
    study,
    sweep,
    theory,
    verify,
)
from kvopt.version import __version__

app = typer.Typer(
    name="kvopt",
    help="How good can a schedule for LLM inference with a KV cache be?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    generate, solve, bound, run, certify, verify, policies, check, export, plot, reduce, hunt, info,
    import_, capacity, batch_time, study, report, theory, sweep,
):  # fmt: skip
    command.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kvopt {__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find hindsight optima and lower bounds for LLM inference with a KV cache."""

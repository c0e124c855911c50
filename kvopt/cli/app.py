"""The Typer app and the commands it knows."""

from __future__ import annotations

from collections.abc import Callable
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
    import_run,
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
from kvopt.cli.common import option
from kvopt.version import __version__

_COMMANDS: tuple[Callable[..., None], ...] = (
    generate.generate_command, solve.solve_command, bound.bound_command, run.run_command,
    certify.certify_command, verify.verify_command, policies.policies_command, check.check_command,
    export.export_command, plot.plot_command, reduce.reduce_command, hunt.hunt_command,
    info.info_command, import_.import_command, import_run.import_run_command,
    capacity.capacity_command, batch_time.batch_time_command, study.study_command,
    report.report_command, theory.theory_command, sweep.sweep_command,
)  # fmt: skip
"""In the order of the help text; ``NAME_command`` is the command ``NAME``."""

_EPILOGS = {"generate": generate.families(), "capacity": capacity.PRESETS}
"""What stands below the options of a command."""

app = typer.Typer(
    name="kvopt",
    help="How good can a schedule for LLM inference with a KV cache be?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in _COMMANDS:
    _name = _command.__name__.removesuffix("_command").replace("_", "-")
    app.command(_name, epilog=_EPILOGS.get(_name))(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kvopt {__version__}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, option("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find hindsight optima and lower bounds for LLM inference with a KV cache."""

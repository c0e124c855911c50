"""The Typer app and the commands it knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from kvopt.cli import (
    batch_time,
    bound,
    capacity,
    certify,
    check,
    export,
    fleet,
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
    warmup,
)
from kvopt.cli import messages as told
from kvopt.cli.common import option
from kvopt.cli.help import MESSAGES, Command, Group
from kvopt.version import __version__

_COMMANDS: tuple[Callable[..., None], ...] = (
    generate.generate_command, solve.solve_command, bound.bound_command, run.run_command,
    certify.certify_command, verify.verify_command, policies.policies_command, check.check_command,
    export.export_command, plot.plot_command, reduce.reduce_command, hunt.hunt_command,
    info.info_command, import_.import_command, import_run.import_run_command,
    capacity.capacity_command, fleet.fleet_command, batch_time.batch_time_command,
    study.study_command, report.report_command, theory.theory_command, sweep.sweep_command,
    warmup.warmup_command,
)  # fmt: skip
"""In the order of the help text; ``NAME_command`` is the command ``NAME``."""

_EPILOGS = {"generate": generate.families(), "batch-time": batch_time.PRESETS_BY_NAME}
"""What stands below the options of a command: a title, then lines of a name and what it is."""

app = typer.Typer(
    name="kvopt",
    cls=Group,
    help="How good can a schedule for LLM inference with a KV cache be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in _COMMANDS:
    _name = _command.__name__.removesuffix("_command").replace("_", "-")
    app.command(_name, cls=Command, epilog=_EPILOGS.get(_name))(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kvopt {__version__}")
        raise typer.Exit


def _loud(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        told.be_loud()


def _quiet(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        told.be_quiet()


def _log(context: typer.Context, path: Path | None) -> None:
    if path is not None and not context.resilient_parsing:
        told.log_to(path)


def _shared(flags: str, about: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option that every command takes too."""
    more |= {"is_eager": True, "expose_value": False, "rich_help_panel": MESSAGES}
    return option(flags, about, metavar, **more)


@app.callback()
def common(
    _verbose: Annotated[
        bool, _shared("--verbose -v", "Show details: stages, each improvement.", callback=_loud)
    ] = False,
    _quiet: Annotated[
        bool, _shared("--quiet -q", "Show results and errors only.", callback=_quiet)
    ] = False,
    _log: Annotated[
        Path | None,
        _shared("--log", "Append all messages to a file, with times.", "FILE", callback=_log),
    ] = None,
    _version: Annotated[
        bool, option("--version", "Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find hindsight optima and lower bounds for LLM inference with a KV cache."""

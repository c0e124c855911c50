"""Options, exit statuses, tables and output rules that all commands share.

With ``--json`` standard output holds one JSON object and nothing else.  Progress and
messages go to standard error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import isroutine
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import typer

from kvopt.cli import INTERRUPTED as INTERRUPTED
from kvopt.cli.messages import detail as detail
from kvopt.cli.messages import is_watched as is_watched
from kvopt.cli.messages import say as say
from kvopt.cli.tables import or_dash as or_dash
from kvopt.cli.tables import print_json as print_json
from kvopt.cli.tables import print_rows as print_rows
from kvopt.errors import InvalidInput
from kvopt.files.reading import blamed_on as blamed_on
from kvopt.files.reading import is_standard_input, name_of
from kvopt.incumbent.interrupts import signals_remembered
from kvopt.incumbent.params import SolveParams
from kvopt.kernels.modules import import_modules, located
from kvopt.problem import clocks
from kvopt.problem.batch_time import NANOSECONDS
from kvopt.problem.hardware.batch_time_files import DEFAULT_MODEL, batch_time
from kvopt.problem.hardware.roofline import expected_error, is_roofline, parts, roofline
from kvopt.problem.instance import Instance
from kvopt.problem.instance_files import read_instance
from kvopt.problem.scopes import Scope
from kvopt.show.summary import counted as counted
from kvopt.show.summary import percent as percent

FAILED = 1
"""Exit status when a checked file is wrong, or a part of the work failed."""

NOTHING_FOUND = 3
"""Exit status when the work, or its limit, ended without a result."""

NAMES = {
    "policies": "kvopt.simulate.policies.registry:POLICIES.names",
    "routers": "kvopt.simulate.routers.registry:ROUTERS.names",
    "engines": "kvopt.search.registry:ENGINES.names",
    "methods": "kvopt.bounds.registry:BOUNDS.names",
    "families": "kvopt.problem.families:FAMILIES",
    "traces": "kvopt.problem.traces:FORMATS.names",
    "formulations": "kvopt.formulations.export:FORMULATIONS",
    "exports": "kvopt.formulations.export:FORMATS",
    "studies": "kvopt.experiments.studies.description:builtin_names",
    "topics": "kvopt.experiments.theory:TOPICS",
    "models": "kvopt.problem.hardware.presets:MODELS",
    "gpus": "kvopt.problem.hardware.presets:GPUS",
    "batch_times": "kvopt.problem.hardware.batch_time_files:PRESETS",
    "scopes": "kvopt.problem.scopes:Scope",
}
"""Modules with the names of a kind; ``{policies}`` in a help text becomes the names of policies."""


def names_of(kind: str) -> list[str]:
    """Return the names of a kind; the module is loaded at the first call."""
    found = resolve_name(NAMES[kind])
    return [str(name) for name in (found() if isroutine(found) else found)]


def completing(kind: str) -> Callable[[str], list[str]]:
    """Return a function that completes the names of a kind, for ``autocompletion``."""
    return lambda incomplete: [name for name in names_of(kind) if name.startswith(incomplete)]


def filled_in(text: str) -> str:
    """Return a help text with names in it."""
    for kind in NAMES:
        if (place := f"{{{kind}}}") in text:
            text = text.replace(place, ", ".join(names_of(kind)))
    return text


def option(
    flags: str, about: str, metavar: str = "", names: str | None = None, default: Any = None,
    **more: Any,
) -> Any:  # fmt: skip
    """Return an option, as the default of a parameter.

    Parameters
    ----------
    flags
        Names of the option, with blanks between them.
    about
        Its help text.
    metavar
        Type of its value; None for a flag, which is off by default.
    names
        Kind in `NAMES` of its value, so that shells complete it.
    default
        Its default, ``...`` if the option is required.
    more
        Passed on to Typer.
    """
    if not metavar and default is None:
        default = False
    complete = completing(names) if names else None
    return typer.Option(
        default, *flags.split(), metavar=metavar, help=about, autocompletion=complete, **more
    )


def argument(metavar: str, about: str, names: str | None = None, default: Any = ...) -> Any:
    """Return an argument; ``names`` and ``default`` as of `option`."""
    complete = completing(names) if names else None
    return typer.Argument(default, metavar=metavar, help=about, autocompletion=complete)


def _parsed_scope(text: str) -> Scope:
    """Return the scope of a name, else raise an error that names the option."""
    try:
        return Scope.parse(text)
    except InvalidInput as error:
        raise typer.BadParameter(error.reason) from None


def _scope(default: str) -> Any:
    """Return the option for the scope."""
    text = f"Schedules that bounds cover: one of {{scopes}}; default: {default}."
    return option("--scope", text, "NAME", names="scopes", parser=_parsed_scope)


def _read_params(path: Path | None) -> SolveParams | None:
    """Read the file of the option; report errors before any work begins."""
    return None if path is None else SolveParams.from_toml(path)


def _imported(modules: list[str] | None) -> list[str]:
    """Import user modules that add to the built-in names; return full paths."""
    import_modules(modules or (), must_register=True)
    return [located(module, Path()) for module in modules or ()]


INSTANCES = "JSON, or CSV with --memory; - is standard input."
_WRITTEN = "The file to write; - is standard output."
LIMIT = "Seconds, kept within two."

INSTANCE_FILE = argument("FILE", f"Instance: {INSTANCES}")
OUTPUT = option("--output -o", _WRITTEN, "FILE", default=...)
OPTIONAL_OUTPUT = option("--output -o", _WRITTEN, "FILE")
JSON = option("--json", "Print one JSON object and nothing else.")
TIME_LIMIT = option("--time-limit -t", LIMIT, "S", min=0)
THREADS = option("--threads", "Solver threads; default: every core.", "N", min=1)
SEED = option("--seed", "For random choices.", "N", default=0, min=0)
ROUTER = option(
    "--router", "Of a fleet, how requests come to workers: one of {routers}.",
    "NAME[:KEY=VALUE,...]", "routers", "central",
)  # fmt: skip
ALLOWS = _scope("runs, or sharing if prompts have prefixes")
COVERS = _scope("that of the policies, else runs or sharing")
DEADLINE = option(
    "--deadline",
    "How many can be done in time: 40 rounds, 30s, own; first-token:2s for first tokens.",
    "TIME",
)
MODULES = option(
    "--module",
    "Python file that registers something of your own; may be given several times.",
    "FILE.py",
    callback=_imported,
)


def policies(about: str, default: Any = None) -> Any:
    """Return the option that names schedulers."""
    said = f"{about}  One of {{policies}}; `kvopt policies` describes them."
    return option("--policy -P", said, "NAME[:KEY=VALUE,...]", "policies", default)


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """Options that override the file of an instance."""

    memory: int | None = option(
        "--memory -m", "Cache size: required for CSV; overrides that of a JSON file.", "M", min=1
    )
    workers: int | None = option(
        "--workers", "Machines with a cache of M tokens each; overrides the file.", "N", min=1
    )
    block_size: int | None = option(
        "--block-size", "Memory is given out in whole blocks of B tokens; default: 1.", "B", min=1
    )

    def read_from(self, path: Path) -> Instance:
        """Read the file."""
        return read_instance(path, self.memory, self.workers, self.block_size)


@dataclass(frozen=True, kw_only=True)
class InstanceOptions(MemoryOptions):
    """An instance."""

    file: Path = INSTANCE_FILE

    def read(self) -> Instance:
        """Read it."""
        return self.read_from(self.file)


@dataclass(frozen=True)
class ClockOptions:
    """How long a round lasts."""

    seconds: bool = option("--seconds", "Let a round last as long as its batch.")
    batch_time: str | None = option(
        "--batch-time",
        "With --seconds: a .json file, one of {batch_times}, or a roofline, llama-3-8b@h100 say.",
        "MODEL",
        "batch_times",
    )

    def clock(self) -> clocks.Clock:
        """Return the clock of the model that was named, or of the default one."""
        if self.seconds:
            return clocks.Seconds(batch_time(self.batch_time or DEFAULT_MODEL))
        if self.batch_time is not None:
            raise InvalidInput("goes with --seconds", field="--batch-time")
        return clocks.ROUNDS

    def say_assumed(self) -> None:
        """Report the assumed machine, unless it was named, and whether its times are computed."""
        if self.seconds:
            say_machine(self.batch_time, "--batch-time {}", "--batch-time")


@dataclass(frozen=True)
class LimitOptions:
    """Limits of a search, and its seed."""

    time_limit: float | None = TIME_LIMIT
    threads: int | None = THREADS
    ram: str | None = option(
        "--ram",
        "Memory budget, 4G say; default: a share of the machine's memory.",
        "SIZE",
    )
    params: SolveParams | None = option(
        "--params",
        "TOML with widths, limits and shares of time, as kvopt info --params prints them.",
        "FILE",
        parser=Path,
        callback=_read_params,
    )
    seed: int = SEED


def in_seconds(nanoseconds: int | None) -> str:
    """Return a total in words."""
    return "-" if nanoseconds is None else f"{nanoseconds / NANOSECONDS:,.6g} s"


def say_machine(model: object, assumed: str, option: str) -> None:
    """Print the source of the times of a model, unless a measured one was named.

    Parameters
    ----------
    model
        Its name; None if it was left out.
    assumed
        Option with the default model, with braces for its name.
    option
        Option that names another one.
    """
    if model is None:
        say_assumed(f"{assumed.format(DEFAULT_MODEL)} (Llama-2-70B on two A100)", option)
    elif isinstance(model, str) and is_roofline(model):
        shape, gpu, gpus = parts(model)
        name, error = roofline(shape, gpu, gpus).name, expected_error(shape, gpu)
        say(f"assumed: {name} is a roofline, not a measurement: {error}")


def say_assumed(what: str, option: str) -> None:
    """Print the assumptions of a command, and the options that change them."""
    say(f"assumed: {what}; give {option} for another machine")


def say_assumed_options(context: typer.Context, names: Sequence[str]) -> None:
    """Print the assumed values of some options that were not given."""
    assumed = [
        f"--{name.replace('_', '-')} {context.params[name]}"
        for name in names
        if (source := context.get_parameter_source(name)) is not None and source.name == "DEFAULT"
    ]
    if assumed:
        say_assumed(", ".join(assumed), "them" if len(assumed) > 1 else assumed[0].split()[0])


def label(file: Path) -> str:
    """Return the name of a file for tables and progress."""
    return name_of(file) if is_standard_input(file) else file.name


@contextmanager
def undisturbed() -> Iterator[list[int]]:
    """Run, write and print to the end in spite of Ctrl-C, which ends the command afterwards.

    A search handles signals itself and stops in order; the block gets a list of the other signals.
    The second of them ends the command at once.
    """
    came: list[int] = []
    with signals_remembered(came.append):
        yield came
    finish(came[0] if came else None)


def finish(signal_number: int | None = None, status: int = 0) -> None:
    """End the command if a signal ended its work, with the status of shells, or if it failed."""
    status = status if signal_number is None else 128 + signal_number
    if status:
        raise typer.Exit(status)


def warn_oversubscription(threads: int | None) -> None:
    """Warn if the number of threads exceeds the cores of the machine."""
    cores = os.cpu_count() or 1
    if threads is not None and threads > cores:
        say(f"kvopt: warning: {threads} threads on {cores} cores slow each other down")

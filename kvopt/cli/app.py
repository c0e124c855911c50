"""The Typer app: commands in groups by their readers, with examples that the tests run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from kvopt.cli import (
    certify,
    files,
    fleet,
    hardware,
    headroom,
    run,
    solve,
    study,
    tools,
)
from kvopt.cli.common import filled_in, option, refuse, warn_oversubscription
from kvopt.cli.printing import set_up, try_outputs
from kvopt.errors import LEFT, InvalidInput
from kvopt.kernels.pipes import UNREAD, writing_output
from kvopt.version import __version__

Work = Callable[..., None]

OUTPUTS = ("output", "timeline", "certificate", "csv")
"""Options that name a file to write: one that cannot be written is refused before any work."""

MESSAGES = "Messages"
"""Panel of the options that all commands take."""

PANELS = {
    "Solve and certify": "generate solve bound run certify verify check plot",
    "Servers": "headroom import import-run fleet",
    "Research": "study report reduce",
    "Tools": "policies export info warmup",
}
"""Commands by their readers, in the order of the help; ``NAME_command`` is the command ``NAME``."""

_SCRIPTS = {
    "hunt": "python benchmarks/hunts/hunt.py",
    "submit": "python instances/submit.py",
    "theory": "python benchmarks/papers/theory.py",
}
"""Commands that are refused, and the scripts of the source tree that replace them."""

HARDWARE = "capacity fit list show"
"""Commands of ``kvopt hardware``."""

EXAMPLES = """
kvopt generate arrival-1 --n 8 --seed 3 -o a.json
kvopt generate two-point -p l=2 -p u=9 --memory 20 -o b.json
kvopt solve a.json --time-limit 60 -o best.json
kvopt generate uniform --n 6 -o - | kvopt solve - --time-limit 60
kvopt bound a.json --method volume
kvopt run a.json --policy mc-sf --policy alpha-protect:alpha=0.2
kvopt run a.json --policy svf --seconds --batch-time llama-3-8b@h100
kvopt certify a.json --policy mc-sf --time-limit 60 -o a.cert.json
kvopt certify a.json -P vllm-fcfs:block=1 -t 20 -o vllm.cert.json
kvopt verify a.cert.json
kvopt check a.json best.json
kvopt plot a.json --schedule best.json -o best.svg
kvopt plot a.json --policy mc-sf -o mc-sf.png
kvopt import samples/chat.csv --format azure --memory 2048 -o chat.json
kvopt import-run samples/vllm.jsonl -o run.json
kvopt headroom samples/chat.csv --memory 4096 -t 20 --out chat
kvopt headroom samples/vllm.jsonl -t 20 --out vllm
kvopt fleet a.json --match fcfs --router round-robin --workers 3 -t 2
kvopt fleet a.json --target mean=22 --counts 1..4 -t 2 --out fleets
kvopt study smoke --describe
kvopt study smoke --limit 1 --out smoke
kvopt report smoke
kvopt reduce three-partition --target 40 11 11 12 11 17 18
kvopt policies
kvopt export a.json -o a.mps.gz
kvopt export a.json --formulation relaxed --format lp -o -
kvopt info
kvopt info --params
kvopt warmup
kvopt hardware capacity llama-3-70b@4xh100
kvopt hardware fit samples/batches.csv --kv-ns 40 -o mine.json
kvopt hardware list
kvopt hardware show llama-3-8b@h100
"""
"""Examples in the order in which they can run; the last command of a line is the one it shows."""

_HOMES = (files, solve, run, certify, headroom, fleet, hardware, study, tools)
_WORKS: dict[str, Work] = {name: work for home in _HOMES for name, work in vars(home).items()}


@dataclass(frozen=True)
class MessageOptions:
    """Options of every command for its messages: how many, and to which file."""

    verbose: bool = option(
        "Show details: stages, each improvement.", flags="-v", rich_help_panel=MESSAGES
    )
    quiet: bool = option("Show results and errors only.", flags="-q", rich_help_panel=MESSAGES)
    log: Path | None = option(
        "Append all messages to a file, with times.", "FILE", rich_help_panel=MESSAGES
    )


class _Readable:
    """Help with names filled in, and without the names of types of Python."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            parameter.help = filled_in(parameter.help or "")
            takes = "" if parameter.param_type_name == "argument" else parameter.metavar or ""
            parameter.display_type_rich = lambda takes=takes, **_: takes
            parameter._get_number_range_help_str = lambda: None
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        except SystemExit:  # so Rich ends the process when its output is closed
            sys.exit(UNREAD)


class Command(_Readable, TyperCommand):
    """A command, which refuses options that it had before by name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments."""
        options = {word.partition("=")[0] for word in args}
        for name, reason in LEFT.items():
            refuse(f"--{name}", reason, f"--{name}" in options)
        return super().parse_args(ctx, args)


class Group(_Readable, TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments begin with; refuse one that left by name."""
        if instead := _SCRIPTS.get(args[0]):
            raise InvalidInput(f"is a script of the source tree: {instead}", field=args[0])
        return super().resolve_command(ctx, args)


def expanded(work: Work) -> Work:
    """Return a function that takes the fields of each dataclass that `work` takes, and messages.

    A command takes options that belong together as one value.
    """
    groups = {name: kind for name, kind in get_type_hints(work).items() if is_dataclass(kind)}
    parameters = [*_parameters(work), *_parameters(MessageOptions)]

    @wraps(work)
    def run(**options: Any) -> None:
        def filled(group: Any) -> Any:
            kinds = get_type_hints(group).items()
            return group(**{n: filled(k) if is_dataclass(k) else options.pop(n) for n, k in kinds})

        set_up(**vars(filled(MessageOptions)), as_json=options.get("_json", False))
        try_outputs(**{name: path for name, path in options.items() if name in OUTPUTS})
        warn_oversubscription(options.get("threads"))
        values = {name: filled(kind) for name, kind in groups.items()}
        with writing_output():
            work(**values, **options)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {field.name: field.annotation for field in parameters}
    return run


def _parameters(of: Any) -> list[Parameter]:
    """Return the parameters of a command or a dataclass, each with its option."""
    hints, collected = get_type_hints(of, include_extras=True), list[Parameter]()
    for name, parameter in signature(of).parameters.items():
        kind, declared = hints[name], parameter.default
        if is_dataclass(kind):
            collected += _parameters(kind)
            continue
        if get_origin(kind) is Annotated:
            kind, declared = get_args(kind)
        if isinstance(declared, OptionInfo) and "--" not in " ".join(declared.param_decls or ()):
            declared = copy(declared)  # one type may be of several parameters
            long = f"--{name.strip('_').replace('_', '-')}"
            declared.param_decls = (long, *(declared.param_decls or ()))
        collected.append(Parameter(name, Parameter.KEYWORD_ONLY, default=declared, annotation=kind))
    return collected


def examples_of(command: str) -> list[str]:
    """Return the examples of a command, ``solve`` or ``hardware fit`` say."""
    begin = f"kvopt {command} "
    return [
        line for line in EXAMPLES.split("\n") if f"{line} ".rpartition("| ")[2].startswith(begin)
    ]


def add_commands(to: typer.Typer, names: str, panel: str | None = None, group: str = "") -> None:
    """Add commands with their examples to an app."""
    for name in names.split():
        examples = examples_of(group + name)
        title = "Examples" if len(examples) > 1 else "Example"
        block = "\n".join(("```", *examples, "```"))
        lists = f"{files.families()}\n\n" if name == "generate" else ""
        epilog = f"{lists}**{title}**\n\n{block}"
        work = expanded(_WORKS[f"{name.replace('-', '_')}_command"])
        to.command(name, cls=Command, rich_help_panel=panel, epilog=epilog)(work)


def _new_app(about: str, **more: Any) -> typer.Typer:
    return typer.Typer(
        cls=Group, help=about, no_args_is_help=True, rich_markup_mode="markdown", **more
    )


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kvopt {__version__}")
        raise typer.Exit


def common(
    *,
    _version: bool = option("Print the version.", callback=_print_version, is_eager=True),
) -> None:
    """Find hindsight optima and lower bounds for LLM inference with a KV cache."""


app = _new_app(
    "How good can a schedule for LLM inference with a KV cache be?",
    name="kvopt",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(expanded(common))
for _panel, _names in PANELS.items():
    add_commands(app, _names, _panel)
_machines = _new_app("Machines: cache next to a model, and length of a round.")
add_commands(_machines, HARDWARE, group="hardware ")
app.add_typer(_machines, name="hardware", rich_help_panel="Servers")

"""Help as people read it: paragraphs that fill the width, options with what they take, examples.

Typer's own help keeps the line breaks of the source and names types of Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from rich.cells import cell_len
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from kvopt.cli.examples import EXAMPLES
from kvopt.cli.messages import PipedConsole
from kvopt.cli.names import filled_in
from kvopt.kernels.pipes import ended_by_reader

Row = tuple[Text, Text]

MESSAGES = "Messages"
"""Panel of the options that all commands take: they are added to each of them."""

_WIDEST_NAME = 26
"""Cells up to which what an option takes stands in the line of its name."""

_INDENT = " " * 4
"""Before a long option without a short one."""

_CODE = re.compile(r"`+([^`]+)`+")


class Command(TyperCommand):
    """A command with help as described above."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - not what Click writes
        """Print the help."""
        _show(self, ctx)


class Group(TyperGroup):
    """All commands, each with the options for messages."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        shared = [option for option in self.params if _panel(option) == MESSAGES]
        for command in self.commands.values():
            command.params += shared

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Print the help."""
        _show(self, ctx)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; it ends quietly when its output is read no more."""
        with ended_by_reader():
            return super().invoke(ctx)


def _show(command: Any, context: Any) -> None:
    console = PipedConsole(highlight=False, emoji=False)
    usage = " ".join(["[OPTIONS]", *_usage(command)])
    console.print(Padding(Text.assemble("Usage: ", (context.command_path, "bold"), f" {usage}"), 1))
    for paragraph in paragraphs(command.help or ""):
        console.print(Padding(_marked(paragraph), (0, 1, 1, 1)))
    panels: dict[str, list[Row]] = {}
    for parameter in command.get_params(context):
        if not getattr(parameter, "hidden", False):
            panels.setdefault(_panel(parameter), []).append(_described(parameter))
    if isinstance(command, TyperGroup):
        panels["Commands"] = [
            (Text(name, "bold cyan"), _marked(paragraphs(each.help or "")[0]))
            for name, each in command.commands.items()
        ]
    for title, rows in _ordered(panels):
        console.print(_boxed(title, _grid(rows)))
    if command.epilog:
        title, _, rest = command.epilog.partition("\n")
        rows = [(Text(name, "bold"), _marked(about)) for name, about in _pairs(rest)]
        console.print(_boxed(title, _grid(rows)))
    if examples := EXAMPLES.get(command.name or ""):
        title = "Examples" if len(examples) > 1 else "Example"
        console.print(_boxed(title, Text("\n".join(examples))))


def paragraphs(text: str) -> list[str]:
    """Return paragraphs without the line breaks of the source."""
    return [" ".join(filled_in(part).split()) for part in inspect.cleandoc(text).split("\n\n")]


def _usage(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            name = parameter.metavar or parameter.name.upper()
            name += "..." if parameter.nargs == -1 and "..." not in name else ""
            yield name if parameter.required else f"[{name}]"
    if isinstance(command, TyperGroup):
        yield "COMMAND [ARGS]..."


def _panel(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    if str(parameter.name).endswith("_completion"):
        return "Completion"
    return parameter.rich_help_panel or "Options" if hasattr(parameter, "help") else "Options"


def _ordered(panels: dict[str, list[Row]]) -> Iterable[tuple[str, list[Row]]]:
    """Return panels with what all commands share at the end."""
    last = ("Options", MESSAGES, "Completion", "Commands")
    return sorted(panels.items(), key=lambda item: last.index(item[0]) if item[0] in last else -1)


def _described(parameter: Any) -> Row:
    """Return how an argument or option is written, and what it means."""
    if parameter.param_type_name == "argument":
        name = Text(parameter.metavar or parameter.name.upper(), "bold cyan")
    else:
        name = _written(parameter)
    about = _marked(" ".join(paragraphs(getattr(parameter, "help", None) or "")))
    default = parameter.default
    if parameter.required:
        about.append(" [required]", "red")
    elif default is not None and not getattr(parameter, "is_flag", False):
        shown = f"{default:g}" if isinstance(default, float) else default
        about.append(f" [default: {shown}]", "dim")
    return name, about


def _written(parameter: Any) -> Text:
    """Return the flags of an option and what it takes, in a line of its own where that is long."""
    flags = sorted(parameter.opts, key=len)
    if parameter.secondary_opts:
        flags = [flags[0].replace("--", "--[no-]")]
    name = Text(", ".join(flags), "bold cyan")
    if flags[0].startswith("--"):
        name = Text(_INDENT) + name
    if not getattr(parameter, "is_flag", False):
        fits = name.cell_len + 1 + cell_len(parameter.metavar) <= _WIDEST_NAME
        name.append(" " if fits else f"\n{_INDENT}")
        name.append(parameter.metavar, "yellow")
    return name


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and what is said of them, one in each line."""
    for line in text.splitlines():
        name, _, about = line.partition(": ")
        yield name, about


def _marked(text: str) -> Text:
    """Return a text with what stands between backquotes bold."""
    made = Text()
    for place, part in enumerate(_CODE.split(text)):
        made.append(part, "bold" if place % 2 else "")
    return made


def _grid(rows: Iterable[Row]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _boxed(title: str, content: Table | Text) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="dim")

"""Options and parameters in the pages, from the commands themselves."""

from __future__ import annotations

import re
from typing import Any

from typer.main import get_command

from kvopt.cli.app import MESSAGES, app
from kvopt.cli.common import filled_in
from kvopt.incumbent.params import DEFAULT

_SECTION = re.compile(r"^## `kvopt (.+)`\n(?:(?!^## ).*\n?)*", re.MULTILINE)
_PARAMETERS = "`kvopt info --params` prints all of them.\n"


def with_options(text: str) -> str:
    """Return a page with a table of options at the end of the section of each command."""
    return _SECTION.sub(
        lambda section: f"{section[0].rstrip()}\n\n{table_of(command_named(section[1]))}\n", text
    )


def with_parameters(text: str) -> str:
    """Return a page that shows what ``--params`` may change."""
    return text.replace(_PARAMETERS, f"{_PARAMETERS}\n```toml\n{DEFAULT.to_toml()}```\n")


def command_named(name: str) -> Any:
    """Return a command, ``solve`` or ``hardware fit`` say."""
    found: Any = get_command(app)
    for part in name.split():
        found = found.commands[part]
    return found


def table_of(command: Any) -> str:
    """Return what a command takes: a row for each argument and option but those of messages."""
    rows = ["| option | meaning |", "|---|---|"]
    for parameter in sorted(command.params, key=lambda each: each.param_type_name):
        if getattr(parameter, "rich_help_panel", None) == MESSAGES or parameter.name == "help":
            continue
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            names = [parameter.metavar or parameter.name.upper()]
        shown = ", ".join(f"`{name}`" for name in names).replace("|", r"\|")
        meaning = re.sub(r"\s+", " ", filled_in(parameter.help or "")).replace("|", r"\|")
        rows.append(f"| {shown} | {meaning} |")
    return "\n".join(rows) + "\n"

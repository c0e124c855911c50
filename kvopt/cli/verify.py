"""``kvopt verify``: check a certificate in integers, without any solver."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from kvopt.cli import common
from kvopt.cli.common import option
from kvopt.errors import InvalidInput
from kvopt.files.reading import is_standard_input
from kvopt.verify import verify


def verify_command(
    file: Annotated[
        Path, typer.Argument(metavar="CERT", help="Certificate file; - is standard input.")
    ],
    json: common.Json = False,
    budget: Annotated[
        float, option("--budget", "Allow K times the default number of steps and bytes.", "K")
    ] = 1.0,
) -> None:
    """Check every claim of a certificate in exact integers, and say what it proves.

    No solver is used, and nothing of what made the certificate.  ``python -m kvopt.verify``
    does the same with the standard library alone.  Exit status: 0 valid, 1 invalid,
    2 unreadable, or more to check than the budget allows.
    """
    if not 0 < budget < math.inf:
        raise InvalidInput("must be a positive number", field="--budget")
    verdict = verify("/dev/stdin" if is_standard_input(file) else file, budget)
    if json:
        common.print_json(
            {"valid": verdict.valid, "readable": verdict.readable, "report": verdict.lines}
        )
    else:
        print(*verdict.lines, sep="\n")
    if verdict.exit_status:
        raise typer.Exit(verdict.exit_status)

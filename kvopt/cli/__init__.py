"""The command line.  One module a command, one Typer app for all."""

from __future__ import annotations

import sys

from kvopt.errors import KvoptError


def main() -> None:
    """Run ``kvopt``; what a user can mend ends with one line and exit status 2."""
    from kvopt.cli.app import app

    try:
        app()
    except KvoptError as error:
        print(f"kvopt: {error}", file=sys.stderr)
        sys.exit(2)

"""The command line.  One module a command, one Typer app for all."""

from __future__ import annotations

import os
import sys
import threading

from kvopt.errors import KvoptError


def main() -> None:
    """Run ``kvopt``; what a user can mend ends with one line and exit status 2."""
    from kvopt.cli.app import app

    try:
        app()
    except KvoptError as error:
        print(f"kvopt: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if any(thread.name == "kvopt-solver" for thread in threading.enumerate()):
            # A solver that would not stop must not keep the process, nor crash its end.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code if isinstance(end.code, int) else 0)
        raise

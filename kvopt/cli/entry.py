"""Begin and end of a command: exit statuses, errors in one line, Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from traceback import format_exception
from typing import TYPE_CHECKING, NoReturn

from kvopt.errors import KvoptError
from kvopt.kernels.budget import begin_command
from kvopt.kernels.pipes import open_closed_streams, writing_output

if TYPE_CHECKING:
    import typer

REFUSED = 2
"""Exit status for an error that a user can mend, printed in one line."""

INTERRUPTED = 130
"""Exit status after Ctrl-C: 128 and the number of the signal, as in shells."""


def main() -> None:
    """Run ``kvopt``; an error of the user ends with one line and exit status 2."""
    open_closed_streams()
    begin_command()
    try:
        app = _app()
        from kvopt.cli.printing import complain, detail, messages_shown

        with messages_shown():
            try:
                with writing_output():
                    app(prog_name="kvopt")
            except KvoptError as error:
                complain(f"kvopt: {error}")
                if error.__cause__ is not None:
                    detail("".join(format_exception(error.__cause__)).rstrip())
                sys.exit(REFUSED)
    except KeyboardInterrupt:  # before any command began
        _leave(INTERRUPTED)
    except SystemExit as end:
        # A solver, compiler or display that does not stop must not crash the end of the process.
        if any(thread.daemon for thread in threading.enumerate()):
            _leave(end.code if isinstance(end.code, int) else 0)
        if end.code == INTERRUPTED:
            _leave(INTERRUPTED)
        raise


def _app() -> typer.Typer:
    """Load the commands; Ctrl-C ends the process at once, since exceptions may get lost."""
    before = signal.getsignal(signal.SIGINT)
    is_first = before is signal.default_int_handler and (
        threading.current_thread() is threading.main_thread()
    )
    if is_first:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        from kvopt.cli.app import app
    finally:
        if is_first:
            signal.signal(signal.SIGINT, before)
    return app


def _leave(status: int) -> NoReturn:
    """End the process now.

    If Ctrl-C interrupted code that a module compiles from a string while it is loaded, Python would
    kill itself by that signal at its end, although it was caught.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)

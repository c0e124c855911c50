"""Messages of a command: on standard error by verbosity, and in a log.

Everything goes through the logger ``kvopt``, which the library uses as well: details as
``DEBUG``, messages as ``INFO``, and the error that ends the command as ``ERROR``.
"""

from __future__ import annotations

import io
import logging
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from rich.cells import set_cell_size
from rich.console import Console

from kvopt.errors import InvalidInput, one_line
from kvopt.version import __version__

_LOGGER = logging.getLogger("kvopt")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class _Shown(logging.Handler):
    """Print messages without breaking lines, so that paths can be copied."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        print(record.getMessage(), file=sys.stderr)


class _InFile(logging.FileHandler):
    """Appends messages to a file, until that fails."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        """Report once that the log ends here, and continue."""
        _LOGGER.removeHandler(self)
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()  # logging would try again
        reason = getattr(sys.exc_info()[1], "strerror", None) or sys.exc_info()[1]
        say(f"kvopt: warning: --log {self.baseFilename}: cannot be written: {reason}")


_shown = _Shown()


@contextmanager
def messages_shown() -> Iterator[None]:
    """Print messages while a command runs, and restore all loggers after it."""
    _shown.setLevel(logging.INFO)
    _LOGGER.addHandler(_shown)
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.disabled = False  # other packages that set up logging turn this on
    out, show = sys.stdout, warnings.showwarning
    warnings.showwarning = _say_warning
    try:
        yield
    finally:
        if isinstance(sys.stdout, _AsMessages):
            sys.stdout = out
        warnings.showwarning = show
        for handler in [*_LOGGER.handlers]:
            if isinstance(handler, (_Shown, _InFile)):
                _LOGGER.removeHandler(handler)
                handler.close()
        _LOGGER.setLevel(logging.NOTSET)


def _say_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    say(f"kvopt: warning: {one_line(str(message))}")


def set_up(verbose: bool, quiet: bool, log: Path | None) -> None:
    """Show more or less from now on, and append every message to a file, also hidden ones."""
    if (verbose or is_loud()) and (quiet or is_quiet()):
        raise InvalidInput("goes without --verbose", field="--quiet")
    if verbose:
        _shown.setLevel(logging.DEBUG)
        _LOGGER.setLevel(logging.DEBUG)
    if quiet:
        _shown.setLevel(logging.ERROR)
    if log is not None:
        _log_to(log)


def is_loud() -> bool:
    """Whether details are shown."""
    return _shown.level <= logging.DEBUG


def is_quiet() -> bool:
    """Whether only results and errors are shown."""
    return _shown.level > logging.INFO


def _log_to(path: Path) -> None:
    if str(path) == "-":
        raise InvalidInput("must be a file", field="--log -")
    try:
        handler = _InFile(path, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot be written: {reason}", field=f"--log {path}") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.DEBUG)
    detail(f"kvopt {__version__}: {command_line()}")


def command_line() -> str:
    """Return the command as it was given, so that it can be given again."""
    return shlex.join(["kvopt", *sys.argv[1:]])


def say(line: str) -> None:
    """Print a message for people watching."""
    _LOGGER.info("%s", line)


def detail(line: str) -> None:
    """Print a message of ``--verbose``."""
    _LOGGER.debug("%s", line)


def complain(line: str) -> None:
    """Print the error that ends the command."""
    _LOGGER.error("%s", line)


def is_watched() -> bool:
    """Whether a person sees standard error, so that live progress makes sense."""
    return sys.stderr.isatty() and not is_quiet()


def show_line(line: str) -> None:
    """Replace the line of a terminal; its end is cut, because wrapped lines cannot be replaced."""
    whole = set_cell_size(line, Console(stderr=True).width - 1).rstrip()
    print(f"\r\x1b[K{whole}", end="", file=sys.stderr, flush=True)


class _AsMessages(io.TextIOBase):
    """Turn printed lines into messages."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> int:
        """Log the complete lines of a text."""
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            say(_STYLES.sub("", line))
        return len(text)

    def isatty(self) -> bool:
        """Whether a table has to fit a terminal."""
        return sys.stderr.isatty()


def print_results_as_messages() -> None:
    """Reserve standard output for a file that is written to it."""
    stream: TextIO = _AsMessages()  # type: ignore[assignment]
    sys.stdout = stream

"""Messages of a command: on standard error by verbosity, in a log, and as live progress.

Everything goes through the logger ``kvopt``, which the library uses as well: details as
``DEBUG``, messages as ``INFO``, and the error that ends the command as ``ERROR``.
"""

from __future__ import annotations

import io
import logging
import re
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.cells import set_cell_size
from rich.console import Console

from kvopt.errors import InvalidInput, one_line
from kvopt.incumbent.result import Progress
from kvopt.kernels import compiler
from kvopt.kernels.clock import wall_time
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.show.summary import percent
from kvopt.version import __version__

_LOGGER = logging.getLogger("kvopt")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")

_LOG_EVERY = 1.0
"""Least seconds between two improvements that go into a log file."""

_RENEW_EVERY = 0.2
"""Seconds between two updates of the terminal."""

say, detail, complain = _LOGGER.info, _LOGGER.debug, _LOGGER.error
"""Print a message, a message of ``--verbose``, and the error that ends the command."""


class _Shown(logging.Handler):
    """Print messages without breaking lines, so that paths can be copied."""

    as_json = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message."""
        _print(record.getMessage())


class _InFile(logging.FileHandler):
    """Appends messages to a file, until that fails."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        """Report once that the log ends here, and continue."""
        _LOGGER.removeHandler(self)
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()  # logging would try again
        reason = getattr(sys.exc_info()[1], "strerror", None) or sys.exc_info()[1]
        warn(f"--log {self.baseFilename}: cannot be written: {reason}")


_shown = _Shown()


@contextmanager
def messages_shown() -> Iterator[None]:
    """Print messages while a command runs, and restore all loggers after it."""
    _shown.setLevel(logging.INFO)
    _shown.as_json = False
    _LOGGER.addHandler(_shown)
    _LOGGER.setLevel(logging.INFO)
    _LOGGER.disabled = False  # other packages that set up logging turn this on
    out, show = sys.stdout, warnings.showwarning
    warnings.showwarning = warn
    try:
        yield
    finally:
        if isinstance(sys.stdout, AsMessages):
            sys.stdout = out
        warnings.showwarning = show
        for handler in [*_LOGGER.handlers]:
            if isinstance(handler, (_Shown, _InFile)):
                _LOGGER.removeHandler(handler)
                handler.close()
        _LOGGER.setLevel(logging.NOTSET)


def warn(message: Warning | str, *_where: Any, **_more: Any) -> None:
    """Print a warning; those of Python come with a place, which users do not need."""
    say(f"kvopt: warning: {one_line(str(message))}")


def set_up(verbose: bool, quiet: bool, log: Path | None, as_json: bool = False) -> None:
    """Show more or less from now on, and append every message to a file, also hidden ones.

    With ``as_json`` standard output holds one JSON object, and no progress is shown.
    """
    _shown.as_json = as_json
    for is_wanted, level in ((verbose, logging.DEBUG), (quiet, logging.ERROR)):
        if is_wanted and _shown.level not in (logging.INFO, level):
            raise InvalidInput("goes without --verbose", field="--quiet")
        if is_wanted:
            _shown.setLevel(level)
            _LOGGER.setLevel(min(level, _LOGGER.level))
    if log is None:
        return
    if str(log) == "-":
        raise InvalidInput("must be a file", field="--log -")
    try:
        handler = _InFile(log, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot be written: {reason}", field=f"--log {log}") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.DEBUG)
    detail(f"kvopt {__version__}: {command_line()}")


def is_json() -> bool:
    """Whether standard output holds one JSON object."""
    return _shown.as_json


def command_line() -> str:
    """Return the command as it was given, so that it can be given again."""
    return shlex.join(["kvopt", *sys.argv[1:]])


def is_watched() -> bool:
    """Whether a person sees standard error, so that live progress makes sense."""
    return sys.stderr.isatty() and _shown.level <= logging.INFO and not is_json()


def show_line(line: str) -> None:
    """Replace the line of a terminal; its end is cut, because wrapped lines cannot be replaced."""
    whole = set_cell_size(line, Console(stderr=True).width - 1).rstrip()
    _print(f"\r\x1b[K{whole}", end="")


def _print(text: str, end: str = "\n") -> None:
    """Print to standard error; work goes on if that is full."""
    with suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)


class AsMessages(io.TextIOBase):
    """Standard output that turns printed lines into messages."""

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


class LiveProgress:
    """An observer that prints both sides as they move.

    A terminal shows one line that is kept up to date; a file gets a line for an improvement, at
    most one a second.  Details are all improvements, line by line.  With ``--json`` nothing is
    printed.
    """

    def __init__(self, label: str, clock: Clock = ROUNDS) -> None:
        self._label, self._clock = label, clock
        self._live = is_watched() and _shown.level > logging.DEBUG
        self._sides, self._printed = "", 0.0
        self._began = wall_time()
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, progress: Progress) -> None:
        """Record an improvement."""
        latency, bound = map(self._total, (progress.objective, progress.lower_bound))
        gap = percent(progress.gap)
        self._sides = f"{progress.engine}  latency {latency}  bound {bound}  gap {gap}"
        now, line = time.monotonic(), f"{self._label}  {progress.seconds:6.1f} s  {self._sides}"
        is_late = self._done.is_set()  # of a solver that was left behind
        if is_json() or self._live or is_late or now - self._printed < _LOG_EVERY:
            detail(line)
        else:
            self._printed = now
            say(line)

    def __enter__(self) -> LiveProgress:
        if not is_json():
            self._ticker.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if is_json():
            return
        self._done.set()
        self._ticker.join()
        if self._live:
            show_line("")

    def _total(self, value: int | None) -> str:
        if value is None:
            return "-"
        return f"{value:,}" if self._clock.is_even else f"{value / self._clock.scale:,.6g} s"

    def _tick(self) -> None:
        while self._live and not self._done.wait(_RENEW_EVERY):
            now = "compiling  " if compiler.is_running() else ""
            if now or self._sides:
                seconds = wall_time() - self._began
                show_line(f"{seconds:6.1f} s  {now}{self._sides}  {self._label}")

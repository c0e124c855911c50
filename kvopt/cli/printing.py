"""What commands print: messages, live progress, JSON, tables, and files that they write.

Messages are on standard error by verbosity, in a log, and as live progress.  Everything goes
through the logger ``kvopt``, which the library uses as well: details as ``DEBUG``, messages as
``INFO``, and the error that ends the command as ``ERROR``.

A table folds words to fit the terminal; in a file or a pipe it has its full width.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shlex
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvopt.errors import InvalidInput, KvoptError, one_line, refuse
from kvopt.files.atomic import TEMPORARY, own_descriptor, refuse_unwritable
from kvopt.incumbent.result import Progress
from kvopt.kernels import compiler
from kvopt.kernels.budget import wall_time
from kvopt.problem.clocks import ROUNDS, Clock
from kvopt.show.summary import percent
from kvopt.version import __version__

_LOGGER = logging.getLogger("kvopt")

_LOG_EVERY = 1.0
"""Shortest time, in seconds, between two improvements that go into a log file."""

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
        if is_wanted:
            is_other = _shown.level not in (logging.INFO, level)
            refuse("--quiet", "goes without --verbose", is_other)
            _shown.setLevel(level)
            _LOGGER.setLevel(min(level, _LOGGER.level))
    if log is None:
        return
    refuse("--log -", "must be a file", str(log) == "-")
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


# ---- JSON and tables -----------------------------------------------------------------------------


_ANY_WIDTH = 1_000_000

_NUMBER = re.compile(r"\d|-$")
"""Pattern of the begin of each cell in a column of numbers."""

_NARROWEST = 16
"""Characters to which a column of words may shrink."""


def show(value: Mapping[str, Any], lines: Iterable[str] = ()) -> None:
    """Print one JSON object on standard output if ``--json`` asks for it, else lines."""
    if is_json():
        lines = [json.dumps(value, ensure_ascii=False, allow_nan=False)]
    for line in lines:
        print(line)


def fitting(sentence: str) -> str:
    """Return a sentence in lines that fit the terminal, as it is for a file or a pipe."""
    return fill(sentence, _console().width, break_long_words=False, break_on_hyphens=False)


def _console() -> Console:
    """Return the console of standard output; a file or a pipe is as wide as it has to be."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else _ANY_WIDTH)


def or_dash(value: object) -> str:
    """Return a cell; an unknown value is a dash, never 0."""
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def table(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the lines of a table, none without rows; numbers are aligned to the right.

    Words are folded to fit a terminal, numbers never; a file or a pipe has one line for each row.
    """
    if not rows:
        return []
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns = [[_cell(row[name]) for row in rows] for name in rows[0]]
    for name, cells in zip(rows[0], columns, strict=True):
        is_number = all(map(_NUMBER.match, cells))
        whole = max(map(cell_len, (*name.split(), *cells)))
        grid.add_column(
            Text(name),
            justify="right" if is_number else "left",
            min_width=whole if is_number else min(whole, _NARROWEST),
            overflow="fold",
        )
    for row in zip(*columns, strict=True):
        grid.add_row(*map(Text, row))
    console = _console()
    with console.capture() as printed:
        console.print(grid, crop=False)
    return [*map(str.rstrip, printed.get().splitlines())]


_KINDS = {
    "all": "best",
    "vllm": "with vLLM's options",
    "vllm without outputs": "and outputs unknown",
}
"""Kinds of settings, in words."""


def settings_table(settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table with the best settings of a server."""
    return table(
        [
            {
                "server, simulated": _KINDS.get(kind, kind),
                "mean s": f"{row['mean_seconds']:.4f}",
                "policy": " behind ".join(filter(None, (row["policy"], row.get("router")))),
                "vllm serve": row["vllm"],
            }
            for kind, row in settings.items()
        ]
    )


def _cell(value: object) -> str:
    """Return a cell; for an object its keys with their values."""
    if isinstance(value, dict):
        value = [key if member is None else f"{key}={member}" for key, member in value.items()]
    return one_line(", ".join(value) if isinstance(value, list) else or_dash(value))


# ---- files that commands write -------------------------------------------------------------------


CHECKED = "; kvopt verify checks it"
"""Remark about a certificate."""


def try_outputs(**outputs: Path | None) -> None:
    """Refuse a file that cannot be written, before the work whose result it holds.

    The paths have the names of their options.  If one of them is standard output, everything else
    is printed to standard error.
    """
    places = {f"--{name} {path}": path for name, path in outputs.items() if path is not None}
    piped = [place for place, path in places.items() if own_descriptor(path) == 1]
    others = ["--json"] * is_json() + piped[1:]
    if piped and others:
        reason = f"goes without {others[0]}: both are standard output"
        raise InvalidInput(reason, field=piped[0])
    if piped:
        sys.stdout = sys.stderr if _shown.level <= logging.INFO else io.StringIO()
    for place, path in places.items():
        with _placed(place):
            refuse_unwritable(path)


def try_folder(path: Path) -> None:
    """Refuse a folder that can neither be used nor created; create none."""
    real = path.absolute()
    existing = next(place for place in (real, *real.parents) if os.path.lexists(place))
    with _placed(f"--out {path}"):
        refuse_unwritable(existing / TEMPORARY)


@contextmanager
def written(
    path: Path | None,
    write: Callable[[Any, Path], object],
    value: object,
    about: str | None = None,
    option: str = "--output",
) -> Iterator[bool]:
    """Write a value to a file, let the block print the result, and report a failed write last.

    A full disk must not lose the result of an hour.  The block learns whether a file was
    written: none is without a path, or without a value.  With a remark the file is reported.
    """
    failure, is_there = None, False
    if path is not None and value is not None:
        try:
            with _placed(f"{option} {path}"):
                write(value, path)
            is_there = True
        except KvoptError as error:
            failure = error
    yield is_there
    if failure is not None:
        raise failure
    if path is not None and is_there and about is not None:
        say(f"wrote {name_of(path)}{about}")


def write_output(
    path: Path, write: Callable[[Any, Path], object], value: object, about: str = ""
) -> None:
    """Write the file of ``--output`` if nothing else is printed, and report it."""
    with written(path, write, value, about):
        pass


def name_of(path: Path) -> str:
    """Return the name of a written file for messages."""
    return "standard output" if own_descriptor(path) == 1 else str(path)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Name option and path in an error about the path; one with a field is about the content."""
    try:
        yield
    except InvalidInput as error:
        if error.field is not None:
            raise
        raise InvalidInput(error.reason, field=place) from None

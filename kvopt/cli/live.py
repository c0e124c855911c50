"""Live progress of a search on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from rich.cells import cell_len

from kvopt.cli.common import or_dash, percent
from kvopt.cli.messages import console, detail, is_loud, is_watched, say
from kvopt.incumbent.result import Progress
from kvopt.kernels.compile_clock import FIRST_USE, compile_seconds, compiling, working_time

_WORTH_SAYING = 1.0
"""Seconds of compiling from which on they are mentioned at the end."""

_LOG_EVERY = 1.0
"""Least seconds between two improvements that go into a log file."""

_RENEW_EVERY = 0.2
"""Seconds between two looks at what a terminal is to show, and at whether code is compiled."""


class LiveProgress:
    """An observer that prints both sides as they move, and says when code is compiled.

    On a terminal one line is kept up to date; elsewhere there is a line for an improvement, at
    most one a second, and one for compiling.  Details are all improvements, line by line.  Total
    latencies are worded by ``total``.
    """

    def __init__(
        self, label: str, quiet: bool = False, total: Callable[[int | None], str] = or_dash
    ) -> None:
        self._label, self._total = label, total
        self._quiet = quiet
        self._live = is_watched() and not quiet and not is_loud()
        self._latest: Progress | None = None
        self._printed = 0.0
        self._began, self._compiled = working_time(), compile_seconds()
        self._said_compiling = self._is_dirty = False
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, progress: Progress) -> None:
        """Take note of an improvement."""
        self._latest = progress
        now, line = time.monotonic(), self._line(progress, progress.seconds)
        if self._quiet or self._live or now - self._printed < _LOG_EVERY:
            detail(line)
        else:
            self._printed = now
            say(line)

    def __enter__(self) -> LiveProgress:
        if not self._quiet:
            self._ticker.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._quiet:
            return
        self._done.set()
        self._ticker.join()
        if self._is_dirty:
            _show("")
        if (seconds := self._compiling_for()) >= _WORTH_SAYING:
            say(f"{self._label}: compiling took {seconds:.0f} s; limits and seconds are without it")

    def _tick(self) -> None:
        while not self._done.wait(_RENEW_EVERY):
            if self._live:
                self._renew()
            elif compiling().is_running and not self._said_compiling:
                self._said_compiling = True
                say(f"{self._label}  {FIRST_USE}")

    def _renew(self) -> None:
        state = compiling()
        if state.is_running:
            count = f"{state.started} of ~{state.known} functions, {self._compiling_for():.0f} s"
            whole = f"{self._label}  compiling (first use after installation): {count}"
            line = _fitting(console.width, whole, f"compiling: {count}", "compiling")
        elif self._latest is not None:
            line = self._line(self._latest, working_time() - self._began, console.width)
        else:
            return
        self._is_dirty = True
        _show(line)

    def _compiling_for(self) -> float:
        return compile_seconds() - self._compiled

    def _line(self, progress: Progress, seconds: float, width: int | None = None) -> str:
        """Return both sides; where ``width`` is too little, without names rather than cut."""
        sides = (
            f"latency {self._total(progress.objective)}  "
            f"bound {self._total(progress.lower_bound)}  gap {percent(progress.gap)}"
        )
        clock = f"{seconds:6.1f} s"
        whole = f"{self._label}  {clock}  {progress.engine}  {sides}"
        return _fitting(
            width, whole, f"{self._label}  {clock}  {sides}", f"{clock}  {sides}", sides
        )


def _fitting(width: int | None, *lines: str) -> str:
    """Return the first line that fits, else the last: a line that wraps would stay."""
    return next((line for line in lines if width is None or cell_len(line) < width), lines[-1])


def _show(line: str) -> None:
    """Replace the line that a terminal shows."""
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

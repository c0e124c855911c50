"""Live progress of a search on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from rich.cells import cell_len
from rich.markup import escape

from kvopt.cli.common import is_watched, messages, or_dash, percent
from kvopt.kernels.compiling import compile_seconds, compiling, working_time
from kvopt.search.result import Progress

_WORTH_SAYING = 1.0
"""Seconds of compiling from which on they are mentioned at the end."""


class LiveProgress:
    """An observer that prints both sides as they move, and says when code is compiled.

    On a terminal one line is kept up to date; in a log file each improvement is a line, at
    most one a second, and compiling is one.
    """

    def __init__(self, label: str, quiet: bool = False) -> None:
        self._label = label
        self._quiet = quiet
        self._live = is_watched() and not quiet
        self._latest: Progress | None = None
        self._printed = 0.0
        self._began, self._compiled = working_time(), compile_seconds()
        self._said_compiling = self._is_dirty = False
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, progress: Progress) -> None:
        """Take note of an improvement."""
        self._latest = progress
        now = time.monotonic()
        if not self._quiet and not self._live and now - self._printed >= 1.0:
            self._printed = now
            messages.print(self._line(progress, progress.seconds), markup=False)

    def __enter__(self) -> LiveProgress:
        if not self._quiet:
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if not self._quiet:
            self._ticker.join()
        if self._is_dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        seconds = compile_seconds() - self._compiled
        if seconds >= _WORTH_SAYING and not self._quiet:
            messages.print(
                f"{escape(self._label)}: compiling took {seconds:.0f} s, this once; "
                "limits and seconds are without it",
                soft_wrap=True,
            )

    def _tick(self) -> None:
        while not self._done.wait(0.2):
            if self._live:
                self._renew()
            elif compiling().is_running and not self._said_compiling:
                self._said_compiling = True
                messages.print(
                    f"{escape(self._label)}  compiling, as the first use after an installation "
                    "does; limits do not count it",
                    soft_wrap=True,
                )

    def _renew(self) -> None:
        if compiling().is_running:
            line = self._compiling_line(messages.width)
        elif self._latest is not None:
            line = self._line(self._latest, working_time() - self._began, messages.width)
        else:
            return
        self._is_dirty = True
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def _compiling_line(self, width: int) -> str:
        state = compiling()
        rest = f"{state.started} of ~{state.known} functions, "
        rest += f"{compile_seconds() - self._compiled:.0f} s"
        lines = [(self._label, f"compiling (first use after installation): {rest}")]
        return _fitting([*lines, (f"compiling: {rest}",), ("compiling",)], width)

    def _line(self, progress: Progress, seconds: float, width: int | None = None) -> str:
        """Return both sides; where ``width`` is too little, without names rather than cut."""
        sides = (
            f"latency {or_dash(progress.objective)}  bound {or_dash(progress.lower_bound)}  "
            f"gap {percent(progress.gap)}"
        )
        clock = f"{seconds:6.1f} s"
        whole = (self._label, clock, progress.engine, sides)
        return _fitting([whole, (self._label, clock, sides), (clock, sides), (sides,)], width)


def _fitting(lines: Sequence[Sequence[str]], width: int | None) -> str:
    """Return the first line that fits, else the last: a line that wraps would stay."""
    joined = ["  ".join(parts) for parts in lines]
    return next((line for line in joined if width is None or cell_len(line) < width), joined[-1])

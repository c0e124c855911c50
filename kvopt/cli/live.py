"""Live progress of a search on standard error."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from rich.cells import cell_len

from kvopt.cli.common import is_watched, messages, or_dash, percent
from kvopt.result import Progress


class LiveProgress:
    """An observer that prints both sides as they move.

    On a terminal one line is kept up to date; in a log file each improvement is a line, at
    most one a second.
    """

    def __init__(self, label: str, quiet: bool = False) -> None:
        self._label = label
        self._quiet = quiet
        self._live = is_watched() and not quiet
        self._latest: Progress | None = None
        self._printed = 0.0
        self._began = time.monotonic()
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
        if self._live:
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._live:
            self._ticker.join()
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _tick(self) -> None:
        while not self._done.wait(0.2):
            if self._latest is not None:
                line = self._line(self._latest, time.monotonic() - self._began, messages.width)
                sys.stderr.write(f"\r\x1b[K{line}")
                sys.stderr.flush()

    def _line(self, progress: Progress, seconds: float, width: int | None = None) -> str:
        """Return both sides; where ``width`` is too little, without names rather than cut."""
        sides = (
            f"latency {or_dash(progress.objective)}  bound {or_dash(progress.lower_bound)}  "
            f"gap {percent(progress.gap)}"
        )
        clock = f"{seconds:6.1f} s"
        whole = (self._label, clock, progress.engine, sides)
        lines = ["  ".join(parts) for parts in (whole, (self._label, clock, sides), (clock, sides))]
        return next((line for line in lines if width is None or cell_len(line) < width), sides)

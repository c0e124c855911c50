"""Live progress of a search on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kvopt.cli.messages import detail, is_loud, is_watched, say, show_line
from kvopt.cli.tables import or_dash
from kvopt.incumbent.result import Progress
from kvopt.kernels.compile_clock import FIRST_USE, compile_seconds, compiling, working_time
from kvopt.show.summary import percent

_WORTH_SAYING = 1.0
"""Compilation of at least so many seconds is reported at the end."""

_LOG_EVERY = 1.0
"""Least seconds between two improvements that go into a log file."""

_RENEW_EVERY = 0.2
"""Seconds between two updates of the terminal, and between two checks for compilation."""


class LiveProgress:
    """An observer that prints both sides as they move, and reports compilation.

    A terminal shows one line that is kept up to date; a file gets a line for an improvement, at
    most one a second, and one for compilation.  Details are all improvements, line by line.

    Parameters
    ----------
    label
        Name of the current work.
    quiet
        Whether nothing is printed.
    total
        Returns a total latency in words.
    """

    def __init__(
        self, label: str, quiet: bool = False, total: Callable[[int | None], str] = or_dash
    ) -> None:
        self._label, self._total = label, total
        self._quiet = quiet
        self._live = is_watched() and not quiet and not is_loud()
        self._sides = ""
        self._printed = 0.0
        self._began, self._compiled = working_time(), compile_seconds()
        self._done = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __call__(self, progress: Progress) -> None:
        """Record an improvement."""
        total = self._total
        self._sides = (
            f"{progress.engine}  latency {total(progress.objective)}  "
            f"bound {total(progress.lower_bound)}  gap {percent(progress.gap)}"
        )
        now, line = time.monotonic(), f"{self._label}  {progress.seconds:6.1f} s  {self._sides}"
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
        if self._live:
            show_line("")
        if (seconds := self._compiling_for()) >= _WORTH_SAYING:
            say(f"{self._label}: compiling took {seconds:.0f} s; limits and seconds are without it")

    def _tick(self) -> None:
        said = False
        while not self._done.wait(_RENEW_EVERY):
            state = compiling()
            if state.is_running and not self._live and not said:
                said = True
                say(f"{self._label}  {FIRST_USE}")
            elif state.is_running and self._live:
                count = f"{state.started} of ~{state.known} functions"
                clock = f"{self._compiling_for():.0f} s"
                show_line(
                    f"compiling (first use after installation): {count}, {clock}  {self._label}"
                )
            elif self._live and self._sides:
                show_line(f"{working_time() - self._began:6.1f} s  {self._sides}  {self._label}")

    def _compiling_for(self) -> float:
        return compile_seconds() - self._compiled

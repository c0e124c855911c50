"""Detection of compilation, and a clock that stops meanwhile.

The first use after an installation compiles, for up to a minute; the machine code is stored on
disk.  Limits do not count this time: they use the clock `working_time`.  `compile_seconds` is the
time that it excludes, and both add up to the wall time.

This module does not load the compiler; `kvopt.kernels.compiled` does, and reports begins and ends.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

Result = TypeVar("Result")

THREAD = "kvopt-compiler"
"""Name of the threads that compile for the main thread."""

FIRST_USE = "compiling, as the first use after an installation does; limits do not count it"
"""Message during compilation."""

_AGAIN = 60.0
"""Seconds between two messages about different functions."""

_GLANCE = 0.02
"""Seconds between two checks of the main thread while it waits; shorter ones cost time."""


class Abandoned(KeyboardInterrupt):
    """A signal, recorded by its handler, arrived while the main thread waited for compilation."""


@dataclass(frozen=True, slots=True)
class Compiling:
    """Time and number of compilations of this process.

    Parameters
    ----------
    seconds
        Wall time of compilations that have ended.
    since
        Begin of the current compilation, on the clock of the system; None without one.
    depth
        Functions that are being compiled, each for the one before.
    started
        Functions of kvopt that were compiled or are being compiled.
    known
        Loaded functions of kvopt that may have to be compiled.
    """

    seconds: float = 0.0
    since: float | None = None
    depth: int = 0
    started: int = 0
    known: int = 0

    @property
    def is_running(self) -> bool:
        """Whether something is being compiled."""
        return self.since is not None

    def seconds_at(self, now: float) -> float:
        """Return the seconds up to a time on the clock of the system."""
        return self.seconds if self.since is None else self.seconds + max(0.0, now - self.since)


_state = Compiling()  # replaced as a whole, so that signal handlers may read it at any time
_guard = threading.Lock()
_leaving: list[Callable[[], bool]] = []
_told = -_AGAIN


# ---- the clock ------------------------------------------------------------------------------


def working_time() -> float:
    """Return the seconds of a clock that stops during compilation."""
    now = time.monotonic()
    return now - _state.seconds_at(now)


def compile_seconds() -> float:
    """Return the wall time in which this process compiled; overlaps count once."""
    return _state.seconds_at(time.monotonic())


def compiling() -> Compiling:
    """Return the compilations of this process so far."""
    return _state


# ---- messages of the compiler ---------------------------------------------------------------


def known_one_more() -> None:
    """Count a function that may have to be compiled."""
    global _state
    with _guard:
        _state = replace(_state, known=_state.known + 1)


def begins(ours: bool) -> None:
    """Record that the compilation of a function, perhaps of kvopt, begins."""
    global _state
    now = time.monotonic()
    with _guard:
        state = _state
        _state = replace(
            state,
            since=now if state.since is None else state.since,
            depth=state.depth + 1,
            started=state.started + ours,
        )
    if ours:
        _tell_who_watches(now)


def _tell_who_watches(now: float) -> None:
    """Explain the delay in a terminal or a notebook; commands explain it in their own log."""
    global _told
    stream = sys.stderr
    is_watched = stream is not None and (
        stream.isatty() or type(stream).__module__.startswith("ipykernel")
    )
    if is_watched and now - _told >= _AGAIN and not logging.getLogger("kvopt").handlers:
        _told = now
        print(f"kvopt: {FIRST_USE}", file=stream, flush=True)


def ends() -> None:
    """Record that the compilation that began last has ended or failed."""
    global _state
    now = time.monotonic()
    with _guard:
        state = _state
        if state.depth > 1:
            _state = replace(state, depth=state.depth - 1)
        else:
            _state = replace(state, depth=0, since=None, seconds=state.seconds_at(now))


# ---- waiting --------------------------------------------------------------------------------


def awaited(work: Callable[[], Result]) -> Result:
    """Let a thread compile, and wait for it so that a signal ends the wait at once.

    The thread continues, and its result is stored on disk for the next time.

    Raises
    ------
    Abandoned
        If a block that `left_when` watches has to end.
    """
    outcome: list[Result] = []
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, name=THREAD, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_GLANCE)
        if thread.is_alive() and any(is_over() for is_over in _leaving):
            raise Abandoned
    if errors:
        raise errors[0]
    return outcome[0]


@contextmanager
def left_when(is_over: Callable[[], bool]) -> Iterator[None]:
    """Leave the block, without an error, if it waits for compilation when a condition is true.

    For the main thread and for recorded signals: nothing else is raised in the block.
    """
    _leaving.append(is_over)
    try:
        yield
    except Abandoned:
        if not is_over():
            raise
    finally:
        _leaving.remove(is_over)

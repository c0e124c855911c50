"""Running a solver so that limits, Ctrl-C and SIGTERM end it without losing anything."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kvopt.incumbent.incumbent import Search
from kvopt.kernels.compile_clock import compiling, left_when

_GRACE = 1.2
"""Seconds a solver gets to return after it was asked to; limits are kept within 2 s."""

_LOOKS = 0.1
"""Seconds between two looks at how much memory is held."""


def run_in_thread(
    search: Search, work: Callable[[], None], cancel: Callable[[], None] | None = None
) -> bool:
    """Run a solver in a thread and watch the limits of time and memory from this one.

    Python handles signals in the main thread only, and only between two of its own
    instructions, so the main thread must not be inside a solver.

    Parameters
    ----------
    search
        Asked whether to stop.
    work
        Calls the solver.
    cancel
        Asks the solver to return, until it does.  Work that asks the search itself needs none;
        it is not waited for while something is compiled, as it cannot ask before that ends.

    Returns
    -------
    bool
        False if the solver did not return in time.  Its thread then continues in the
        background, and what it still offers counts until the answer is made.
    """
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, name="kvopt-solver", daemon=True)
    thread.start()
    asked_at: float | None = None
    looked_at, is_full = time.monotonic(), False
    while thread.is_alive():
        thread.join(0.02)
        # A solver may run another one in a thread, which is watched as well: of both watchers only
        # the one that set the stop for memory clears it.
        if time.monotonic() - looked_at > _LOOKS and not search.is_ended_for_memory:
            looked_at = time.monotonic()
            if is_full := search.is_beyond_budget():
                search.end_for_memory()
        if asked_at is None and search.should_stop():
            asked_at = time.monotonic()
        if asked_at is not None and cancel is not None:
            cancel()  # again and again: a solver that has not quite begun does not hear the first
        if asked_at is not None and (
            time.monotonic() - asked_at > _GRACE or (cancel is None and compiling().is_running)
        ):
            break
    if is_full and not thread.is_alive():  # else what it holds stays, and nothing else may begin
        search.go_on_without_it()
    if errors:
        raise errors[0]
    return not thread.is_alive()


@contextmanager
def signals_interrupt(search: Search) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into an orderly end of the search.

    If the main thread waits for machine code at that time, the block ends there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with (
        signals_remembered(search.interrupt),
        left_when(lambda: search.signal_number is not None),
    ):
        yield


@contextmanager
def signals_remembered(remember: Callable[[int], None]) -> Iterator[None]:
    """Continue the block at a signal, and record the signal.

    A second signal acts as if kvopt were not there.  Outside the main thread signals
    cannot be caught, and nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        remember(number)
        restore()

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()

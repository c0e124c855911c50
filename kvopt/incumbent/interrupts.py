"""Run a solver so that limits, Ctrl-C and SIGTERM end it without losing results."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kvopt.errors import Stopped
from kvopt.incumbent.incumbent import Search
from kvopt.kernels import compiler, memory
from kvopt.kernels.budget import Budget

_GRACE = 1.2
"""Seconds for a solver to return after a request; limits are kept within 2 s."""

_LOOKS = 0.1
"""Seconds between two checks of the memory of the process."""


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
        Asks the solver to return, repeatedly.  Work that checks the search itself needs none.
        While it waits for the compiler it is not waited for, since it cannot check.

    Returns
    -------
    bool
        False if the solver did not return in time.  Its thread then continues in the
        background, and its offers count until the result is made.
    """
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except Stopped:
            pass  # its findings until then count
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, name="kvopt-solver", daemon=True)
    thread.start()
    budget = search.granted
    asked_at: float | None = None
    looked_at, is_full = time.monotonic(), False
    while thread.is_alive():
        thread.join(0.02)
        # A solver may run another one in a thread, which is watched as well: of both watchers only
        # the one that set the stop for memory clears it.
        if time.monotonic() - looked_at > _LOOKS and not budget.is_full:
            looked_at = time.monotonic()
            if is_full := not budget.memory_left:
                budget.is_full = True
                of = f"the memory budget of {memory.in_words(budget.ram)}"
                search.note(f"{search.engine}: stopped, as it passed {of}")
        if asked_at is None and search.budget.over():
            asked_at = time.monotonic()
        if asked_at is not None and cancel is not None:
            cancel()  # repeatedly: a solver that is about to begin ignores the first request
        if asked_at is not None and (
            time.monotonic() - asked_at > _GRACE or (cancel is None and compiler.is_running())
        ):
            break
    if is_full and not thread.is_alive():  # else its memory stays in use, and others must wait
        memory.give_back()
        budget.is_full = False
    if errors:
        raise errors[0]
    return not thread.is_alive()


@contextmanager
def signals_interrupt(search: Search) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into an orderly end of the search.

    If the block waits for the compiler then, or at its limit, it ends there.
    """
    with signals_remembered(search.granted.interrupt), waiting_within(search.granted):
        yield


@contextmanager
def waiting_within(budget: Budget) -> Iterator[None]:
    """Leave a block that waits for the compiler at the end of a budget, and at a signal."""

    def is_over() -> bool:
        return budget.is_interrupted or not budget.left

    try:
        with compiler.wait_until(is_over):
            yield
    except Stopped:
        if not is_over():
            raise


@contextmanager
def signals_remembered(remember: Callable[[int], None]) -> Iterator[None]:
    """Continue the block at a signal, and record the signal.

    A second signal has its usual effect.  Outside the main thread signals
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

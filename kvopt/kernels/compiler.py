"""Child processes that compile, so that limits are wall time.

The first use after an installation compiles for up to a minute, and a compiler can be neither
interrupted nor run beside Python.  So children compile, and store the machine code on disk.  A
thread that needs it waits, others continue, and the wait ends with the limit or at a signal.

This module does not load numba; `kvopt.kernels.compiled` does, which asks for what is not stored.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from kvopt.errors import Stopped

FIRST_USE = "compiling in another process, as the first use after an installation does"
"""Message when the first function is missing."""

_PAUSE = 0.02
"""Seconds between two checks of a thread that waits; shorter ones cost time."""
MOST_CHILDREN = 2
"""Functions that are compiled at a time."""
_DONE, _FAILED = b"1", b"0"
"""Answers of a child to a request."""
SERVE = "import sys; sys.path[:] = {!r}; from kvopt.kernels import compiler; compiler.serve()"
"""What a child runs, with the search path of this process."""


class Place(NamedTuple):
    """Where a function is found: its module and name, and whether a loop compiles it on demand."""

    module: str
    name: str
    is_python: bool


class CompilerState:
    """Children that are free or end, what threads wait for, and how often waits were ended."""

    free: ClassVar[list[Any]] = []  # each a `Popen`, whose pipes are there
    ending: ClassVar[list[Any]] = []
    wanted: ClassVar[list[bytes]] = []
    ended = 0
    is_announced = False


_turns = threading.BoundedSemaphore(MOST_CHILDREN)
"""A turn for each function that is compiled at a time."""
_locks: dict[bytes, threading.Lock] = {}
"""A lock for each function that was asked for."""
_ends: list[Callable[[], bool]] = []
"""Whether the blocks that `wait_until` opened are over."""


def is_running() -> bool:
    """Whether a thread waits for a function that is being compiled."""
    return bool(CompilerState.wanted)


@contextmanager
def wait_until(is_over: Callable[[], bool]) -> Iterator[None]:
    """End waits for the compiler in a block when a condition is true, by raising `Stopped`.

    Children end with the outermost block.
    """
    _ends.append(is_over)
    try:
        yield
    finally:
        _ends.remove(is_over)
        if not _ends:  # a thread that was left behind may wait still
            stop()


def compile_elsewhere(place: Place, signature: Any, code: str = SERVE) -> bool:
    """Wait until a child that runs some code has stored a function; return whether it could.

    Raises
    ------
    Stopped
        If a block of `wait_until` is over.
    """
    _announce()
    ended = CompilerState.ended
    try:
        request = pickle.dumps((place, signature))
    except pickle.PicklingError:  # a type of this process alone
        return False

    def check() -> None:
        if CompilerState.ended > ended or any(is_over() for is_over in _ends):
            raise Stopped

    CompilerState.wanted.append(request)
    try:
        # Who asks for the same later finds it compiled.
        with _held(_locks.setdefault(request, threading.Lock()), check), _held(_turns, check):
            return _answer(request, check, code)
    finally:
        CompilerState.wanted.remove(request)


@contextmanager
def _held(lock: Any, check: Callable[[], None]) -> Iterator[None]:
    """Hold a lock in a block; while another thread holds it, check whether to wait on."""
    while not lock.acquire(timeout=_PAUSE):
        check()
    try:
        yield
    finally:
        lock.release()


def _answer(request: bytes, check: Callable[[], None], code: str) -> bool:
    """Send a request to a child, and wait for its answer."""
    check()
    child = None
    try:
        child = CompilerState.free.pop() if CompilerState.free else _begin(code)
        child.stdin.write(request)
        child.stdin.flush()
        while not select.select([child.stdout], [], [], _PAUSE)[0]:
            check()
        if os.read(child.stdout.fileno(), 1) == _DONE:
            CompilerState.free.append(child)
            return True
    except OSError:  # there can be no child, or it has ended
        pass
    except BaseException:
        _let_end(child)
        raise
    _let_end(child)
    return False


def _begin(code: str) -> Any:
    for ended in [child for child in CompilerState.ending if child.poll() is not None]:
        CompilerState.ending.remove(ended)
        ended.stdout.close()
    return subprocess.Popen(
        [sys.executable, "-c", code.format(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the parent, which ends the child
    )


def stop() -> None:
    """End all waits, and let children end."""
    CompilerState.ended += 1
    while CompilerState.free:
        _let_end(CompilerState.free.pop())


def _let_end(child: Any) -> None:
    """Let a child end once its function is stored; else a short limit would never be enough."""
    if child is not None:
        child.stdin.close()
        CompilerState.ending.append(child)


def _announce() -> None:
    """Explain the delay once: in the log of a command, else on standard error."""
    if CompilerState.is_announced:
        return
    CompilerState.is_announced = True
    logger = logging.getLogger("kvopt")
    if logger.handlers:
        logger.info(f"kvopt: {FIRST_USE}")
    elif sys.stderr is not None:
        print(f"kvopt: {FIRST_USE}", file=sys.stderr, flush=True)


def serve() -> None:
    """Compile what the parent asks for on standard input, until it ends."""
    from kvopt.kernels.compiled import compile_here, dispatcher_at

    compile_here()
    requests, answers = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)  # what a compiler prints is no answer
    while True:
        try:
            place, signature = pickle.load(requests)
        except EOFError:
            return
        try:
            dispatcher_at(place).compile(signature)
            os.write(answers, _DONE)
        except Exception:
            os.write(answers, _FAILED)

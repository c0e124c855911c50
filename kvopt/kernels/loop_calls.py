"""How Python calls compiled loops: compiled at the first use, interrupted by Ctrl-C, in threads.

Small work needs no compiler, so this module does not load numba.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from kvopt.errors import Stopped

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")


def machine_code(function: Function, *, or_python: bool = False) -> Function:
    """Return a compiled function, the same one at each call.

    With ``or_python`` it runs in Python if the time is over before it is compiled.
    """
    return cast("Function", _compiled(function, or_python))


def quick(function: Function, kind: Any) -> Function:
    """Return a loop in machine code, or in Python where integers pass 64 bits."""
    is_large = np.dtype(kind).hasobject
    return function if is_large else machine_code(function, or_python=True)


@cache
def _compiled(function: Callable[..., Any], or_python: bool) -> Callable[..., Any]:
    from kvopt.kernels.compiled import compiled  # it loads numba

    quick = interruptible(compiled(function))
    if not or_python:
        return quick

    @wraps(function)
    def called(*arguments: Any) -> Any:
        try:
            return quick(*arguments)
        except Stopped:
            return function(*arguments)

    return called


def interruptible(quick: Function) -> Function:
    """Return a compiled function that Ctrl-C may interrupt.

    Python handles the signal at the end of the call, when a result exists, and then raises
    `SystemError`.  The wrapper raises `KeyboardInterrupt` instead.
    """

    @wraps(quick)
    def called(*arguments: Any) -> Any:
        try:
            return quick(*arguments)
        except SystemError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            raise

    return cast("Function", called)


def map_ranges(
    work: Callable[[int, int], Result], count: int, threads: int, fewest: int = 5_000
) -> list[Result]:
    """Return the results of a few ranges that make up ``range(count)``, in order.

    Threads share the ranges, since compiled loops release Python's lock.  For less than ``fewest``
    rows in a range, starting a thread takes longer than the work.
    """
    parts = max(1, min(threads, count // fewest))
    ends = [part * count // parts for part in range(parts + 1)]
    if parts == 1:
        return [work(0, count)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))

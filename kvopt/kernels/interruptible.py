"""Functions that are compiled at their first use, so that small work needs no compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from kvopt.errors import Stopped

Function = TypeVar("Function", bound=Callable[..., Any])


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

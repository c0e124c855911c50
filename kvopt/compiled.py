"""Compiling hot loops with numba, which is loaded with this module and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Return a function compiled to machine code at its first call, kept on disk if possible.

    It runs without the interpreter's lock, so that signals and other threads get their turn.
    """
    return _compiled(function, fastmath=False)


def steering(function: Function) -> Function:
    """Compile, and let sums and minima of floats be reordered: they steer, they prove nothing.

    Integers are exact either way.
    """
    return _compiled(function, fastmath=True)


def _compiled(function: Function, fastmath: bool) -> Function:
    try:
        return cast("Function", njit(cache=True, nogil=True, fastmath=fastmath)(function))
    except RuntimeError:  # no directory to keep the machine code in
        return cast("Function", njit(nogil=True, fastmath=fastmath)(function))

"""Functions that are compiled when they are first needed, so that little work needs no compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def machine_code(function: Function) -> Function:
    """Return a function compiled, from the second time on the same one."""
    return cast("Function", _compiled(function))


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from kvopt.compiled import compiled  # it loads numba

    return compiled(function)

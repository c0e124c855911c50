"""Functions that are compiled at their first use, so that small work needs no compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def machine_code(function: Function) -> Function:
    """Return a compiled function, the same one at each call."""
    return cast("Function", _compiled(function))


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from kvopt.kernels.compiled import compiled  # it loads numba

    return interruptible(compiled(function))


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
        except RuntimeError as error:
            # The first call compiles.  Ctrl-C during it is dropped, and so is the awaited result.
            if "no compiled object yet" in str(error):
                raise KeyboardInterrupt from None
            raise

    return cast("Function", called)

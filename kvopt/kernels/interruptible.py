"""Functions that are compiled when they are first needed, so that little work needs no compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def machine_code(function: Function) -> Function:
    """Return a function compiled, from the second time on the same one."""
    return cast("Function", _compiled(function))


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    from kvopt.kernels.compiled import compiled  # it loads numba

    return interruptible(compiled(function))


def interruptible(quick: Function) -> Function:
    """Return a compiled function into which Ctrl-C may fall.

    Python notices a signal at the end of the call, when there is a result already, and calls that
    an error of the system.  It is nothing but Ctrl-C.
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
            # The first call compiles.  Ctrl-C in there is dropped, and so is what it waits for.
            if "no compiled object yet" in str(error):
                raise KeyboardInterrupt from None
            raise

    return cast("Function", called)

"""Report errors in code of users in one line, with the place and a remedy."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from types import FunctionType, NoneType, UnionType
from typing import Any, get_origin, get_type_hints

from kvopt.errors import InvalidInput, KvoptError, PolicyFault, one_line, shown


class Extensible:
    """Base of classes of users, whose methods are guarded."""

    def __init_subclass__(cls, **keys: Any) -> None:
        """Guard each method that overrides one of kvopt, by the types of that one."""
        super().__init_subclass__(**keys)
        for name, method in () if is_ours(cls) else list(vars(cls).items()):
            model = method if name == "__post_init__" else getattr(super(cls, cls), name, None)
            if isinstance(method, FunctionType) and isinstance(model, FunctionType):
                label = f"{getattr(cls, 'name', cls.__name__)}: {name}"
                wanted = get_type_hints(model).get("return", object)
                setattr(cls, name, guarded(method, label, arguments_of(model), wanted))


def is_ours(code: Any) -> bool:
    """Whether a class or function is part of kvopt."""
    return str(code.__module__).startswith("kvopt.")


def arguments_of(function: FunctionType) -> Sequence[str]:
    """Return the names of the positional arguments of a function."""
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def guarded(
    function: Callable[..., Any], label: str, takes: Sequence[str], wanted: Any
) -> Callable[..., Any]:
    """Return a function of a user with every exception turned into a `PolicyFault`.

    Parameters
    ----------
    function
        A function of a user; one with other arguments is refused now.
    label
        Its name in messages.
    takes
        Names of its arguments.
    wanted
        The type that it must return.
    """
    kind = wanted if isinstance(wanted, UnionType) else get_origin(wanted) or wanted
    try:
        signature(function).bind_partial(*takes)
    except TypeError as error:
        reason = f"{error}: write def {function.__name__}({', '.join(takes)})"
        raise InvalidInput(reason, field=label) from None

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with blamed(label, function):
            value = function(*arguments, **named)
        if not isinstance(value.item() if hasattr(value, "item") else value, kind):  # or of numpy
            words = {
                tuple: f"a tuple: write return ({shown(value)},)",
                Iterable: "positions of requests: write return [i], or yield i",
                NoneType: "nothing",
            }.get(kind, getattr(kind, "__name__", kind))
            raise _fault(function, f"{label} returned {shown(value)}, and must return {words}")
        return value

    return call


@contextmanager
def blamed(label: str, code: Any) -> Iterator[None]:
    """Turn errors of users' code inside the block into one line with the place."""
    try:
        yield
    except (KvoptError, MemoryError):
        raise
    except Exception as error:
        if is_ours(code):
            raise
        reason = one_line(f"{type(error).__name__}: {error}")
        raise _fault(code, f"{label} failed: {reason}", error) from error


def _fault(code: Any, reason: str, error: BaseException | None = None) -> PolicyFault:
    file = file_of(code)
    line = None if error is None else line_of(error, file)
    place = "" if line is None else f"line {line}"
    return PolicyFault(": ".join(filter(None, [file, place, reason])))


def file_of(code: Any) -> str | None:
    """Return the file of a class or function, None if it is not from a file."""
    return getattr(sys.modules.get(code.__module__), "__file__", None)


def line_of(error: BaseException, file: str | None) -> int | None:
    """Return the last line of a file in the traceback of an error, None if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)

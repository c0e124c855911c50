"""Compile hot loops with numba, which only this module loads.

Machine code is stored on disk: next to the code if that folder can be written, else in numba's
cache of the user, else in a temporary folder that only the user can access.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import unliteral

from kvopt.kernels import compile_clock as compiling

Function = TypeVar("Function", bound=Callable[..., Any])


_dispatchers: list[Any] = []
"""Numba's dispatchers of all functions that may be compiled."""


def compiled(function: Function) -> Function:
    """Return a function compiled to machine code at its first call, stored on disk if possible.

    It runs without the interpreter's lock, so that signals and other threads are not blocked.
    """
    return _watched(function)


def steering(function: Function) -> Function:
    """Compile, and let sums and minima of floats be reordered: they steer and prove nothing.

    Integers stay exact.
    """
    return _watched(function, fastmath=True)


def with_names(name: str, template: Function, **names: Any) -> Function:
    """Return a copy of a function with other values for some of its global names.

    Compiled, it is as fast as one that was written for them, and its cache depends on their files.
    It needs a name of its own, for the cache.
    """
    function = FunctionType(template.__code__, {**template.__globals__, **names}, name)
    function.__qualname__ = name
    return cast("Function", function)


# ---- storage of machine code ----------------------------------------------------------------


def folders() -> list[Path | None]:
    """Return the folders with machine code of kvopt, None if some cannot be stored."""
    ours = (each for each in _dispatchers if (each.py_func.__module__ or "").startswith("kvopt."))
    caches = [dispatcher._cache for dispatcher in ours]
    kept = [getattr(cache, "_enabled", False) and cache.cache_path for cache in caches]
    return [Path(path) if path else None for path in dict.fromkeys(kept)]


def is_temporary(folder: Path) -> bool:
    """Whether a folder is a temporary one, used because no other could be written."""
    return _temporary_folder() in folder.parents


def _with_callees(dispatcher: Any) -> Any:
    """Make the cache depend on the files of all called functions, not only its own.

    Machine code includes that of compiled functions from other files.  These are found by their
    names in the module, since they are imported at its top.
    """
    function = dispatcher.py_func
    sources = {function.__code__.co_filename}
    for each in function.__globals__.values():
        for callee in each if isinstance(each, tuple) else (each,):
            sources |= getattr(callee, "kvopt_sources", set())
    dispatcher.kvopt_sources = sources
    file = getattr(dispatcher._cache, "_cache_file", None)
    if file is not None and len(sources) > 1:
        found = [os.stat(path) for path in sorted(sources) if os.path.exists(path)]
        file._source_stamp = tuple((each.st_mtime, each.st_size) for each in found)
    if file is not None:
        file._load_index = partial(_index, file._load_index)
    return dispatcher


def _index(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Return the stored code of a function: none if its types are in modules that no longer exist.

    An upgrade may rename a module, and numba reads the types before the dates of the files.
    """
    try:
        return load()
    except (ImportError, AttributeError):
        return {}


def _kept(function: Callable[..., Any], decorator: Callable[..., Any]) -> Any:
    """Return a function that will be compiled, and stored if possible."""
    try:
        return decorator(cache=True)(function)
    except RuntimeError:  # neither next to the code nor in the user's cache
        folder = _temporary_folder()
    if folder is not None:
        settings: Any = config  # its content is not declared
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            return decorator(cache=True)(function)
        except RuntimeError:
            pass
        finally:
            settings.CACHE_DIR = before
    return decorator()(function)


def _temporary_folder() -> Path | None:
    """Return a folder that no other user can write to, since cached code is executed."""
    whose = f"-{os.getuid()}" if hasattr(os, "getuid") else ""
    try:
        folder = Path(tempfile.gettempdir()) / f"kvopt{whose}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
    return folder if mine and stat.S_ISDIR(found.st_mode) else None


# ---- time of compilation --------------------------------------------------------------------


class _Call(threading.local):
    """Stack of compilations of a thread."""

    nested = 0
    compiles = False


_call = _Call()


class _Listener(event.Listener):
    """Called by the compiling thread when numba compiles; only one thread compiles at a time."""

    def on_start(self, event: Any) -> None:
        """Stop the clock until the compiled code of the call is on the disk."""
        if _call.nested and not _call.compiles:
            _call.compiles = True
            compiling.begins(ours=False)
        module = event.data["dispatcher"].py_func.__module__ or ""
        compiling.begins(ours=module.partition(".")[0] == "kvopt")

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """Restart the clock, unless the function was compiled within another one."""
        compiling.ends()


_events: Any = event  # it has no types
_events.register("numba:compile", _Listener())
_lock: Any = global_compiler_lock


def _watched(function: Function, **options: bool) -> Function:
    """Let another thread compile instead of the main one, and tolerate a full disk.

    The replaced method is called for new signatures only, so nothing else is slower.  With
    ``NUMBA_DISABLE_JIT=1`` the function itself runs: slow, but visible to measures of coverage.
    """
    if getattr(config, "DISABLE_JIT", False):
        return function
    dispatcher = _with_callees(_kept(function, partial(njit, nogil=True, **options)))
    plain_type: Any = unliteral  # it has no types
    plain, typed = dispatcher.compile, dispatcher.get_call_template

    def kept(signature: Any) -> Any:
        _call.nested += 1
        try:
            return plain(signature)
        except OSError:  # the code exists, but cannot be stored
            dispatcher._cache.disable()
            return plain(signature)
        finally:
            _call.nested -= 1
            if _call.compiles and not _call.nested:
                _call.compiles = False
                compiling.ends()

    def watched(signature: Any) -> Any:
        main = threading.current_thread() is threading.main_thread()
        # The thread with the lock compiles a function that needs this one: another would wait.
        if main and not _lock.is_locked():
            return compiling.awaited(lambda: kept(signature))
        return kept(signature)

    def alike(arguments: Any, named: Any) -> Any:
        return typed([*map(plain_type, arguments)], {k: plain_type(v) for k, v in named.items()})

    dispatcher.compile = watched
    # numba would compile a function again for each literal number in a call.
    dispatcher.get_call_template = alike
    _dispatchers.append(dispatcher)
    compiling.known_one_more()
    return cast("Function", dispatcher)

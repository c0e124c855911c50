"""Compile hot loops with numba, which only this module loads.

Machine code is stored on disk: next to the code if that folder can be written, else in numba's
cache of the user.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.core.types import unliteral

from kvopt.kernels.compiler import Place, compile_elsewhere
from kvopt.kernels.linking import leave_out_machine_code, nesting

Function = TypeVar("Function", bound=Callable[..., Any])


DISPATCHERS: list[Any] = []
"""Numba's dispatchers of all functions that may be compiled."""


def compiled(function: Function) -> Function:
    """Return a function compiled to machine code at its first call, stored on disk if possible.

    It runs without the interpreter's lock, so that signals and other threads are not blocked.
    """
    return _watched(function)


def inlined(function: Function) -> Function:
    """Compile a part of other compiled functions: a call would pass each array in seven numbers."""
    return _watched(function, forceinline=True)


def steering(function: Function) -> Function:
    """Compile, and let sums and minima of floats be reordered: they steer and prove nothing.

    Integers stay exact.
    """
    return _watched(function, fastmath=True)


def borrowing(function: Function) -> Function:
    """Compile without counting references to arrays, which can take longer than a loop itself.

    The caller holds all arrays.  Views of them are allowed.  Numba refuses to make new arrays, and
    one that is returned would be freed too early.
    """
    if function.__annotations__["return"] not in ("None", "bool", "int", "float"):
        raise TypeError(f"{function.__name__} returns more than a number, so it has to count")
    return _watched(function, _nrt=False)


# ---- storage of machine code ----------------------------------------------------------------


def is_kept() -> bool:
    """Whether machine code of all functions of kvopt can be stored."""
    ours = (one for one in DISPATCHERS if (one.py_func.__module__ or "").startswith("kvopt."))
    return all(getattr(dispatcher._cache, "_enabled", False) for dispatcher in ours)


def _with_callees(dispatcher: Any) -> Any:
    """Make the cache depend on the files of all called functions, not only its own.

    Machine code includes that of compiled functions from other files.  These are found by their
    names in the module, since they are imported at its top.
    """
    function = dispatcher.py_func
    sources = {function.__code__.co_filename}
    for value in function.__globals__.values():
        for callee in value if isinstance(value, tuple) else (value,):
            sources |= getattr(callee, "kvopt_sources", set())
    dispatcher.kvopt_sources = sources
    file = getattr(dispatcher._cache, "_cache_file", None)
    if file is not None and len(sources) > 1:
        stats = [os.stat(path) for path in sorted(sources) if os.path.exists(path)]
        file._source_stamp = tuple((value.st_mtime, value.st_size) for value in stats)
    if file is not None:
        file._load_index = partial(_index, file._load_index)
        dispatcher._cache._index_key = partial(_key, dispatcher._cache._index_key)
    return dispatcher


def _key(key: Callable[..., tuple[Any, ...]], *types: Any) -> tuple[Any, ...]:
    """Return the key of stored code, which tells whether Python can call it."""
    return (*key(*types), nesting.depth > 1)


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
        return decorator()(function)


# ---- compilation in another process ---------------------------------------------------------


_compiles_here = False


def compile_here() -> None:
    """Compile in this process from now on: it has no limit to keep."""
    global _compiles_here
    _compiles_here = True
    gc.set_threshold(200_000)  # a compiler makes many objects, and collecting them takes a tenth


def functions_compiled() -> int:
    """Return how many functions of kvopt this process compiled itself."""
    return sum(sum(dispatcher.stats.cache_misses.values()) for dispatcher in DISPATCHERS)


def dispatcher_at(place: Place) -> Any:
    """Return the dispatcher of a function."""
    function = getattr(importlib.import_module(place.module), place.name)
    return _watched(function) if place.is_python else function


def _place_of(dispatcher: Any) -> Place | None:
    """Return where another process finds a function, None if it is no name of a module of kvopt."""
    # Copies, since another thread may import meanwhile.
    loaded = [name for name in list(sys.modules) if name.startswith("kvopt.")]
    for module in loaded:
        for name, value in list(vars(sys.modules[module]).items()):
            if value is dispatcher:
                return Place(module, name, is_python=False)
    function = dispatcher.py_func
    is_named = getattr(sys.modules.get(function.__module__), function.__name__, None) is function
    return Place(function.__module__, function.__name__, is_python=True) if is_named else None


def _is_stored(dispatcher: Any, signature: Any) -> bool:
    """Whether the code of a function is on disk, or never will be."""
    cache = dispatcher._cache
    if not getattr(cache, "_enabled", False):
        return True
    key, file = cache._index_key(signature, dispatcher.targetctx.codegen()), cache._cache_file
    name = file._load_index().get(key)
    return name is not None and Path(file._data_path(name)).exists()


def _watched(function: Function, **options: bool) -> Function:
    """Let another process compile, leave out wrappers that no one calls, tolerate a full disk.

    The replaced methods are called for new signatures only, so nothing else is slower.  With
    ``NUMBA_DISABLE_JIT=1`` the function itself runs: slow, but visible to measures of coverage.
    """
    if getattr(config, "DISABLE_JIT", False):
        return function
    njit_here = partial(njit, nogil=True, no_cfunc_wrapper=True, **options)
    dispatcher = _with_callees(_kept(function, njit_here))
    plain_type: Any = unliteral  # these two have no types
    normalized: Any = normalize_signature
    plain, add, typed = dispatcher.compile, dispatcher.add_overload, dispatcher.get_call_template
    bare: set[Any] = set()  # types of arguments for which compiled functions alone can call it

    def watched(signature: Any) -> Any:
        leave_out_machine_code()
        is_inner = nesting.depth > 0  # compiled for another function, it is no call of its own
        if not (_compiles_here or is_inner or _is_stored(dispatcher, signature)):
            place = _place_of(dispatcher)
            if place is not None:
                compile_elsewhere(place, signature)
        with global_compiler_lock:
            # The wrapper that Python calls takes a third of the time to compile.
            dispatcher.targetoptions["no_cpython_wrapper"] = is_inner
            if not is_inner and (types := tuple(normalized(signature)[0])) in bare:
                bare.remove(types)
                del dispatcher.overloads[types]
            nesting.depth += 1
            try:
                return plain(signature)
            except OSError:  # the code exists, but cannot be stored
                dispatcher._cache.disable()
                return plain(signature)
            finally:
                nesting.depth -= 1

    def added(result: Any) -> None:
        if nesting.depth == 1:
            add(result)
        else:  # a call from Python would not find it, and compile it again
            dispatcher.overloads[types := tuple(result.signature.args)] = result
            bare.add(types)

    def alike(arguments: Any, named: Any) -> Any:
        return typed([*map(plain_type, arguments)], {k: plain_type(v) for k, v in named.items()})

    dispatcher.compile, dispatcher.add_overload = watched, added
    # numba would compile a function again for each literal number in a call.
    dispatcher.get_call_template = alike
    DISPATCHERS.append(dispatcher)
    return cast("Function", dispatcher)

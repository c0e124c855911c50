"""Leave functions that Python does not call as bitcode, which saves a third of compilation.

numba optimises every function and translates it to machine code.  A function that is only linked
into others is optimised and translated again with these, so its own machine code is never used.
This changes methods that numba does not promise to keep, so it is for tested releases alone; with
others all works as numba has it, and compiling takes longer.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import cpu_target

TESTED = ("0.68.",)
"""Releases of numba for which functions are left as bitcode."""
_WRAPPER = "_ZN7cpython"
"""Begin of the names of functions that Python calls."""


_Library: Any = JITCodeLibrary


class Nesting(threading.local):
    """Number of functions of kvopt that this thread is compiling, each for the one before."""

    depth = 0


nesting = Nesting()


class LinkedLibrary(_Library):  # type: ignore[misc]
    """Code of a function, without machine code unless it is called.

    Outside of the compilation of kvopt it is numba's own library.
    """

    _is_called = False

    def _optimize_functions(self, module: Any) -> None:
        """Note whether Python calls the code; its module is optimised as a whole, once linked."""
        is_wrapper = any(function.name.startswith(_WRAPPER) for function in module.functions)
        if nesting.depth == 0 or is_wrapper:
            self._is_called = True
        if nesting.depth == 0:
            super()._optimize_functions(module)

    def _optimize_final_module(self) -> None:
        if self._is_called:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._is_called:
            super()._finalize_final_module()
            if nesting.depth > 0 and self._dynamic_globals:
                raise RuntimeError("a loop depends on an address of this process")
        else:  # before optimisation it may have such addresses that nothing uses
            self._finalized = True

    def _set_compiled_object(self, value: Any) -> None:
        """Take machine code from the disk: only code that is called has some."""
        self._is_called = True
        super()._set_compiled_object(value)

    def get_pointer_to_function(self, name: str) -> Any:
        """Return the address of a function, translated now if it is called after all."""
        self._ensure_finalized()
        if not self._is_called and any(one.name == name for one in self.get_defined_functions()):
            self._is_called = True
            self._optimize_final_module()
            self._finalize_final_module()
        return super().get_pointer_to_function(name)

    def serialize_using_object_code(self) -> Any:
        """Return the name, the kind and the data for the disk."""
        if self._is_called:
            return super().serialize_using_object_code()
        return self.name, "bitcode", self._get_module_for_linking().as_bitcode()


@cache
def leave_out_machine_code() -> None:
    """Let numba use these libraries, and compile no wrappers of its own functions for kvopt."""
    if not numba.__version__.startswith(TESTED):
        return
    codegen = cpu_target.target_context.codegen()
    codegen._library_class = LinkedLibrary  # not before the first use: it loads all of numba
    set_env = codegen.set_env

    def set_if_there(name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):
            set_env(name, environment)

    def without_wrappers(compiler: Any, flags: Any) -> Any:
        if nesting.depth > 0 and compiler.py_func.__module__.startswith("numba."):
            flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return flags

    codegen.set_env = set_if_there
    _FunctionCompiler._customize_flags = without_wrappers

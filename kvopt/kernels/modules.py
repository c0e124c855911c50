"""Load modules that register extensions, by name or by the path of a file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from kvopt.errors import InvalidInput
from kvopt.kernels.guarding import line_of
from kvopt.kernels.registry import OTHER_REGISTERS, registered


def located(module: str, folder: Path) -> str:
    """Return the full path of a file in a description; a name stays a name."""
    return str((folder / module).resolve()) if module.endswith(".py") else module


def import_modules(modules: Sequence[str], *, must_register: bool = False) -> None:
    """Import modules that register extensions, by name or path; an error is one line.

    The description of a study may name a file that registers nothing.
    """
    for module in modules:
        if module.endswith(".py"):
            _import_file(Path(module), must_register)
            continue
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            reason = f"cannot be loaded: {_said(error)}; a file's path ends in .py"
            raise InvalidInput(reason, file=module) from None


def _import_file(path: Path, must_register: bool) -> None:
    """Run a file once in this process, as a module that has a name of its own."""
    place = str(path.resolve())
    name = f"kvopt_module_{path.stem}_{sha256(place.encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return
    try:
        source = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InvalidInput(f"{reason}; write the path of a Python file", file=str(path)) from None
    module = ModuleType(name)
    module.__file__ = place
    sys.modules[name] = module  # annotations are looked up there
    before = registered()
    try:
        exec(compile(source, place, "exec", dont_inherit=True), module.__dict__)
        if must_register and registered() == before:
            raise InvalidInput(
                "registers nothing: write @register above a policy (from kvopt import register); "
                + OTHER_REGISTERS
            )
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InvalidInput(_reason(error, place), file=str(path)) from None


def _reason(error: BaseException, place: str) -> str:
    """Return the error of a file with the line on which it happened."""
    if isinstance(error, SyntaxError) and error.filename == place:
        return f"line {error.lineno}: {error.msg}: {(error.text or '').strip()}"
    line = line_of(error, place)
    reason = str(error) if isinstance(error, InvalidInput) else f"cannot be loaded: {_said(error)}"
    return reason if line is None else f"line {line}: {reason}"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"

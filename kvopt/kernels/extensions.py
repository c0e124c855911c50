"""Extensions by name: policies, routers and formats of traces, and modules that register some."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from kvopt.errors import InvalidInput, shown, unknown_name
from kvopt.kernels.guarding import line_of

Thing = TypeVar("Thing")
Own = TypeVar("Own")

OTHER_REGISTERS = (
    "register of routers and formats is in kvopt.simulate.routers and kvopt.problem.traces"
)
"""Hint for a class that may need another decorator than that for policies."""

_registered = 0
"""Number of registrations in this process."""


class Registry(Generic[Thing]):
    """Policies, routers or formats of traces by name.

    Built-in ones are loaded at their first use.

    Parameters
    ----------
    kind
        Their name in errors and options.
    group
        Entry-point group: each entry names a module (or a thing in it) that registers some.
    built_in
        For each name the module that registers it.
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.built_in = built_in
        self.entries: dict[str, Thing] = {}
        self._has_entries = False

    def register(self, name: str) -> Callable[[Own], Own]:
        """Return a decorator that registers an object under a name."""
        if callable(name):
            reason = (
                f'has no name: write @register("...") above it, with the name of the {self.kind}'
            )
            raise InvalidInput(reason, field=getattr(name, "__name__", None))

        def add(thing: Own) -> Own:
            self.add(name, thing)  # type: ignore[arg-type]
            return thing

        return add

    def add(self, name: str, thing: Thing) -> None:
        """Register an object under a free name; the same object may be registered again."""
        global _registered
        if not isinstance(name, str) or not name or set(name) & set(":,= "):
            reason = f"must be a text without ':', ',', '=' and spaces, got {shown(name)}"
            raise InvalidInput(reason, field=f"name of a {self.kind}")
        module, before = self.built_in.get(name), self.entries.get(name)
        if module is not None and module != getattr(thing, "__module__", None):
            raise InvalidInput(f"is the name of {module}: write another name", field=name)
        if before is not None and _home(before) != _home(thing):
            raise InvalidInput(f"is the name of {_home(before)}: write another name", field=name)
        self.entries[name] = thing
        _registered += 1

    def names(self) -> list[str]:
        """Return every name, without loading built-in modules."""
        self._load_entries()
        return [*self.built_in, *(name for name in self.entries if name not in self.built_in)]

    def find(self, name: str) -> Thing:
        """Return the entry of a name, else raise."""
        if name not in self.entries and name in self.built_in:
            import_module(self.built_in[name])
        if name not in self.entries and name not in (names := self.names()):
            raise unknown_name(name, names, self.kind)
        return self.entries[name]

    def all(self) -> dict[str, Thing]:
        """Return everything by name, loaded."""
        return {name: self.find(name) for name in self.names()}

    def _load_entries(self) -> None:
        if self._has_entries:
            return
        self._has_entries = True
        from importlib.metadata import entry_points

        for entry in entry_points(group=self.group):
            try:
                entry.load()
            except Exception as error:  # code of users may do anything when it is loaded
                reason = f"cannot be loaded: {type(error).__name__}: {error}"
                field = f"entry point {self.group} {entry.name}"
                raise InvalidInput(reason, field=field) from error


def _home(thing: object) -> str:
    """Return the module and name of a class or function."""
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"


# ---- modules of users -----------------------------------------------------------------------


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
            import_module(module)
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
    before = _registered
    try:
        exec(compile(source, place, "exec", dont_inherit=True), module.__dict__)
        if must_register and _registered == before:
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

"""Extensions by name, built-in and registered: policies, routers and formats of traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from kvopt.errors import InvalidInput, shown, unknown_name

Thing = TypeVar("Thing")
Own = TypeVar("Own")

OTHER_REGISTERS = (
    "register of routers and formats is in kvopt.simulate.routers and kvopt.problem.traces"
)
"""Hint for a class that may need another decorator than that for policies."""

_registered = 0
"""Number of registrations in this process."""


def registered() -> int:
    """Return the number of registrations in this process."""
    return _registered


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
        self.known: dict[str, Thing] = {}
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
        module, before = self.built_in.get(name), self.known.get(name)
        if module is not None and module != getattr(thing, "__module__", None):
            raise InvalidInput(f"is the name of {module}: write another name", field=name)
        if before is not None and _home(before) != _home(thing):
            raise InvalidInput(f"is the name of {_home(before)}: write another name", field=name)
        self.known[name] = thing
        _registered += 1

    def names(self) -> list[str]:
        """Return every name, without loading built-in modules."""
        self._load_entries()
        return [*self.built_in, *(name for name in self.known if name not in self.built_in)]

    def find(self, name: str) -> Thing:
        """Return the entry of a name, else raise."""
        if name not in self.known and name in self.built_in:
            import_module(self.built_in[name])
        if name not in self.known and name not in (names := self.names()):
            raise unknown_name(name, names, self.kind)
        return self.known[name]

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

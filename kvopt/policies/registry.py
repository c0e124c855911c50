"""Policies by name: built-in ones, those that others registered, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from importlib import import_module
from importlib.metadata import entry_points
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from kvopt.errors import InvalidInput, shown
from kvopt.policies.base import Policy

Kind = TypeVar("Kind", bound=type[Policy])

ENTRY_POINTS = "kvopt.policies"
"""Entry-point group: each entry names a module (or a class in it) that registers policies."""

_HOUSE = (
    "fcfs", "mc_sf", "mc_sf_total", "svf", "patient", "h_sf", "paced",
    "alpha_protect", "alpha_beta",
    "a_max", "a_min", "a_l", "a_switch", "a_random",
    "sorted_f", "sorted_f_a_min", "sorted_lp", "lp_swap",
)  # fmt: skip
_POLICIES: dict[str, type[Policy]] = {}
_loaded = False


def register(kind: Kind) -> Kind:
    """Make a policy known by its name; a class decorator."""
    known = _POLICIES.get(kind.name)
    if known is not None and known.__qualname__ != kind.__qualname__:
        raise InvalidInput(
            f"is the name of {known.__module__}.{known.__qualname__}", field=kind.name
        )
    _POLICIES[kind.name] = kind
    return kind


def policies() -> dict[str, type[Policy]]:
    """Return every known policy by name."""
    global _loaded
    if not _loaded:
        _loaded = True
        for module in _HOUSE:
            import_module(f"kvopt.policies.{module}")
        for entry in entry_points(group=ENTRY_POINTS):
            entry.load()
    return dict(_POLICIES)


def policy(text: str) -> Policy:
    """Return the policy that ``NAME[:key=value,...]`` describes."""
    name, _, rest = text.partition(":")
    kinds = policies()
    if name not in kinds:
        raise InvalidInput(f"must be one of {', '.join(kinds)}, got {name!r}", field="policy")
    return made(kinds[name], _pairs(rest, name))


def made(kind: type[Policy], keys: Mapping[str, str]) -> Policy:
    """Build a policy from texts."""
    hints = get_type_hints(kind)
    known = [item.name for item in fields(kind) if item.init]
    values: dict[str, Any] = {}
    for key, text in keys.items():
        if key not in known:
            reason = f"is not a key of {kind.name}, which has {', '.join(known)}"
            raise InvalidInput(reason, field=key)
        values[key] = _value(hints[key], text, key)
    try:
        return kind(**values)
    except TypeError:
        missing = ", ".join(key for key in known if key not in keys and _required(kind, key))
        raise InvalidInput(f"needs {missing}", field=f"policy {kind.name}") from None


def _required(kind: type[Policy], key: str) -> bool:
    item = next(item for item in fields(kind) if item.name == key)
    return item.default is MISSING and item.default_factory is MISSING


def _pairs(text: str, name: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(",") if text else ():
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise InvalidInput(f"must be key=value, got {part!r}", field=f"policy {name}")
        if key in pairs:
            raise InvalidInput(f"has {key} twice", field=f"policy {name}")
        pairs[key] = value
    return pairs


def _value(hint: Any, text: str, key: str) -> Any:
    """Return the value of the annotated type."""
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            wanted = ", ".join(map(str, get_args(hint)))
            raise InvalidInput(f"must be one of {wanted}, got {shown(text)}", field=key)
        return text
    if get_origin(hint) is UnionType:
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    try:
        if hint is bool:
            return {"0": False, "1": True}[text]
        return hint(text)
    except (ValueError, KeyError, ZeroDivisionError):
        wanted = {int: "an integer", Fraction: "a number", bool: "0 or 1"}.get(hint, "a text")
        raise InvalidInput(f"must be {wanted}, got {shown(text)}", field=key) from None

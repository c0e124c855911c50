"""Policies by name: built-in ones and registered ones, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from kvopt.errors import InvalidInput, did_you_mean, shown, unknown_name
from kvopt.kernels.extensions import OTHER_REGISTERS, Registry
from kvopt.kernels.guarding import arguments_of, file_of
from kvopt.show.summary import Names, first_line
from kvopt.simulate.policies.interface import Policy

Kind = TypeVar("Kind", bound=type[Policy])
Own = TypeVar("Own")


_BUILT_IN = {
    "order_policies": "fcfs mc-sf mc-sf-total svf svf-1bit paced a-random svf-private k-lpm lpm "
    "patient",
    "service_levels": "slo",
    "h_sf": "h-sf",
    "alpha_protect": "alpha-protect alpha-beta",
    "output_intervals": "a-max a-min a-l a-switch",
    "planned": "sorted-f sorted-f-a-min",
    "lp_order": "sorted-lp lp-swap",
    "server_policies": "vllm-fcfs vllm-priority sglang",
}
"""Modules, and names of the policies that they register."""
_MODULES = {name: module for module, names in _BUILT_IN.items() for name in names.split()}
POLICIES: Registry[type[Policy]] = Registry(
    "policy",
    "kvopt.policies",
    {name: f"kvopt.simulate.policies.{module}" for name, module in _MODULES.items()},
)


def register(kind: Kind) -> Kind:
    """Register a policy under its name; a class decorator."""
    return registered(kind, Policy, POLICIES)


def policies() -> dict[str, type[Policy]]:
    """Return every known policy by name."""
    return POLICIES.all()


def list_policies() -> Names:
    """Return the name of every scheduler, with a line about each.

    Examples
    --------
    >>> from kvopt import list_policies
    >>> list_policies()["h-sf"]
    'Start the largest set of waiting requests that fits with the running ones.'
    """
    return Names({name: first_line(kind) for name, kind in policies().items()})


def policy(text: str) -> Policy:
    """Return the policy that ``NAME[:key=value,...]`` describes."""
    name, _, rest = text.partition(":")
    label, kind = f"policy {name}", POLICIES.find(name)
    keys = pairs(rest, label)
    if kind.presets and (preset := keys.pop("preset", None)) is not None:
        if preset not in kind.presets:
            raise unknown_name(preset, kind.presets, "preset")
        keys = {**kind.presets[preset], **keys}
    built_policy: Policy = built(kind, keys, label)
    return built_policy


def registered(kind: Own, base: type, registry: Registry[Any]) -> Own:
    """Register a class by its name; explain how to repair an unusable one."""
    if reason := _mistake(kind, base, registry.kind):
        raise InvalidInput(reason, field=getattr(kind, "__name__", shown(kind)))
    registry.add(kind.name, kind)  # type: ignore[attr-defined]
    return kind


def _mistake(kind: object, base: type, called: str) -> str | None:
    """Explain how to repair an unusable class."""
    if not isinstance(kind, type):
        return (
            f"must be the class of a {called}: write @register above it without brackets; "
            + OTHER_REGISTERS
        )
    if not issubclass(kind, base):
        name = base.__name__
        return f"is no {called}: write class NAME({name}), from {base.__module__} import {name}"
    if not isinstance(getattr(kind, "name", None), str):
        return 'has no name: write name = "..." in it'
    if missing := sorted(getattr(kind, "__abstractmethods__", ())):
        heads = (f"def {name}({', '.join(arguments_of(getattr(kind, name)))})" for name in missing)
        return f"does not define {', '.join(missing)}: write {' and '.join(heads)}"
    return None


def built(kind: Any, keys: Mapping[str, str], label: str) -> Any:
    """Build a policy, or another object with a name and parameters, from texts."""
    hints = get_type_hints(kind)
    by_name = {item.name: item for item in fields(kind) if item.init}
    values: dict[str, Any] = {}
    for key, text in keys.items():
        if key not in by_name:
            if reason := _no_key(kind, key):
                raise InvalidInput(reason, field=key, file=file_of(kind))
            reason = f"is not a key of {kind.name}, which has {', '.join(by_name)}"
            reason += did_you_mean(key, list(by_name))
            raise InvalidInput(reason, field=key)
        values[key] = _parsed_value(hints[key], text, key)
    try:
        return kind(**values)
    except TypeError:
        missing = ", ".join(
            key
            for key, item in by_name.items()
            if key not in keys and item.default is item.default_factory is MISSING
        )
        raise InvalidInput(f"needs {missing}", field=label) from None


def _no_key(kind: type, key: str) -> str | None:
    """Explain why an attribute of a class is not a parameter although it looks like one."""
    if key.startswith("_") or key in get_annotations(Policy):
        return None
    if key in get_annotations(kind):
        return "is no key: write @dataclass between @register and the class"
    if key in vars(kind) and isinstance(
        value := vars(kind)[key], (bool, int, float, str, Fraction)
    ):
        return f"has no type: write {key}: {type(value).__name__} = {value!r}"
    return None


def pairs(text: str, field: str) -> dict[str, str]:
    """Return the keys and values of ``key=value,...``; errors name the field."""
    pairs: dict[str, str] = {}
    for part in text.split(",") if text else ():
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise InvalidInput(f"must be key=value, got {part!r}", field=field)
        if key in pairs:
            raise InvalidInput(f"has {key} twice", field=field)
        pairs[key] = value
    return pairs


def _parsed_value(hint: Any, text: str, key: str) -> Any:
    """Return the value of the annotated type."""
    if get_origin(hint) is Literal:
        if text not in get_args(hint):
            raise unknown_name(text, get_args(hint), key)
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

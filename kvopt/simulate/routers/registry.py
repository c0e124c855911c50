"""Routers by name: built-in ones, and those that others registered."""

from __future__ import annotations

from typing import TypeVar

from kvopt.kernels.registry import Registry
from kvopt.simulate.policies.registry import made, pairs, registered
from kvopt.simulate.routers.base import ArrivalRouter, Router

Kind = TypeVar("Kind", bound=type[Router])

_MODULES = {
    "central": "central",
    "round-robin": "spread",
    "random": "spread",
    "two-choices": "spread",
    "least-requests": "least",
    "least-tokens": "least",
    "least-volume": "least",
}
ROUTERS: Registry[type[Router]] = Registry(
    "router",
    "kvopt.routers",
    {name: f"kvopt.simulate.routers.{module}" for name, module in _MODULES.items()},
)


def register(kind: Kind) -> Kind:
    """Make a router known by its name; a class decorator."""
    return registered(kind, ArrivalRouter, ROUTERS)


def router(text: str) -> Router:
    """Return the router that ``NAME[:key=value,...]`` describes."""
    name, _, rest = text.partition(":")
    label = f"router {name}"
    return made(ROUTERS.find(name), pairs(rest, label), label)

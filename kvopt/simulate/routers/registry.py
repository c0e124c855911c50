"""Routers by name, built in or registered, and schedulers behind a router."""

from __future__ import annotations

from typing import TypeVar

from kvopt.kernels.extensions import Registry
from kvopt.simulate.policies.registry import built, pairs, registered
from kvopt.simulate.routers.base import ArrivalRouter, Router

Kind = TypeVar("Kind", bound=type[Router])

_BUILT_IN = (
    "central", "round-robin", "random", "two-choices",
    "least-requests", "least-tokens", "least-volume", "longest-prefix",
)  # fmt: skip
ROUTERS: Registry[type[Router]] = Registry(
    "router", "kvopt.routers", dict.fromkeys(_BUILT_IN, "kvopt.simulate.routers.built_in")
)
_BETWEEN = " + "


def register(kind: Kind) -> Kind:
    """Register a router under its name; a class decorator."""
    return registered(kind, ArrivalRouter, ROUTERS)


def router(text: str) -> Router:
    """Return the router that ``NAME[:key=value,...]`` describes."""
    name, _, rest = text.partition(":")
    label = f"router {name}"
    return built(ROUTERS.find(name), pairs(rest, label), label)


def label_of(router: str, policy: str) -> str:
    """Return the label of a scheduler behind a router.

    Examples
    --------
    >>> label_of("least-volume", "svf")
    'least-volume + svf'
    """
    return f"{router}{_BETWEEN}{policy}"


def parts_of(label: str) -> tuple[str, str]:
    """Return router and scheduler of such a name; the default router is the central line.

    Examples
    --------
    >>> parts_of("least-volume + svf"), parts_of("svf")
    (('least-volume', 'svf'), ('central', 'svf'))
    """
    router, between, policy = label.partition(_BETWEEN)
    return (router, policy) if between else ("central", label)

"""What tests register, and forget at their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kvopt.kernels.extensions import Registry
from kvopt.problem.traces.formats import FORMATS
from kvopt.simulate.policies.by_name import POLICIES
from kvopt.simulate.routers import ROUTERS

REGISTRIES: tuple[Registry[Any], ...] = (POLICIES, ROUTERS, FORMATS)


@contextmanager
def forgetting() -> Iterator[None]:
    """Forget at the end what is registered inside, but for what is built in."""
    before = [set(registry.names()) for registry in REGISTRIES]
    try:
        yield
    finally:
        for registry, names in zip(REGISTRIES, before, strict=True):
            for name in set(registry.entries) - names:
                del registry.entries[name]

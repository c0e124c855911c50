"""Values that may be unknown, and are not."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def known(value: Value | None) -> Value:
    """Return a value that is not None."""
    assert value is not None
    return value

"""Pair values, on Python 3.9 too, where `zip` does not compare lengths."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import tee
from typing import TypeVar

T = TypeVar("T")

paired = partial(zip, strict=True) if sys.version_info >= (3, 10) else zip


def pairwise(values: Iterable[T]) -> Iterator[tuple[T, T]]:
    """Yield each value with the next one."""
    former, later = tee(values)
    next(later, None)
    return zip(former, later)

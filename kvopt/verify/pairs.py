"""Pair values, on Python 3.9 too, where `zip` does not compare lengths."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import tee, zip_longest
from typing import Any, TypeVar

T = TypeVar("T")


def compared(*rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the values at each place of the rows, which must be equally long."""
    none = object()
    for values in zip_longest(*rows, fillvalue=none):
        if any(value is none for value in values):
            raise ValueError("the rows are not equally long")
        yield values


paired = partial(zip, strict=True) if sys.version_info >= (3, 10) else compared


def pairwise(values: Iterable[T]) -> Iterator[tuple[T, T]]:
    """Yield each value with the next one."""
    former, later = tee(values)
    next(later, None)
    return zip(former, later)

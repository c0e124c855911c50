"""Copy, order and search arrays, in loops that compile quickly.

For ``a[:] = b`` numba compiles the message about a wrong shape, which takes two seconds at the
first use, and ``np.searchsorted`` takes one.  A loop is as fast and compiles in a tenth of one.
``np.argsort`` takes one for each type of keys, and a row to which a tuple is assigned two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvopt.kernels.compiled import compiled

Row = NDArray[Any]


@compiled
def copy_into(target: Row, source: Row, count: int) -> None:
    """Copy the first entries of a row into another row."""
    for place in range(count):
        target[place] = source[place]


@compiled
def place_of(value: int, row: Row, first: int, last: int) -> int:
    """Return the first place of a range, ascending, whose entry is not below a value."""
    while first < last:
        middle = (first + last) // 2
        if row[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def order_of(keys: Row) -> Row:
    """Return the places of keys, the least first; equal keys stay in order."""
    count, width = len(keys), 1
    order, merged = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for place in range(count):
        order[place] = place
    while width < count:
        for begin in range(0, count, 2 * width):
            left, middle = begin, min(begin + width, count)
            right, end = middle, min(middle + width, count)
            for place in range(begin, end):
                if right >= end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order

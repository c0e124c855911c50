"""Copying arrays in compiled loops.

For ``a[:] = b`` numba compiles the text of its message about a wrong shape, in two seconds at the
first place.  A loop is as fast and is compiled in a tenth of one.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from kvopt.kernels.compiled import compiled

Row = NDArray[Any]


@compiled
def copy_into(target: Row, source: Row, count: int) -> None:
    """Copy the first entries of a row into another row."""
    for place in range(count):
        target[place] = source[place]

"""Copying arrays in compiled loops.

For ``a[:] = b`` numba compiles the text of its message about a wrong shape, in two seconds at the
first place.  A loop is as fast and is compiled in a tenth of one.
"""

from __future__ import annotations

from kvopt.kernels.compiled import compiled
from kvopt.problem.arrays import Numbers


@compiled
def copy_into(target: Numbers, source: Numbers, count: int) -> None:
    """Copy the first entries of a row into another row."""
    for place in range(count):
        target[place] = source[place]

"""Limits of numbers in compiled loops, which use 64 bits and do not detect overflow.

No number of an instance exceeds 2^53 (`kvopt.problem.requests.LARGEST_INTEGER`), but sums and
products may.  Callers of a loop first check whether the largest possible number `fits`.  If not,
they use integers of Python, or skip the method with a note.
"""

from __future__ import annotations

from typing import Any

LARGEST_SUM = 2**61
"""Limit of sums, so that a loop may add two of them, or double one."""
NEVER = 2**62
"""A time or cost above all others; one sum may be added to it."""


def fits(largest: Any) -> bool:
    """Return whether a loop can take sums up to the largest.

    Examples
    --------
    >>> fits(2**53), fits(2**53 * 1000)
    (True, False)
    """
    return bool(largest < LARGEST_SUM)

"""How large numbers may be in compiled loops, which count in 64 bits and notice no overflow.

No number of an instance passes 2^53 (`kvopt.problem.requests.LARGEST_INTEGER`), but sums and
products may.  Whoever hands some to a loop asks first whether the largest that can come up `fits`.
If it does not, the sum is made of integers of Python, or the method is skipped with a note.
"""

from __future__ import annotations

from typing import Any

LARGEST_SUM = 2**61
"""Sums stay below it, so that a loop may add two of them, or double one."""
NEVER = 2**62
"""A time, or a cost, that is later or larger than every other; one sum may be added to it."""


def fits(largest: Any) -> bool:
    """Return whether sums up to the largest may be handed to a loop.

    Examples
    --------
    >>> fits(2**53), fits(2**53 * 1000)
    (True, False)
    """
    return bool(largest < LARGEST_SUM)

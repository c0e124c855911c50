"""Count tokens at many times in one integer, to add and compare them at once."""

from __future__ import annotations

from collections.abc import Iterable


class Profiles:
    """Tokens held at later times: a field of an integer for each, the nearest one lowest.

    Each of two profiles has at most M tokens in a field.  So their sum has at most 2 M there, which
    is below the guard, the highest bit of a field, even with ``spare`` on top if it is at most M.

    Parameters
    ----------
    memory, times
        M, and the limit of the number of fields.
    """

    def __init__(self, memory: int, times: int) -> None:
        self.digits = -(-(memory.bit_length() + 2) // 4)
        self.bits = 4 * self.digits
        ones = ((1 << self.bits * times) - 1) // ((1 << self.bits) - 1)
        self.guards = ones << (self.bits - 1)
        self.spare = ones * ((1 << (self.bits - 1)) - 1 - memory)

    def of(self, held: Iterable[int]) -> int:
        """Return the profile of holdings at the next times, the last one first."""
        return int("0" + "".join(f"{tokens:0{self.digits}x}" for tokens in held), 16)

    def fits(self, held: int) -> bool:
        """Whether the sum of two profiles has at most M tokens at each time."""
        return not (held + self.spare) & self.guards

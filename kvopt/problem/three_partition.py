"""3-Partition as scheduling, corrected.

Given are 3m integers in (B/4, B/2) with the sum mB; can they be split into triples that sum to
B each?  A number x becomes a request with prompt x and one token of output, and the cache has
B + 3 tokens.  Four requests never fit together, three do if and only if their numbers sum to at
most B, so the total latency reaches 3m(m+1)/2 if and only if the triples exist.
``docs/theory`` has the proof, and why the cache is not of B tokens as wang-2025 prints.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request, checked_integer

__all__ = ["ThreePartition"]


@dataclass(frozen=True)
class ThreePartition:
    """A 3-Partition problem; other multisets are refused.

    Parameters
    ----------
    target
        The sum B of every triple.
    numbers
        3m integers in (B/4, B/2) with the sum mB.
    """

    target: int
    numbers: tuple[int, ...]

    def __post_init__(self) -> None:
        checked_integer(self.target, "target", 1)
        for position, number in enumerate(self.numbers, 1):
            field = f"X{position}"
            checked_integer(number, field, 1)
            if not self.target < 4 * number < 2 * self.target:
                quarter, half = self.target / 4, self.target / 2
                reason = f"must lie between B/4 = {quarter:g} and B/2 = {half:g}, got {number}"
                raise InvalidInput(reason, field=field)
        if len(self.numbers) % 3:
            raise InvalidInput(f"must be 3m of them, got {len(self.numbers)}", field="numbers")
        wanted = self.triples * self.target
        if sum(self.numbers) != wanted:
            reason = f"must sum to mB = {wanted}, got {sum(self.numbers)}"
            raise InvalidInput(reason, field="numbers")

    @property
    def triples(self) -> int:
        """The number m of triples."""
        return len(self.numbers) // 3

    @property
    def threshold(self) -> int:
        """Total latency ``3m(m+1)/2``, reached if and only if a partition exists."""
        return 3 * self.triples * (self.triples + 1) // 2

    def instance(self) -> Instance:
        """Return the corrected instance: M = B + 3.  Its source calls B by the paper's letter T."""
        return self._with_memory(self.target + 3, "with M = T + 3")

    def printed_instance(self) -> Instance:
        """Return the instance as wang-2025 prints it, M = B, for which the reduction fails."""
        return self._with_memory(self.target, "as printed, M = T")

    def _with_memory(self, memory: int, how: str) -> Instance:
        name = f"three-partition-n{len(self.numbers)}-m{memory}"
        notes = {"source": f"wang-2025 theorem 2.2, {how}", "target": self.target}
        return Instance(memory, [Request(0, x, 1) for x in self.numbers], name, notes)

"""The waiting requests, kept in tie order."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Generic, Protocol, Self, TypeVar

from kvopt.simulate.policies.phase1.batch import Candidate


class _Ordered(Protocol):
    def __lt__(self, other: Self, /) -> bool: ...


Item = TypeVar("Item", bound=_Ordered)

_FEW = 32
"""Up to so many new items are inserted one by one; more are sorted together."""


class SortedLine(Generic[Item]):
    """A sorted list that items join and leave.

    A plan reads all of them, and under load there is a plan in almost every round: sorting all of
    them each time would take longer than the plan.  Access to one place in a ``SortedList`` of
    sortedcontainers takes ten times as long as in this list.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._new: list[Item] = []

    def add(self, item: Item) -> None:
        """Let an item join."""
        self._new.append(item)

    def remove(self, item: Item) -> None:
        """Let an item of the line leave."""
        items = self.items()
        del items[bisect_left(items, item)]

    def items(self) -> list[Item]:
        """Return all of them in order; not a copy."""
        items, new = self._items, self._new
        if len(new) > _FEW:
            items += new
            items.sort()
            new.clear()
        while new:
            insort(items, new.pop())
        return items

    def __len__(self) -> int:
        return len(self._items) + len(self._new)


class Waiting:
    """The waiting requests in tie order, and their prompts by size.

    Attributes
    ----------
    candidates, prompts
        The two lines.
    """

    def __init__(self) -> None:
        self.candidates: SortedLine[Candidate] = SortedLine()
        self.prompts: SortedLine[int] = SortedLine()

    def add(self, candidate: Candidate) -> None:
        """Let a request wait."""
        self.candidates.add(candidate)
        self.prompts.add(candidate.prompt)

    def remove(self, candidate: Candidate) -> None:
        """Let a request leave."""
        self.candidates.remove(candidate)
        self.prompts.remove(candidate.prompt)

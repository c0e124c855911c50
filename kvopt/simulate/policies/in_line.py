"""Policies with look-ahead, and policies that scan a line up to the first that does not fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from kvopt.simulate.policies.interface import Policy, View, shuffled_ranks
from kvopt.simulate.policies.promised_memory import LookAhead

Key = tuple[int, ...]


class _Ordered(Protocol):
    def __lt__(self, other: Self, /) -> bool: ...


Item = TypeVar("Item", bound=_Ordered)

_FEW = 32
"""Up to so many new items are inserted one by one; more are sorted together."""


class SortedLine(Generic[Item]):
    """A sorted list that items join and leave; the first of the line is the last of the list.

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
        del self.items()[self._place(item)]

    def items(self) -> list[Item]:
        """Return all of them in descending order; not a copy: one deleted there has left."""
        items, new = self._items, self._new
        if len(new) > _FEW:
            items += new
            items.sort(reverse=True)
            new.clear()
        while new:
            items.insert(self._place(item := new.pop()), item)
        return items

    def _place(self, item: Item) -> int:
        """Return the first place of an item that is not above another one."""
        items, low, high = self._items, 0, len(self._items)
        while low < high:
            middle = (low + high) // 2
            if item < items[middle]:
                low = middle + 1
            else:
                high = middle
        return low

    def __len__(self) -> int:
        return len(self._items) + len(self._new)


@dataclass
class LinePolicy(Policy):
    """A policy whose requests wait in a line, sorted by a key."""

    def begin(self, view: View) -> None:
        """Start with an empty line."""
        super().begin(view)
        self._line: SortedLine[Key] = SortedLine()

    @abstractmethod
    def key(self, view: View, i: int) -> Key:
        """Return the sort key of a request in line."""

    def full_key(self, view: View, i: int) -> Key:
        """Return the key with ties broken by prompt, arrival and position."""
        return (*self.key(view, i), view.prompts[i], view.arrivals[i])

    def arrived(self, view: View, i: int) -> None:
        """Join the line."""
        self._line.add(self.item(view, i))

    def withdrawn(self, view: View, i: int) -> None:
        """Leave the line."""
        self._line.remove(self.item(view, i))

    def item(self, view: View, i: int) -> Key:
        """Return a request as it is in the line."""
        return (*self.full_key(view, i), i)


@dataclass
class AheadPolicy(Policy):
    """Start only requests that fit now and, by belief, at every later time."""

    def begin(self, view: View) -> None:
        """Start without promised memory."""
        self._ahead = LookAhead(self.capacity(view), view._weights)
        self._wake: int | None = None
        self._refused: int | None = None  # a request that does not fit before the round to wake in

    def capacity(self, view: View) -> int:
        """Return the tokens that may be promised."""
        return view.memory

    def belief(self, view: View, i: int) -> int:
        """Return the believed output of a request."""
        return view.beliefs.output[i]

    def finished(self, view: View, i: int, start: int) -> None:
        """Release the promised memory."""
        belief, path = self.belief(view, i), view._paths[i]
        if self._ahead.remove(view._private[i], belief, start, view.now, path):
            self._refused = None

    def evicted(self, view: View, i: int, start: int) -> None:
        """Release the promised memory and join the line again."""
        self.finished(view, i, start)
        self.rejoin(view, i)

    def rejoin(self, view: View, i: int) -> None:
        """Join the line again after an eviction."""
        self.arrived(view, i)

    def wake(self, view: View) -> int | None:
        """Ask again when the first in line may fit."""
        return self._wake

    def waits(self, view: View, i: int) -> int:
        """Return 0 if a request fits with the promised memory, else the rounds it must wait."""
        return self._ahead.wait(view._private[i], self.belief(view, i), view.now, view._paths[i])

    def promise(self, view: View, i: int) -> None:
        """Keep memory for a request that starts now."""
        self._ahead.add(view._private[i], self.belief(view, i), view.now, view._paths[i])

    def _must_wait(self, view: View, wait: int) -> int:
        """Return the least wait of a request, and wake then; 0 if it fits."""
        # Alone it fits or never will: another one has to leave first.
        self._wake = view.now + wait if wait and len(self._ahead) else None
        return wait


@dataclass
class PrefixPolicy(LinePolicy, AheadPolicy):
    """Admit the first in line as long as it fits now and, by belief, at every later time.

    A request that outlives its believed output is believed to need one more round.  If memory
    would exceed M nevertheless, all active requests are evicted.
    """

    def _turn(self, view: View) -> int:
        """Return the place of the next request to start, by default the first in line."""
        return -1

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front of the line until one does not fit."""
        while line := self._line.items():
            i = line[place := self._turn(view)][-1]
            if i == self._refused and self._wake is not None and view.now < self._wake:
                return
            if self._must_wait(view, self.waits(view, i)):
                self._refused = i
                return
            del line[place]
            self.promise(view, i)
            yield i
        self._wake = None


@dataclass
class ShuffledPolicy(PrefixPolicy):
    """A policy that breaks ties by drawn places."""

    def begin(self, view: View) -> None:
        """Draw the places."""
        super().begin(view)
        self._rank = shuffled_ranks(len(view.prompts), self.seed)

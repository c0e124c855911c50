"""Policies that scan an order, admit what fits with look-ahead and stop at what does not."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from kvopt.simulate.policies.base import Policy, View
from kvopt.simulate.policies.lookahead import look_ahead

Key = tuple[int, ...]


@dataclass
class PrefixPolicy(Policy):
    """Admit the first in line as long as it fits now and, by belief, at every later time.

    A believed output that was too low is noticed when a request outlives it: it is then
    believed to need one round more.  When memory would pass M all the same, everything
    active is evicted.
    """

    def begin(self, view: View) -> None:
        """Start with no request in line."""
        self._line: list[tuple[Key, int]] = []
        self._ahead = look_ahead(self.capacity(view), len(view.prompts))
        self._wake: int | None = None
        self._gone: set[int] = set()  # of the line, what another worker has started

    def capacity(self, view: View) -> int:
        """Return the tokens that may be promised."""
        return view.memory

    def belief(self, view: View, i: int) -> int:
        """Return the believed output of a request."""
        return view.beliefs.output[i]

    @abstractmethod
    def key(self, view: View, i: int) -> Key:
        """Return what the line is sorted by."""

    def full_key(self, view: View, i: int) -> Key:
        """Return the key with ties broken by prompt, arrival and position."""
        return (*self.key(view, i), view.prompts[i], view.arrivals[i])

    def arrived(self, view: View, i: int) -> None:
        """Join the line."""
        heapq.heappush(self._line, (self.full_key(view, i), i))

    def finished(self, view: View, i: int, start: int) -> None:
        """Give back what was promised."""
        self._ahead.remove(view.prompts[i], self.belief(view, i), start)

    def evicted(self, view: View, i: int, start: int) -> None:
        """Give back what was promised and join the line again."""
        self.finished(view, i, start)
        self.rejoin(view, i)

    def rejoin(self, view: View, i: int) -> None:
        """Join the line again after an eviction."""
        self.arrived(view, i)

    def withdrawn(self, view: View, i: int) -> None:
        """Pass over it when it comes to the front of the line."""
        self._gone.add(i)

    def admit(self, view: View) -> Iterable[int]:
        """Start from the front of the line until one does not fit."""
        self._wake = None
        line, now = self._line, view.now
        while line:
            i = line[0][1]
            if i in self._gone:
                heapq.heappop(line)
                continue
            prompt, output = view.prompts[i], self.belief(view, i)
            if wait := self._ahead.wait(prompt, output, now):
                # Alone it would fit or never will: another has to leave first.
                self._wake = now + wait if len(self._ahead) else None
                return
            heapq.heappop(line)
            self._ahead.add(prompt, output, now)
            yield i

    def wake(self, view: View) -> int | None:
        """Ask again when the first in line may fit."""
        return self._wake
